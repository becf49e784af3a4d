/* The parts to be read of a layer, grouped by block. */
#ifndef VV_ENGINE_READ_BLOCK_PLAN_H
#define VV_ENGINE_READ_BLOCK_PLAN_H

#include "engine/lineage/layer_file.h"

struct vv_block_plan {
	struct vv_layer_file *file;
	struct vv_payload_cursor cursor;
	struct vv_block_plan_cut *cut; /* until they are grouped */
	size_t n, cap;
	struct vv_part *part; /* by block, ascending in each */
	size_t *end;          /* block b has those from end[b - 1] to end[b]; NULL: not grouped */
	uint64_t spare;       /* bytes of plain blocks beside their parts */
};

/* Adds a range of positions. `first` gives its destination: `to`, or `at` in a region. */
int vv_block_plan_add(struct vv_block_plan *p, uint64_t pos, uint64_t len, struct vv_part first);
int vv_block_plan_group(struct vv_block_plan *p);
/* Reads the digests of the chunks, if this saves more reading than it costs. */
int vv_block_plan_digests(const struct vv_block_plan *p);
void vv_block_plan_fini(struct vv_block_plan *p);

/* Parts are often in order already: then nothing is sorted. */
void vv_block_plan_sort(struct vv_part *part, size_t n, int (*compare)(const void *a, const void *b));

#endif
