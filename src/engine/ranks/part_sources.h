/* The stored regions, of any rank, that a region is filled from. */
#ifndef VV_ENGINE_RANKS_PART_SOURCES_H
#define VV_ENGINE_RANKS_PART_SOURCES_H

#include "engine/ranks/rank_parts.h"

struct vv_part_wanted { /* a region to be filled */
	const char *name, *lineage;
	uint64_t epoch;
	const struct vv_rank_parts *stored; /* of that epoch */
	uint32_t rank; /* that wants it, for messages; UINT32_MAX: none */
	struct vv_shape shape;
	const struct vv_distribution *part; /* NULL: a plain region */
};

struct vv_part_source {
	uint32_t rank;
	const struct vv_head_region *region;
	struct vv_box memory, provided;
};

struct vv_part_sources {
	struct vv_box memory; /* of the wanted region */
	uint64_t element;     /* bytes */
	struct vv_part_source *v;
	size_t n, cap;
};

void vv_part_sources_fini(struct vv_part_sources *s);
/* Sources of a part of a global array: disjoint, and all of it inside the array. The error names
 * the array, the rank and the place. */
int vv_part_sources_slab(const struct vv_part_wanted *w, struct vv_part_sources *out);
/* Of a list, from item `first` on. declared: the items that all ranks together want. */
int vv_part_sources_list(const struct vv_part_wanted *w, uint64_t first, uint64_t declared, struct vv_part_sources *out);
/* The region of that name of one rank. */
int vv_part_sources_whole(const struct vv_part_wanted *w, uint32_t rank, struct vv_part_sources *out);

/* The items of a list of all ranks, and of those before `rank`. Returns false if no rank has the
 * list. */
bool vv_part_sources_count_items(const struct vv_rank_parts *p, const char *name, uint32_t rank, uint64_t *before, uint64_t *total);

#endif
