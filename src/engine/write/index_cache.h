/* The digest index of a rank, loaded from the store: from the cache that writers leave, and from
 * later layers. It also records how far entries are trusted. */
#ifndef VV_ENGINE_WRITE_INDEX_CACHE_H
#define VV_ENGINE_WRITE_INDEX_CACHE_H

#include "core/dedup/index.h"
#include "engine/lineage/catalog.h"
#include "engine/memory_region.h"
#include <stdbool.h>

struct vv_layer_file;
struct vv_needed_entries;

struct vv_index_cache {
	struct vv_index index;  /* entries in ascending (layer, position) order */
	/* per layer of the index: the check of its DIGESTS section */
	uint64_t *digests_check;
	size_t checks_cap;
	uint64_t cached;        /* the cache in the store covers the epochs up to here */
	size_t n_layers_since;           /* layers that were added since */
	/* State of engine/write/trust.c. */
	size_t n_loaded;          /* entries from the store; those above are this session's own */
	uint8_t *entry_trust;     /* per loaded entry */
	size_t n_cached_layers;   /* layers known only from the cache */
	uint8_t *layer_trust;     /* per such layer */
	struct vv_layer_file *open;  /* the layer that was read last */
};

/* Uses only layers of this kind of digest, and of epochs from `oldest` on. Loads the needed
 * entries, as far as they exist, and up to `room` others: those of the newest layers. */
int vv_index_cache_load(const struct vv_lineage *lin, uint32_t rank, uint8_t digest_kind, uint64_t oldest, size_t room,
			const struct vv_needed_entries *needs, struct vv_index_cache *out);
void vv_index_cache_fini(struct vv_index_cache *h);
/* Drops entries until there are `limit`, the oldest first, but none whose `moved` is not 0. `moved`
 * becomes 1 + the new number of kept entries. VV_ENOMEM: the history is unchanged. */
int vv_index_cache_shrink(struct vv_index_cache *h, size_t limit, uint32_t *moved);
/* Sets the check of the DIGESTS section of the layer that was just written. */
int vv_index_cache_set_check(struct vv_index_cache *h, uint64_t layer, uint64_t check);
/* Writes a new cache to the store if enough layers came since the last one; a failure is
 * ignored. */
void vv_index_cache_save(const struct vv_lineage *lin, uint32_t rank, uint8_t digest_kind, uint64_t epoch,
		     struct vv_index_cache *h);
/* Removes the cache: before any layer that it may name is removed. */
int vv_index_cache_forget(const struct vv_lineage *lin, uint32_t rank);
/* Is the cache intact? VV_EDAMAGED names it; VV_ENOENT if there is none. */
int vv_index_cache_check(const struct vv_lineage *lin, uint32_t rank);

/* The chunk's digest in the parent epoch; NULL: unknown. */
static inline const struct vv_digest *vv_index_cache_was(const struct vv_index_cache *h, const struct vv_region *r, size_t i)
{
	if (r->was[i] >= VV_CHUNK_FIRST)
		return &h->index.digest[r->was[i] - VV_CHUNK_FIRST];
	return r->was[i] == VV_CHUNK_ZERO ? vv_region_zero(r, i) : NULL;
}

#endif
