/* XXH3 through the xxhash header alone (inlined: short chunks would pay for a call), SHA-256 by our own base/sha256. */
#include "core/digest.h"
#include "base/sha256.h"
#include <sys/uio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(struct vv_digest_stream), "stream state too small");

static void canonical(XXH128_hash_t h, struct vv_digest *out)
{
	XXH128_canonical_t c;

	XXH128_canonicalFromHash(&c, h);
	memcpy(out, c.digest, sizeof(*out));
}

void vv_digest_xxh3(const void *p, size_t n, struct vv_digest *out)
{
	canonical(XXH3_128bits(p, n), out);
}

static void sha256_short(const void *p, size_t n, struct vv_digest *out)
{
	uint8_t full[32];

	vv_sha256_of(p, n, full);
	memcpy(out, full, sizeof(*out));
}

vv_digest_fn vv_digest_of_kind(unsigned kind)
{
	return kind == VV_DIGEST_XXH3 ? vv_digest_xxh3 : kind == VV_DIGEST_SHA256 ? sha256_short : NULL;
}

/* Inlined where the length is a constant: then nothing is left of XXH3's choice among its ways. */
static inline __attribute__((always_inline)) void xxh3_grains(const uint8_t *p, size_t chunk, size_t n, struct vv_digest *out)
{
	for (size_t i = 0; i < n; i++)
		canonical(XXH3_128bits(p + i * chunk, chunk), out + i);
}

void vv_digest_grains(unsigned kind, const void *p, size_t chunk, size_t n, struct vv_digest *out)
{
	if (kind == VV_DIGEST_SHA256) {
		for (size_t i = 0; i < n; i++)
			sha256_short((const uint8_t *)p + i * chunk, chunk, out + i);
		return;
	}
	switch (chunk) {
	case 32:
		xxh3_grains(p, 32, n, out);
		break;
	case 64:
		xxh3_grains(p, 64, n, out);
		break;
	case 128:
		xxh3_grains(p, 128, n, out);
		break;
	case 256:
		xxh3_grains(p, 256, n, out);
		break;
	default:
		xxh3_grains(p, chunk, n, out);
	}
}

void vv_digest_node(const struct vv_digest *left, const struct vv_digest *right, unsigned height, struct vv_digest *out)
{
	struct vv_digest both[2] = { *left, *right };

	canonical(XXH3_128bits_withSeed(both, sizeof(both), height), out);
}

uint64_t vv_digest_check(const void *p, size_t n)
{
	return XXH3_64bits(p, n);
}

uint64_t vv_digest_check_parts(const struct iovec *iov, int n)
{
	struct vv_digest_stream s;

	if (n == 1)
		return XXH3_64bits(iov->iov_base, iov->iov_len);
	vv_digest_stream_init(&s);
	for (int i = 0; i < n; i++)
		vv_digest_stream_add(&s, iov[i].iov_base, iov[i].iov_len);
	return vv_digest_stream_check(&s);
}

/* XXH3 keeps one state for its 64 and 128 bit results over long inputs, but the two finish differently and reset
 * alike; the 128-bit update is the 64-bit update. */
void vv_digest_stream_init(struct vv_digest_stream *s)
{
	XXH3_64bits_reset((XXH3_state_t *)s->opaque);
}

void vv_digest_stream_add(struct vv_digest_stream *s, const void *p, size_t n)
{
	XXH3_64bits_update((XXH3_state_t *)s->opaque, p, n);
}

uint64_t vv_digest_stream_check(const struct vv_digest_stream *s)
{
	return XXH3_64bits_digest((const XXH3_state_t *)s->opaque);
}

void vv_digest_stream_digest(const struct vv_digest_stream *s, struct vv_digest *out)
{
	canonical(XXH3_128bits_digest((const XXH3_state_t *)s->opaque), out);
}

/* XXH3 of a long input as its specification has it, over the header's own inner loop, with the copy inside. The names of
 * that loop are not the library's interface, so versions that were not tried take two passes. */
