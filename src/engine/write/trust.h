/* Whether content of an earlier session may be referred to. */
#ifndef VV_ENGINE_WRITE_TRUST_H
#define VV_ENGINE_WRITE_TRUST_H

#include "engine/write/index_cache.h"

/* Is the entry's layer there, with the digests that the index has? */
bool vv_trust_layer(const struct vv_lineage *lin, struct vv_index_cache *h, uint32_t entry);
/* May the entry be referred to? Reads the block it is in, once. */
bool vv_trust_entry(const struct vv_lineage *lin, struct vv_index_cache *h, uint32_t entry);
/* The entry's bytes were just read and are whole. */
void vv_trust_give(struct vv_index_cache *h, uint32_t entry);
/* Is it known to be whole, without looking? */
bool vv_trust_known(const struct vv_index_cache *h, uint32_t entry);

#endif
