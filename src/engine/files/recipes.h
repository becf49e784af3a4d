/* How each kind of variable is coded: as the last epoch did while that still holds what it promised, else by what samples say. */
#ifndef VV_ENGINE_FILES_RECIPES_H
#define VV_ENGINE_FILES_RECIPES_H

#include "codec/codec.h"
#include "engine/files/file_set.h"

enum {
	VV_RECIPES_INTERLEAVE = 64 << 10,        /* bytes of each file in turn, where a kind is braided; */
	VV_RECIPES_INTERLEAVE_MEMORY = 4 << 20, /* of memory: a trail goes far, and what is alike in two processes lies at about the same place */
};

/* before: of the last epoch; may be empty. chunk: of what is not cut by its content. Kinds that are too small for blocks of their own become skeleton; those
 * that were decided before stay as they are. */
int vv_recipes_decide(struct varve *v, struct vv_file_set *c, const struct vv_manifest *before, const struct vv_pack_options *opt, size_t chunk,
		    bool coding);
/* May memory of other ranks be coded with it (engine/files/rank_handover.h)? Not if it is numbers or noise, cut by its content, or if somebody says how it is to be coded. */
bool vv_recipes_can_join_ranks(const struct vv_file_set *c, const struct vv_file_set_kind *k);
/* It is going to be: a stretch of each in turn, by a trail, if it is sociable or was not decided. */
void vv_recipes_join_ranks(const struct vv_file_set *c, uint32_t kind, const struct vv_pack_options *opt);
/* What codes its blocks, NULL for nothing; and how large they are. */
const struct vv_codec *vv_recipes_codec(const struct vv_file_set_kind *k);
size_t vv_recipes_block(const struct vv_file_set_kind *k);
/* The largest that any of them has. */
size_t vv_recipes_largest_block(const struct vv_file_set *c);

#endif
