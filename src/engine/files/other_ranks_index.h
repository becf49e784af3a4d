/* An index of the content that other ranks stored for the newest epoch, and that a dead job left of
 * the epoch after it. A rank that packs files may refer to this content, even if the number of
 * ranks has changed. */
#ifndef VV_ENGINE_FILES_OTHER_RANKS_INDEX_H
#define VV_ENGINE_FILES_OTHER_RANKS_INDEX_H

#include "engine/context.h"

struct vv_other_ranks_index {
	struct vv_index_cache *index_cache; /* one per rank */
	size_t n;
};

/* Loads the indexes of all ranks but the session's own. epoch: the newest epoch, 0 if there is
 * none. room: digests in all. An unreadable index is left out: its content is stored again when it
 * recurs. */
int vv_other_ranks_index_load(struct varve *v, uint64_t epoch, size_t room, struct vv_other_ranks_index *out);
void vv_other_ranks_index_fini(struct vv_other_ranks_index *o);
/* Finds intact content with this digest; false: there is none. */
bool vv_other_ranks_index_find(const struct varve *v, struct vv_other_ranks_index *o, const struct vv_digest *d, uint64_t *layer, uint64_t *pos);

#endif
