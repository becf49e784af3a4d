/* A layer that continues its parent's tables says nothing of what is as it was: so its runs are what changed. */
#ifndef VV_CLI_REPORT_REPORT_HEAT_H
#define VV_CLI_REPORT_REPORT_HEAT_H

#include "cli/report/report.h"

enum {
	VV_REPORT_BANDS = 16,       /* parts of a region, from its first byte to its last */
	VV_REPORT_BANDED = 16,      /* regions of which parts are known: the first that are met */
	VV_REPORT_BAND_LEN = 1 << 12 /* the least that a part has */
};

struct vv_report_heat_row {
	char *name;
	bool variable; /* of packed files; else a region */
	uint64_t *changed, *size; /* bytes, by row of epochs */
	uint64_t *band; /* of a region: changed bytes of each part, those of one row of epochs side by side; or NULL */
	uint64_t total; /* changed */
};

struct vv_report_heat { /* starts empty, but for the number of columns */
	struct vv_report_heat_row *v; /* what has no row of its own is in the first, after settling in the last */
	size_t n, cap, columns;
	struct vv_map by_name;
	bool others; /* is there any? */
};

void vv_report_heat_fini(struct vv_report_heat *h);
/* What a layer changed, in the column of its epoch. */
int vv_report_heat_add(struct vv_report_heat *h, struct vv_verb_context *job, const struct vv_lineage *lin,
		       const struct vv_commit *c, const struct vv_head *head, size_t column);
/* The rows that changed most, at most VV_REPORT_WARM; all others are put together in the last. */
void vv_report_heat_finish(struct vv_report_heat *h);
/* Takes a column out. */
void vv_report_heat_drop(struct vv_report_heat *h, size_t column);

#endif
