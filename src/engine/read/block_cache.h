/* Reads regions at any position, piece by piece. Each piece is where its block was decoded, so
 * nothing is copied. Blocks are decoded on all cores ahead of sequential readers, and held while
 * they are needed, within the memory limit. Blocks that were read to their end are dropped first,
 * then the least recently read. A plain block of a mapped file is not held. */
#ifndef VV_ENGINE_READ_BLOCK_CACHE_H
#define VV_ENGINE_READ_BLOCK_CACHE_H

#include "base/pool.h"
#include "base/progress.h"
#include "engine/lineage/catalog.h"
#include <stdbool.h>

struct vv_block_cache;
struct vv_block_cache_entry;

struct vv_block_cache_piece {
	const uint8_t *bytes;
	size_t len;
	struct vv_block_cache_entry *entry; /* NULL: zeros, which always exist */
};

/* Regions i = 0 .. n-1; their run tables stay the caller's. All layers are opened. memory:
 * approximate limit of decoded blocks; one is held, however large. */
int vv_block_cache_open(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_runs *const *runs, size_t n, uint64_t memory,
		  struct vv_block_cache **out);
/* NULL is fine; all pieces must be released before */
void vv_block_cache_close(struct vv_block_cache *s);

/* vv_block_cache_want marks the stored blocks of these bytes for a check; the check then reads them
 * without decoding. VV_EDAMAGED: *region needs the first bad one, at *at. */
void vv_block_cache_want(struct vv_block_cache *s, size_t region, uint64_t at, uint64_t len);
int vv_block_cache_check(struct vv_block_cache *s, const struct vv_progress *progress, size_t *region, uint64_t *at);

/* Gets the bytes at `at` of a region, at < its length: to the end of the run, or of the block. With
 * `help`, it decodes others while another thread decodes the block. */
int vv_block_cache_get(struct vv_block_cache *s, size_t region, uint64_t at, bool help, struct vv_block_cache_piece *out);
/* `read` bytes of the piece will not be requested again. If `borrowed`, another reader (a pipe) may
 * still access its pages by reference, so they are not written any more. */
void vv_block_cache_release(struct vv_block_cache *s, const struct vv_block_cache_piece *piece, size_t read, bool borrowed);
/* Copies n bytes from `at` on, which lie in the region. They are read once: see expect_again. A
 * mapped file that has changed meanwhile is an error. */
int vv_block_cache_copy(struct vv_block_cache *s, size_t region, uint64_t at, uint8_t *to, size_t n);
/* These bytes will be requested once more. */
void vv_block_cache_expect_again(struct vv_block_cache *s, size_t region, uint64_t at, uint64_t len);
/* A thread reads the region in order, and has come to `at`: begins to decode the following blocks.
 * The last argument, first 0, is the end of the submitted part. */
void vv_block_cache_read_ahead(struct vv_block_cache *s, size_t region, uint64_t at, uint64_t *submitted_end);

#endif
