/* XXH3 through the xxhash header alone (inlined: short chunks would pay for a call), SHA-256 by our own base/sha256. */
#include "core/digest.h"
#include "base/sha256.h"
#include <stdbool.h>
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

/* The half of a digest that is the check of the same bytes, if they are more than XXH3_MIDSIZE_MAX. */
static uint64_t check_of(const struct vv_digest *d)
{
	return XXH_readBE64((const uint8_t *)d + sizeof(*d) - 8);
}

/* XXH3 of a long input as its specification has it, with a copy inside. The names of the header's steps are not the library's
 * interface, so versions that were not tried take two passes. */
#if XXH_VERSION_NUMBER >= 800 && XXH_VERSION_NUMBER <= 802
enum { SHORT = XXH3_MIDSIZE_MAX, STRIPE = 64, STRIPES = (sizeof(XXH3_kSecret) - STRIPE) / 8, BLOCK = STRIPE * STRIPES };

#if XXH_VECTOR == XXH_NEON && defined(__aarch64__)
enum { QUICKER = true }; /* than the header's loop, also where nothing is copied */

struct sums {
	uint64x2_t v[4];
};

/* Two pairs of lanes. They are taken apart together, which is half of what the header does, pair by pair: a core with two vector units
 * is busy with that (Neoverse N1, 4 KiB pages from all over memory, copied: 700 ns each, by the header's way 880, memcpy alone 570). */
static inline void add_pairs(uint64x2_t *v, uint8x16_t a, uint8x16_t b, const uint8_t *secret)
{
	uint32x4_t x = vreinterpretq_u32_u8(veorq_u8(a, vld1q_u8(secret)));
	uint32x4_t y = vreinterpretq_u32_u8(veorq_u8(b, vld1q_u8(secret + 16)));
	uint32x4_t low = vuzp1q_u32(x, y), high = vuzp2q_u32(x, y);

	v[0] = vaddq_u64(v[0], vmlal_u32(vreinterpretq_u64_u8(vextq_u8(a, a, 8)), vget_low_u32(low), vget_low_u32(high)));
	v[1] = vaddq_u64(v[1], vmlal_high_u32(vreinterpretq_u64_u8(vextq_u8(b, b, 8)), low, high));
}

static inline void add(struct sums *s, uint8_t *out, const uint8_t *in, const uint8_t *secret)
{
	uint8x16_t a = vld1q_u8(in), b = vld1q_u8(in + 16), c = vld1q_u8(in + 32), d = vld1q_u8(in + 48);

	add_pairs(s->v, a, b, secret);
	add_pairs(s->v + 2, c, d, secret + 32);
	if (!out)
		return;
	vst1q_u8(out, a);
	vst1q_u8(out + 16, b);
	vst1q_u8(out + 32, c);
	vst1q_u8(out + 48, d);
}
#else
enum { QUICKER = false };

struct sums {
	_Alignas(STRIPE) uint64_t v[8];
};

static inline void add(struct sums *s, uint8_t *out, const uint8_t *in, const uint8_t *secret)
{
	XXH3_accumulate_512(s->v, in, secret);
	if (out)
		memcpy(out, in, STRIPE);
}
#endif

static inline void scramble(struct sums *s)
{
	_Alignas(STRIPE) uint64_t acc[8];

	memcpy(acc, s, sizeof(acc));
	XXH3_scrambleAcc(acc, XXH3_kSecret + sizeof(XXH3_kSecret) - STRIPE);
	memcpy(s, acc, sizeof(acc));
}

/* Far enough that memory has answered when the loop gets there. What lies elsewhere goes to the second cache: the first cannot wait for
 * so many lines at once (4 KiB pages from all over memory, Neoverse V1: 400 ns each; by way of the first cache 455, unaided 570). What
 * follows goes to the first: the core has begun to fetch it anyway (Neoverse N1: 430 ns, by way of the second 510). Where nothing is copied less is enough
 * (every tenth page, Neoverse N1: 560 ns each, with the longer way 685, unaided 800). */
enum { AHEAD = 2048, AHEAD_ELSEWHERE = 1024, SECOND = 2, FIRST = 3 };

static inline __attribute__((always_inline)) void fetch(const uint8_t *p, bool follows)
{
	if (follows)
		__builtin_prefetch(p, 0, FIRST);
	else
		__builtin_prefetch(p, 0, SECOND);
}

