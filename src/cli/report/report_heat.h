/* The heat map of changes. A layer that continues its parent's tables does not list unchanged data,
 * so its runs are the changes. */
#ifndef VV_CLI_REPORT_REPORT_HEAT_H
#define VV_CLI_REPORT_REPORT_HEAT_H

#include "cli/report/report.h"

enum {
	VV_REPORT_BANDS = 16,       /* parts of a region, from its first byte to its last */
	VV_REPORT_BANDED = 16,      /* regions whose parts are known: the first ones found */
	VV_REPORT_BAND_LEN = 1 << 12 /* the minimum size of a part */
};

struct vv_report_heat_row {
	char *name;
	bool variable; /* of packed files; else a region */
	uint64_t *changed, *size; /* bytes, by row of epochs */
	/* of a region: changed bytes of each part, those of one row of epochs side by side; or
	 * NULL */
	uint64_t *band;
	uint64_t total; /* changed */
};

struct vv_report_heat { /* starts empty, but for the number of columns */
	/* the first row combines everything without a row of its own; after vv_report_heat_finish
	 * it is the last */
	struct vv_report_heat_row *v;
	size_t n, cap, columns;
	struct vv_map by_name;
	bool others; /* is there anything in the combined row? */
};

void vv_report_heat_fini(struct vv_report_heat *h);
/* Adds the changes of a layer, in the column of its epoch. */
int vv_report_heat_add(struct vv_report_heat *h, struct vv_verb_context *job, const struct vv_lineage *lin,
		       const struct vv_commit *c, const struct vv_head *head, size_t column);
/* Keeps the rows that changed most, at most VV_REPORT_WARM; all others are combined in the last. */
void vv_report_heat_finish(struct vv_report_heat *h);
/* Removes a column. */
void vv_report_heat_drop(struct vv_report_heat *h, size_t column);

#endif
