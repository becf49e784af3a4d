/* What other ranks have stored that the newest epoch is made of, and what a job that died left of the one after it: who packs files may refer to it, however many
 * ranks packed them last time. */
#ifndef VV_ENGINE_FILES_OTHER_RANKS_INDEX_H
#define VV_ENGINE_FILES_OTHER_RANKS_INDEX_H

#include "engine/context.h"

struct vv_other_ranks_index {
	struct vv_index_cache *index_cache; /* of each */
	size_t n;
};

/* Of all ranks but the session's own; epoch: the newest, 0 if there is none; room: digests in all. What cannot be read is left out: it is stored again if it comes back. */
int vv_other_ranks_index_load(struct varve *v, uint64_t epoch, size_t room, struct vv_other_ranks_index *out);
void vv_other_ranks_index_fini(struct vv_other_ranks_index *o);
/* Where such content lies, whole; false: nowhere. */
bool vv_other_ranks_index_find(const struct varve *v, struct vv_other_ranks_index *o, const struct vv_digest *d, uint64_t *layer, uint64_t *pos);

#endif
