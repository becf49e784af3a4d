/* Pictures for papers: the page can show one chart alone, and a browser without a window takes its
 * picture. */
#ifndef VV_CLI_REPORT_REPORT_PNG_H
#define VV_CLI_REPORT_REPORT_PNG_H

#include "cli/report/report_lineage.h"

/* Writes each chart as a picture into a folder, drawn by an installed browser; *n: their number.
 * VV_ENOTSUP if there is no browser. */
int vv_report_png_write(const struct vv_buf *page, const char *folder, size_t *n);

#endif