#if XXH_VERSION_NUMBER >= 800 && XXH_VERSION_NUMBER <= 802
enum { STRIPE = 64, STRIPES = (sizeof(XXH3_kSecret) - STRIPE) / 8, BLOCK = STRIPE * STRIPES };

/* Far enough that memory has answered when the loop gets there. Into the second cache: the first cannot wait for so many lines at
 * once (4 KiB pages from all over memory, Neoverse V1: 400 ns each; by way of the first cache 455, unaided 570). */
enum { AHEAD = 2048, SECOND = 2 };

/* n > BLOCK bytes. What comes AHEAD bytes later is fetched meanwhile: beyond the end that is `next`. */
static inline void accumulate_copy(xxh_u64 *acc, uint8_t *out, const uint8_t *in, size_t n, const uint8_t *next)
{
	size_t at = 0, ahead = n < AHEAD ? n : AHEAD;

	for (; at + BLOCK < n; at += BLOCK) {
		const uint8_t *later = at + ahead < n ? in + at + ahead : next + (at + ahead - n);

		for (size_t k = 0; k < STRIPES; k++) {
			const uint8_t *s = in + at + k * STRIPE;

			__builtin_prefetch(later + k * STRIPE, 0, SECOND);
			XXH3_accumulate_512(acc, s, XXH3_kSecret + k * 8);
			memcpy(out + at + k * STRIPE, s, STRIPE);
		}
		XXH3_scrambleAcc(acc, XXH3_kSecret + sizeof(XXH3_kSecret) - STRIPE);
	}
	next += at + ahead - n;
	for (size_t k = 0; at + (k + 1) * STRIPE < n; k++) {
		__builtin_prefetch(next + k * STRIPE, 0, SECOND);
		XXH3_accumulate_512(acc, in + at + k * STRIPE, XXH3_kSecret + k * 8);
	}
	XXH3_accumulate_512(acc, in + n - STRIPE, XXH3_kSecret + sizeof(XXH3_kSecret) - STRIPE - 7);
	memcpy(out + at, in + at, n - at);
}

static uint64_t merge_low(const xxh_u64 *acc, size_t n)
{
	return XXH3_mergeAccs(acc, XXH3_kSecret + 11, (xxh_u64)n * XXH_PRIME64_1);
}

uint64_t vv_digest_check_copy(void *restrict to, const void *restrict from, size_t n)
{
	_Alignas(64) xxh_u64 acc[8] = XXH3_INIT_ACC;

	if (n <= BLOCK) {
		memcpy(to, from, n);
		return XXH3_64bits(to, n);
	}
	accumulate_copy(acc, to, from, n, (const uint8_t *)from + n);
	return merge_low(acc, n);
}

void vv_digest_xxh3_copy(void *restrict to, const void *restrict from, size_t n, const void *next, struct vv_digest *out)
{
	_Alignas(64) xxh_u64 acc[8] = XXH3_INIT_ACC;
	const uint8_t *secret = XXH3_kSecret + sizeof(XXH3_kSecret) - sizeof(acc) - 11;
	XXH128_hash_t h;

	if (n <= BLOCK) {
		__builtin_prefetch(next);
		memcpy(to, from, n);
		vv_digest_xxh3(to, n, out);
		return;
	}
	accumulate_copy(acc, to, from, n, next);
	h.low64 = merge_low(acc, n);
	h.high64 = XXH3_mergeAccs(acc, secret, ~((xxh_u64)n * XXH_PRIME64_2));
	canonical(h, out);
}
#else
uint64_t vv_digest_check_copy(void *restrict to, const void *restrict from, size_t n)
{
	memcpy(to, from, n);
	return XXH3_64bits(to, n);
}

void vv_digest_xxh3_copy(void *restrict to, const void *restrict from, size_t n, const void *next, struct vv_digest *out)
{
	__builtin_prefetch(next);
	memcpy(to, from, n);
	vv_digest_xxh3(to, n, out);
}
#endif
