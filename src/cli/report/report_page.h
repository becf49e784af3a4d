/* The page is made of report/ when varve is built: one text, with a gap for the data. */
#ifndef VV_CLI_REPORT_REPORT_PAGE_H
#define VV_CLI_REPORT_REPORT_PAGE_H

#include "cli/report/report_lineage.h"

/* VV_ENOTSUP if the page was not built in. */
int vv_report_page_check(void);
/* The page with the data in it. */
int vv_report_page_make(const struct vv_buf *json, struct vv_buf *out);

#endif
