/* Pictures for papers: the page knows how to show one chart alone, and a browser without a window
 * takes its picture. */
#ifndef VV_CLI_REPORT_REPORT_PNG_H
#define VV_CLI_REPORT_REPORT_PNG_H

#include "cli/report/report_lineage.h"

/* Each chart as a picture in a folder, drawn by a browser that is installed; *n: how many.
 * VV_ENOTSUP if there is none. */
int vv_report_png_write(const struct vv_buf *page, const char *folder, size_t *n);

#endif