/* n > SHORT bytes; out may be NULL. What comes AHEAD bytes later is fetched meanwhile: beyond the end that is `next`. */
static inline __attribute__((always_inline)) void sum(uint64_t acc[8], uint8_t *restrict out, const uint8_t *restrict in, size_t n,
						      const uint8_t *next, bool follows)
{
	static const uint64_t start[8] = XXH3_INIT_ACC;
	size_t at = 0, far = out || follows ? AHEAD : AHEAD_ELSEWHERE, ahead = n < far ? n : far;
	struct sums s;

	memcpy(&s, start, sizeof(start));
	for (; at + BLOCK < n; at += BLOCK) {
		const uint8_t *later = at + ahead < n ? in + at + ahead : next + (at + ahead - n);

		for (size_t k = 0; k < STRIPES; k++) {
			fetch(later + k * STRIPE, follows);
			add(&s, out ? out + at + k * STRIPE : NULL, in + at + k * STRIPE, XXH3_kSecret + k * 8);
		}
		scramble(&s);
	}
	next += at + ahead - n;
	for (size_t k = 0; at + STRIPE < n; at += STRIPE, k++, next += STRIPE) {
		fetch(next, follows);
		add(&s, out ? out + at : NULL, in + at, XXH3_kSecret + k * 8);
	}
	fetch(next, follows);
	add(&s, out ? out + n - STRIPE : NULL, in + n - STRIPE, XXH3_kSecret + sizeof(XXH3_kSecret) - STRIPE - 7);
	memcpy(acc, &s, sizeof(start));
}

static uint64_t merge(const uint64_t *acc, size_t n)
{
	return XXH3_mergeAccs(acc, XXH3_kSecret + 11, (xxh_u64)n * XXH_PRIME64_1);
}

static void merge_both(const uint64_t *acc, size_t n, struct vv_digest *out)
{
	const uint8_t *secret = XXH3_kSecret + sizeof(XXH3_kSecret) - STRIPE - 11;

	canonical((XXH128_hash_t){ merge(acc, n), XXH3_mergeAccs(acc, secret, ~((xxh_u64)n * XXH_PRIME64_2)) }, out);
}

void vv_digest_xxh3(const void *p, size_t n, struct vv_digest *out)
{
	vv_digest_xxh3_then(p, n, (const uint8_t *)p + n, out);
}

void vv_digest_xxh3_then(const void *p, size_t n, const void *next, struct vv_digest *out)
{
	_Alignas(STRIPE) uint64_t acc[8];

	if (n <= SHORT || !QUICKER) {
		canonical(XXH3_128bits(p, n), out);
		return;
	}
	if (next == (const uint8_t *)p + n)
		sum(acc, NULL, p, n, next, true);
	else
		sum(acc, NULL, p, n, next, false);
	merge_both(acc, n, out);
}

uint64_t vv_digest_check(const void *p, size_t n)
{
	_Alignas(STRIPE) uint64_t acc[8];

	if (n <= SHORT || !QUICKER)
		return XXH3_64bits(p, n);
	sum(acc, NULL, p, n, (const uint8_t *)p + n, true);
	return merge(acc, n);
}

uint64_t vv_digest_check_copy(void *restrict to, const void *restrict from, size_t n)
{
	_Alignas(STRIPE) uint64_t acc[8];

	if (n <= SHORT) {
		memcpy(to, from, n);
		return XXH3_64bits(to, n);
	}
	sum(acc, to, from, n, (const uint8_t *)from + n, true);
	return merge(acc, n);
}

bool vv_digest_fits_copy(void *restrict to, const void *restrict from, size_t n, const void *next, const struct vv_digest *want)
{
	_Alignas(STRIPE) uint64_t acc[8];

	if (n <= SHORT) {
		__builtin_prefetch(next);
		memcpy(to, from, n);
		return vv_digest_fits(to, n, want);
	}
	if (next == (const uint8_t *)from + n)
		sum(acc, to, from, n, next, true);
	else
		sum(acc, to, from, n, next, false);
	return merge(acc, n) == check_of(want);
}
#else
void vv_digest_xxh3(const void *p, size_t n, struct vv_digest *out)
{
	canonical(XXH3_128bits(p, n), out);
}

void vv_digest_xxh3_then(const void *p, size_t n, const void *next, struct vv_digest *out)
{
	__builtin_prefetch(next);
	vv_digest_xxh3(p, n, out);
}

uint64_t vv_digest_check(const void *p, size_t n)
{
	return XXH3_64bits(p, n);
}

uint64_t vv_digest_check_copy(void *restrict to, const void *restrict from, size_t n)
{
	memcpy(to, from, n);
	return XXH3_64bits(to, n);
}

bool vv_digest_fits_copy(void *restrict to, const void *restrict from, size_t n, const void *next, const struct vv_digest *want)
{
	__builtin_prefetch(next);
	memcpy(to, from, n);
	return vv_digest_fits(to, n, want);
}
#endif

bool vv_digest_fits(const void *p, size_t n, const struct vv_digest *want)
{
	struct vv_digest got;

	if (n > XXH3_MIDSIZE_MAX)
		return vv_digest_check(p, n) == check_of(want);
	canonical(XXH3_128bits(p, n), &got);
	return vv_digest_equal(&got, want);
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

uint64_t vv_digest_check_parts(const struct iovec *iov, int n)
{
	struct vv_digest_stream s;

	if (n == 1)
		return vv_digest_check(iov->iov_base, iov->iov_len);
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
