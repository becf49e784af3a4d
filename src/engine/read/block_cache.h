/* Regions read at any place, piece by piece, each piece where its block was decoded to: nothing is put together, so nothing is copied. Blocks are
 * decoded on all cores ahead of who reads in order, and held while they are needed, as far as the memory goes: what was read to its end is the first
 * to go, then what was not read for longest. A plain block of a mapped file is not even held. */
#ifndef VV_ENGINE_READ_BLOCK_CACHE_H
#define VV_ENGINE_READ_BLOCK_CACHE_H

#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include <stdbool.h>

struct vv_block_cache;
struct vv_block_cache_entry;

struct vv_block_cache_piece {
	const uint8_t *bytes;
	size_t len;
	struct vv_block_cache_entry *entry; /* NULL: zeros, that are always there */
};

/* Regions i = 0 .. n-1; their run tables stay the caller's. All layers are opened. memory: of decoded blocks, about; one is held, however large. */
int vv_block_cache_open(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_runs *const *runs, size_t n, uint64_t memory,
		  struct vv_block_cache **out);
void vv_block_cache_close(struct vv_block_cache *s); /* NULL is fine; all pieces are given back */

/* Stored blocks that these bytes are in are to be checked; and then they are, read and not decoded. VV_EDAMAGED: *region needs the first bad one, at *at. */
void vv_block_cache_want(struct vv_block_cache *s, size_t region, uint64_t at, uint64_t len);
int vv_block_cache_check(struct vv_block_cache *s, size_t *region, uint64_t *at);

/* What is at `at` of a region, at < its length: to the end of the run, or of the block. Help: while another thread decodes it, decode others. */
int vv_block_cache_get(struct vv_block_cache *s, size_t region, uint64_t at, bool help, struct vv_block_cache_piece *out);
/* read: so much of the piece will not be asked for again. borrowed: somebody else (a pipe) may still look at its pages, by reference: they are not
 * written to any more. */
void vv_block_cache_release(struct vv_block_cache *s, const struct vv_block_cache_piece *piece, size_t read, bool borrowed);
/* These bytes will be asked for once more. */
void vv_block_cache_expect_again(struct vv_block_cache *s, size_t region, uint64_t at, uint64_t len);
/* Somebody reads the region in order, and has come to `at`: begins with what follows. *told, first 0, is how far that has gone. */
void vv_block_cache_read_ahead(struct vv_block_cache *s, size_t region, uint64_t at, uint64_t *told);

#endif
