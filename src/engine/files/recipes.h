/* Chooses the compression of each kind of variable: that of the last epoch while it performs as
 * well as before, else the best by samples. */
#ifndef VV_ENGINE_FILES_RECIPES_H
#define VV_ENGINE_FILES_RECIPES_H

#include "codec/codec.h"
#include "engine/files/file_set.h"

enum {
	VV_RECIPES_INTERLEAVE = 64 << 10, /* bytes of each file in turn, for interleaved kinds; */
	/* the same for memory: a word history reaches far, and two processes have similar memory at
	 * about the same offset */
	VV_RECIPES_INTERLEAVE_MEMORY = 4 << 20,
};

/* before: the manifest of the last epoch; may be empty. chunk: the length of chunks that are not
 * cut by content. Kinds that are too small for their own blocks become skeleton. Kinds that were
 * decided before keep their recipe. */
int vv_recipes_decide(struct varve *v, struct vv_file_set *c, const struct vv_manifest *before, const struct vv_pack_options *opt, size_t chunk,
		    bool coding);
/* May memory of other ranks be compressed with this kind (engine/files/rank_handover.h)? Not if it
 * holds numbers or noise, is cut by content, or has a recipe set by the user. */
bool vv_recipes_can_join_ranks(const struct vv_file_set *c, const struct vv_file_set_kind *k);
/* Marks the kind for joint compression: a stretch of each rank in turn. An undecided kind, or one
 * that can be joined, gets the trail predictor. */
void vv_recipes_join_ranks(const struct vv_file_set *c, uint32_t kind, const struct vv_pack_options *opt);
/* The codec of its blocks, NULL for none; and the block size. */
const struct vv_codec *vv_recipes_codec(const struct vv_file_set_kind *k);
size_t vv_recipes_block(const struct vv_file_set_kind *k);
/* The largest block size of all kinds. */
size_t vv_recipes_largest_block(const struct vv_file_set *c);

#endif
