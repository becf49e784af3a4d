/* The differences of two epochs, region by region. Ranges that both take from the same position are
 * equal without being read. */
#ifndef VV_ENGINE_UPKEEP_DIFF_H
#define VV_ENGINE_UPKEEP_DIFF_H

#include "base/pool.h"
#include "base/progress.h"
#include "engine/lineage/run_table.h"

struct vv_diff_region {
	const char *name;
	const struct vv_shape *a, *b; /* NULL where the region is not there */
	uint64_t bytes;               /* that differ, in the length both have */
	uint64_t first, last;         /* the first and the last differing byte */
	uint64_t ranges;              /* differing stretches (bytes closer than 64 count as one) */
	/* For arrays of the same type: elements that differ, the largest differences and their
	 * element indices. */
	bool typed;
	uint64_t elements;
	double max_abs, max_rel;
	uint64_t max_abs_at, max_rel_at;
	const char *max_abs_field, *max_rel_field; /* of records, else NULL */
	uint64_t nan; /* elements that are NaN in one of the two only */
};

struct vv_diff_side {
	const struct vv_lineage *lineage;
	const struct vv_run_table *table;
};

typedef void (*vv_diff_report_fn)(void *arg, const struct vv_diff_region *r);

/* Compares all regions of both, those of a first. *differ: is there any difference in content,
 * presence, size, type or shape? */
int vv_diff_run(const struct vv_diff_side *a, const struct vv_diff_side *b, struct vv_pool *pool, vv_diff_report_fn tell,
		void *arg, const struct vv_progress *progress, bool *differ);

#endif
