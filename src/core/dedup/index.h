/* The digest index: content that some payload of the lineage holds already, and where.
 * Entries are numbered from 0 in the order they were added; numbers stay valid, and entries in place, while the caller
 * has reserved room for what it adds: so threads may compare with old entries while one thread adds new ones. */
#ifndef VV_CORE_DEDUP_INDEX_H
#define VV_CORE_DEDUP_INDEX_H

#include "core/format/digest.h"
#include "core/format/payload.h"
#include <stdint.h>

#define VV_INDEX_NONE UINT32_MAX
#define VV_INDEX_MAX (UINT32_MAX - 16)
enum { VV_INDEX_COST = 33 }; /* bytes of an entry at most: 24, up to 8 of slots, one of what is known of it elsewhere */

struct vv_index {
	struct vv_digest *digest; /* per entry */
	uint64_t *where;          /* its source number << 40 | position: read it with vv_index_layer and vv_index_pos */
	size_t n;
	size_t cap;
	uint32_t *slot; /* entry number + 1, and in the bits above it some of the digest; 0 = empty */
	size_t n_slots;
	uint32_t tag;   /* those bits */
	uint64_t *layer; /* by source number */
	size_t n_layers;
	size_t layers_cap;
};

void vv_index_fini(struct vv_index *x);
/* What n entries take. */
size_t vv_index_bytes(size_t n);
/* Room for n more entries, so that adding them moves none. */
int vv_index_reserve(struct vv_index *x, size_t n);
/* Brings the cache line that a later find or add of this digest needs. */
void vv_index_prefetch(const struct vv_index *x, const struct vv_digest *d);
uint32_t vv_index_find(const struct vv_index *x, const struct vv_digest *d);
/* Adds content not yet there; positions are below 2^40. */
int vv_index_add(struct vv_index *x, const struct vv_digest *d, uint64_t layer, uint64_t pos, uint32_t *number);
/* Adds content that is there already but cannot be used: the new place is found from now on. */
int vv_index_supersede(struct vv_index *x, const struct vv_digest *d, uint64_t layer, uint64_t pos, uint32_t *number);
/* The number of a source for entries of this layer, new or the last one; and gives an entry another place: engine/write/rank_dedup.c. */
int vv_index_source(struct vv_index *x, uint64_t layer, uint64_t *source);
int vv_index_add_from(struct vv_index *x, const struct vv_digest *d, uint64_t source, uint64_t pos, uint32_t *number);
void vv_index_move(struct vv_index *x, uint32_t number, uint64_t source, uint64_t pos);
/* The entry is of this content, not of the one that it was added for, which is not found any more; nor need the new one be. */
void vv_index_rename(struct vv_index *x, uint32_t number, const struct vv_digest *d);
/* Adds a layer's digests; content that is known already keeps its first place. */
int vv_index_add_layer(struct vv_index *x, uint64_t layer, const struct vv_digests *d);
/* Forgets every entry numbered n or above; needs no memory, so it cannot fail. */
void vv_index_truncate(struct vv_index *x, size_t n);
/* Forgets every entry whose `moved` is 0, and the sources that no other names. The rest keeps its order: moved[i] becomes 1 + the new
 * number, and so does source[k], per source, which comes as zeros. VV_ENOMEM: nothing has changed. */
int vv_index_compact(struct vv_index *x, uint32_t *moved, uint32_t *source);
/* The first entry that does not lie before a place, or n, among entries [0, n) which must have been added in ascending (layer, pos) order; and the one that lies there. */
size_t vv_index_first(const struct vv_index *x, size_t n, uint64_t layer, uint64_t pos);
uint32_t vv_index_at(const struct vv_index *x, size_t n, uint64_t layer, uint64_t pos);
/* The same where it is likely to be `hint`. */
uint32_t vv_index_near(const struct vv_index *x, size_t n, uint64_t layer, uint64_t pos, uint32_t hint);

/* The number of its source. */
static inline size_t vv_index_from(const struct vv_index *x, uint32_t i)
{
	return (size_t)(x->where[i] >> 40);
}

static inline uint64_t vv_index_layer(const struct vv_index *x, uint32_t i)
{
	return x->layer[vv_index_from(x, i)];
}

static inline uint64_t vv_index_pos(const struct vv_index *x, uint32_t i)
{
	return x->where[i] & ((1ull << 40) - 1);
}

#endif
