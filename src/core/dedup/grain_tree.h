/* The pieces of the method tree (docs/dedup.md, section 3): Tan 2023's Merkle tree over the numbers
 * of a slice. A piece is a subtree that has changed in one way. Unchanged subtrees are not kept, so
 * the work is proportional to the number of changed grains. */
#ifndef VV_CORE_DEDUP_GRAIN_TREE_H
#define VV_CORE_DEDUP_GRAIN_TREE_H

#include "core/dedup/known_grains.h"
#include "core/dedup/grain_pieces.h"

struct vv_grain_tree_node {
	struct vv_digest digest;
	uint32_t number; /* among the nodes of its height */
	uint32_t leaf;   /* the first of its leaves among the finds */
};

/* Working memory in addition to the finds: room for as many nodes and heights as there are
 * finds. */
struct vv_grain_tree_work {
	struct vv_grain_tree_node *node;
	uint8_t *height; /* of the piece that begins with a find */
};

/* Takes n finds of one slice, ascending, with the digest of each number of the slice. The first
 * `take` finds take part in `nodes`. The caller has called vv_known_grains_begin with the number of
 * finds that are not zero. The place of a find that is the first of a piece may change. There is
 * room for n pieces in `out`, which may be the memory of the nodes. Returns the number of
 * pieces. */
size_t vv_grain_tree_pieces(struct vv_find *f, size_t n, size_t take, const struct vv_digest *slice, uint32_t ordinal,
		      struct vv_known_grains *nodes, const struct vv_grain_tree_work *w, struct vv_piece *out);
/* Enters the nodes that are NEW, and nothing else. */
void vv_grain_tree_enter(struct vv_find *f, size_t n, size_t take, const struct vv_digest *slice, uint32_t ordinal,
		   struct vv_known_grains *nodes, const struct vv_grain_tree_work *w);

#endif
