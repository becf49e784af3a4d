/* Digests name content (16 bytes), checks protect stored bytes (8 bytes). XXH3 is the only reason
 * for xxhash.h here. */
#ifndef VV_CORE_FORMAT_DIGEST_H
#define VV_CORE_FORMAT_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct vv_digest {
	uint64_t w[2]; /* the 16 stored bytes, as they lie in memory */
};

enum vv_digest_kind { VV_DIGEST_XXH3 = 1, VV_DIGEST_SHA256 = 2 };

typedef void (*vv_digest_fn)(const void *p, size_t n, struct vv_digest *out);

/* The function of a kind, or NULL for an unknown kind. */
vv_digest_fn vv_digest_of_kind(unsigned kind);
/* XXH3-128, independent of the lineage's kind: for heads in commit records. */
void vv_digest_xxh3(const void *p, size_t n, struct vv_digest *out);
/* The same for a caller that will read at `next` afterwards, not behind these bytes: `next` is
 * prefetched. */
void vv_digest_xxh3_then(const void *p, size_t n, const void *next, struct vv_digest *out);

/* The digests of n adjacent grains of `chunk` bytes, of a known kind. */
void vv_digest_grains(unsigned kind, const void *p, size_t chunk, size_t n, struct vv_digest *out);
/* The digest of a node of a tree `height` above the leaves: XXH3-128 of its children's digests. */
void vv_digest_node(const struct vv_digest *left, const struct vv_digest *right, unsigned height, struct vv_digest *out);

static inline int vv_digest_equal(const struct vv_digest *a, const struct vv_digest *b)
{
	return a->w[0] == b->w[0] && a->w[1] == b->w[1];
}

/* XXH3-64 of stored bytes; the parts variant hashes their concatenation. */
struct iovec;
uint64_t vv_digest_check(const void *p, size_t n);
uint64_t vv_digest_check_parts(const struct iovec *iov, int n);

/* Copies n bytes and returns their check. The core waits for memory anyway, so the copy hides the
 * hashing. */
uint64_t vv_digest_check_copy(void *restrict to, const void *restrict from, size_t n);
/* Do the bytes have that XXH3 digest, which need not be aligned? For more than 240 bytes only 64
 * bits are compared, which are their check: the same protection as that of a block. */
bool vv_digest_fits(const void *p, size_t n, const struct vv_digest *want);
/* The same with a copy, which is made in any case; the caller will read at `next` afterwards. */
bool vv_digest_fits_copy(void *restrict to, const void *restrict from, size_t n, const void *next, const struct vv_digest *want);

/* The same in pieces: a caller that moves the bytes checks them while they are in the cache. */
struct vv_digest_stream {
	_Alignas(64) uint8_t opaque[576];
};
void vv_digest_stream_init(struct vv_digest_stream *s);
void vv_digest_stream_add(struct vv_digest_stream *s, const void *p, size_t n);
uint64_t vv_digest_stream_check(const struct vv_digest_stream *s);

#endif
