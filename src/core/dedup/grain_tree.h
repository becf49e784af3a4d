/* The pieces of the method tree (docs/dedup.md, section 3): Tan 2023's Merkle tree over the numbers of a slice, by its subtrees that have changed in
 * one way. Nothing is kept of the others, so the work follows from the number of grains that have changed. */
#ifndef VV_CORE_DEDUP_GRAIN_TREE_H
#define VV_CORE_DEDUP_GRAIN_TREE_H

#include "core/dedup/known_grains.h"
#include "core/dedup/grain_pieces.h"

struct vv_grain_tree_node {
	struct vv_digest digest;
	uint32_t number; /* among the nodes of its height */
	uint32_t leaf;   /* the first of its leaves among the finds */
};

/* What the work needs beside the finds: room for as many nodes and heights as there are finds. */
struct vv_grain_tree_work {
	struct vv_grain_tree_node *node;
	uint8_t *height; /* of the piece that begins with a find */
};

/* Of n finds of one slice, ascending, with the digest of each number of the slice. The first `take` finds take part in `nodes`, for which
 * vv_known_grains_begin was asked with the number of those that are not zero. The place of a find that is the first of a piece may change. Room for
 * n pieces, which may be that of the nodes: returns how many. */
size_t vv_grain_tree_pieces(struct vv_find *f, size_t n, size_t take, const struct vv_digest *slice, uint32_t ordinal,
		      struct vv_known_grains *nodes, const struct vv_grain_tree_work *w, struct vv_piece *out);
/* Enters the nodes that are NEW, and nothing else. */
void vv_grain_tree_enter(struct vv_find *f, size_t n, size_t take, const struct vv_digest *slice, uint32_t ordinal,
		   struct vv_known_grains *nodes, const struct vv_grain_tree_work *w);

#endif
