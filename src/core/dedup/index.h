/* The digest index: content that some payload of the lineage holds already, and its place. Entries
 * are numbered from 0 in the order they were added. Numbers stay valid. Entries stay in place while
 * the caller has reserved room for its additions. Threads may therefore compare with old entries
 * while one thread adds new ones. */
#ifndef VV_CORE_DEDUP_INDEX_H
#define VV_CORE_DEDUP_INDEX_H

#include "core/format/digest.h"
#include "core/format/payload.h"
#include <stdint.h>

#define VV_INDEX_NONE UINT32_MAX
#define VV_INDEX_MAX (UINT32_MAX - 16)
/* Bytes of an entry at most: 24 of digest and place, up to 8 of slots, and one for the bit of
 * `supersedes` and the caller's notes. */
enum { VV_INDEX_COST = 33 };

struct vv_index {
	struct vv_digest *digest; /* per entry */
	/* its source number << 40 | position: read it with vv_index_layer and vv_index_pos */
	uint64_t *where;
	uint8_t *supersedes; /* a bit per entry: 1: it is found in place of an older one with its content */
	size_t n;
	size_t cap;
	/* entry number + 1, and in the bits above it some of the digest; 0 = empty */
	uint32_t *slot;
	size_t n_slots;
	uint32_t tag;   /* those bits */
	uint64_t *layer; /* by source number */
	size_t n_layers;
	size_t layers_cap;
};

void vv_index_fini(struct vv_index *x);
/* The memory of n entries in bytes. */
size_t vv_index_bytes(size_t n);
/* Makes room for n more entries, so that adding them moves none. */
int vv_index_reserve(struct vv_index *x, size_t n);
/* Prefetches the cache line that a later find or add of this digest needs. */
void vv_index_prefetch(const struct vv_index *x, const struct vv_digest *d);
uint32_t vv_index_find(const struct vv_index *x, const struct vv_digest *d);
/* Adds content that is not in the index; positions are below 2^40. */
int vv_index_add(struct vv_index *x, const struct vv_digest *d, uint64_t layer, uint64_t pos, uint32_t *number);
/* Adds content that is in the index but cannot be used: from now on the new place is found. */
int vv_index_supersede(struct vv_index *x, const struct vv_digest *d, uint64_t layer, uint64_t pos, uint32_t *number);
/* These serve engine/write/rank_dedup.c. The first gives the number of a source for entries of this
 * layer: that of the last source if it fits, else a new one. The last gives an entry another
 * place. */
int vv_index_source(struct vv_index *x, uint64_t layer, uint64_t *source);
int vv_index_add_from(struct vv_index *x, const struct vv_digest *d, uint64_t source, uint64_t pos, uint32_t *number);
void vv_index_move(struct vv_index *x, uint32_t number, uint64_t source, uint64_t pos);
/* Gives the entry this content in place of its old one. The old content is not found any more; the
 * new content need not be found. */
void vv_index_rename(struct vv_index *x, uint32_t number, const struct vv_digest *d);
/* Adds a layer's digests; content that is known already keeps its first place. */
int vv_index_add_layer(struct vv_index *x, uint64_t layer, const struct vv_digests *d);
/* Forgets every entry numbered n or above, and the entries that it superseded are found again. It
 * needs no memory, so it cannot fail. */
void vv_index_truncate(struct vv_index *x, size_t n);
/* Forgets every entry whose `moved` is 0, and the sources that no other names. The rest keeps its
 * order: moved[i] becomes 1 + the new number, and so does source[k], per source, which comes as
 * zeros. */
void vv_index_compact(struct vv_index *x, uint32_t *moved, uint32_t *source);
/* vv_index_first: the first entry of [0, n) that does not lie before a place, or n. vv_index_at:
 * the entry at that place. The entries must have been added in ascending (layer, pos) order. */
size_t vv_index_first(const struct vv_index *x, size_t n, uint64_t layer, uint64_t pos);
uint32_t vv_index_at(const struct vv_index *x, size_t n, uint64_t layer, uint64_t pos);
/* As vv_index_at, if the entry is likely to be `hint`. */
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
