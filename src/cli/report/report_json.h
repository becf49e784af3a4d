/* The report of a lineage as JSON. */
#ifndef VV_CLI_REPORT_REPORT_JSON_H
#define VV_CLI_REPORT_REPORT_JSON_H

#include "cli/report/report_lineage.h"

void vv_report_json_put(const struct vv_report_lineage *r, struct vv_json *j);

#endif
