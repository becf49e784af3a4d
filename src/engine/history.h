/* The digest index of a rank, from the store: the cache that writers leave, and the layers that came after it. */
#ifndef VV_ENGINE_HISTORY_H
#define VV_ENGINE_HISTORY_H

#include "core/index.h"
#include "engine/catalog.h"
#include <stdbool.h>

struct vv_history {
	struct vv_index index;  /* entries in ascending (layer, position) order */
	uint64_t cached;        /* the cache in the store covers the epochs up to here */
	size_t since;           /* layers that were added since */
	uint8_t *looked;        /* per layer that the cache names: is it there? */
	size_t n_looked;
};

/* Only layers of this kind of digest count. */
int vv_history_load(const struct vv_lineage *lin, uint32_t rank, uint8_t digest_kind, struct vv_history *out);
void vv_history_fini(struct vv_history *h);
/* Is the layer of this entry there? Only then it may be referred to. */
bool vv_history_has(const struct vv_lineage *lin, struct vv_history *h, uint32_t entry);
/* Leaves a new cache in the store when enough layers came since the last one; a failure to is no failure. */
void vv_history_save(const struct vv_lineage *lin, uint32_t rank, uint8_t digest_kind, uint64_t epoch,
		     struct vv_history *h);
/* Removes the cache: before anything that it may name is removed. */
int vv_history_forget(const struct vv_lineage *lin, uint32_t rank);

#endif
