/* Decides whether content of an earlier session may be referred to. */
#ifndef VV_ENGINE_WRITE_TRUST_H
#define VV_ENGINE_WRITE_TRUST_H

#include "engine/write/index_cache.h"

/* Is the entry's layer there, with the digests that the index has? */
bool vv_trust_check_layer(const struct vv_lineage *lin, struct vv_index_cache *h, uint32_t entry);
/* May the entry be referred to? Reads its block, once. */
bool vv_trust_check_entry(const struct vv_lineage *lin, struct vv_index_cache *h, uint32_t entry);
/* The entry's bytes were just read and are intact. */
void vv_trust_mark_good(struct vv_index_cache *h, uint32_t entry);
/* Is it known to be intact, without reading? */
bool vv_trust_is_verified(const struct vv_index_cache *h, uint32_t entry);

#endif
