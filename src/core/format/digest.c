/* XXH3 through the xxhash header alone (inlined, because a call is expensive for short chunks),
 * SHA-256 by base/sha256. The loops are compiled once for each level of the processor's vector
 * units (base/cpu.h). */
#include "core/format/digest.h"
#include "base/cpu.h"
#include "base/sha256.h"
#include <sys/uio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(struct vv_digest_stream), "stream state too small");

/* The functions of a level: for one long input, and for many short ones. */
struct digest_loops {
	void (*xxh3)(const uint8_t *p, size_t n, const uint8_t *next, struct vv_digest *out);
	uint64_t (*check)(const uint8_t *p, size_t n);
	uint64_t (*check_copy)(uint8_t *restrict to, const uint8_t *restrict from, size_t n);
	uint64_t (*check_copy_then)(uint8_t *restrict to, const uint8_t *restrict from, size_t n, const uint8_t *next);
	void (*grains)(const uint8_t *p, size_t chunk, size_t n, struct vv_digest *out);
	void (*add)(XXH3_state_t *s, const uint8_t *p, size_t n);
};

VV_CPU_TABLES(struct digest_loops, vv_digest_loops);

static void canonical(XXH128_hash_t h, struct vv_digest *out)
{
	XXH128_canonical_t c;

	XXH128_canonicalFromHash(&c, h);
	memcpy(out, c.digest, sizeof(*out));
}

enum { SHORT = 240 }; /* bytes: XXH3 has no loops for inputs up to this length */

/* XXH3 of a long input as its specification has it, with a copy inside. The names of the header's
 * steps are not the library's interface, so untested versions take two passes. */
#if XXH_VERSION_NUMBER >= 800 && XXH_VERSION_NUMBER <= 803 && (defined(__SSE2__) || (XXH_VECTOR == XXH_NEON && defined(__aarch64__)))
enum { STRIPE = 64, STRIPES = (sizeof(XXH3_kSecret) - STRIPE) / 8, BLOCK = STRIPE * STRIPES };

#if defined(__AVX512F__)
#define WIDTH 64
#define MULTIPLY(a, b) _mm512_mul_epu32((__m512i)(a), (__m512i)(b))
#define SWAP(v) _mm512_shuffle_epi32((__m512i)(v), _MM_PERM_BADC)
#elif defined(__AVX2__)
#define WIDTH 32
#define MULTIPLY(a, b) _mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#define SWAP(v) _mm256_shuffle_epi32((__m256i)(v), _MM_SHUFFLE(1, 0, 3, 2))
#elif defined(__SSE2__)
#define WIDTH 16
#define MULTIPLY(a, b) _mm_mul_epu32((__m128i)(a), (__m128i)(b))
#define SWAP(v) _mm_shuffle_epi32((__m128i)(v), _MM_SHUFFLE(1, 0, 3, 2))
#else
#define WIDTH 16
#define MULTIPLY(a, b) vmull_u32(vmovn_u64((uint64x2_t)(a)), vmovn_u64((uint64x2_t)(b)))
#define SWAP(v) vextq_u64((uint64x2_t)(v), (uint64x2_t)(v), 1)
#endif

enum { VECTORS = STRIPE / WIDTH };

typedef uint64_t lanes __attribute__((vector_size(WIDTH)));
/* unaligned */
typedef uint64_t any_lanes __attribute__((vector_size(WIDTH), aligned(1), may_alias));

/* XXH3 adds to a lane the product of the halves of its input, and the input of the lane beside it.
 * The latter are exchanged at the end of a block, not with every input, so they have sums of their
 * own. */
struct digest_sums {
	lanes product[VECTORS], beside[VECTORS];
};

#if defined(__SSE2__)
static inline __attribute__((always_inline)) void add(struct digest_sums *s, uint8_t *out, const uint8_t *in, const uint8_t *secret)
{
	for (size_t k = 0; k < VECTORS; k++) {
		lanes v = *(const any_lanes *)(in + k * WIDTH), x = v ^ *(const any_lanes *)(secret + k * WIDTH);

		s->product[k] += (lanes)MULTIPLY(x, x >> 32);
		s->beside[k] += v;
		if (out)
			*(any_lanes *)(out + k * WIDTH) = v;
	}
}
#else
/* Adds two pairs of lanes. Splitting them together is half of the header's work, which splits pair
 * by pair. The splitting limits a core with two vector units. Measured on a Neoverse N1 with
 * scattered 4 KiB pages, copied: 700 ns each, with the header's method 880, memcpy alone 570. */
static inline void add_pairs(struct digest_sums *s, size_t k, uint8_t *out, const uint8_t *in, const uint8_t *secret)
{
	uint64x2_t a = vreinterpretq_u64_u8(vld1q_u8(in)), b = vreinterpretq_u64_u8(vld1q_u8(in + 16));
	uint32x4_t x = vreinterpretq_u32_u64(a ^ vreinterpretq_u64_u8(vld1q_u8(secret)));
	uint32x4_t y = vreinterpretq_u32_u64(b ^ vreinterpretq_u64_u8(vld1q_u8(secret + 16)));
	uint32x4_t low = vuzp1q_u32(x, y), high = vuzp2q_u32(x, y);

	s->product[k] = (lanes)vmlal_u32((uint64x2_t)s->product[k], vget_low_u32(low), vget_low_u32(high));
	s->product[k + 1] = (lanes)vmlal_high_u32((uint64x2_t)s->product[k + 1], low, high);
	s->beside[k] += (lanes)a;
	s->beside[k + 1] += (lanes)b;
	if (!out)
		return;
	vst1q_u8(out, vreinterpretq_u8_u64(a));
	vst1q_u8(out + 16, vreinterpretq_u8_u64(b));
}

static inline __attribute__((always_inline)) void add(struct digest_sums *s, uint8_t *out, const uint8_t *in, const uint8_t *secret)
{
	add_pairs(s, 0, out, in, secret);
	add_pairs(s, 2, out ? out + 32 : NULL, in + 32, secret + 32);
}
#endif

static inline __attribute__((always_inline)) void exchange(struct digest_sums *s)
{
	for (size_t k = 0; k < VECTORS; k++)
		s->product[k] += (lanes)SWAP(s->beside[k]);
}

static inline __attribute__((always_inline)) void scramble(struct digest_sums *s)
{
	const uint8_t *secret = XXH3_kSecret + sizeof(XXH3_kSecret) - STRIPE;
	const lanes prime = (lanes){ 0 } + XXH_PRIME32_1;

	exchange(s);
	for (size_t k = 0; k < VECTORS; k++) {
		lanes v = s->product[k];

		v ^= v >> 47 ^ *(const any_lanes *)(secret + k * WIDTH);
		s->product[k] = (lanes)MULTIPLY(v, prime) + ((lanes)MULTIPLY(v >> 32, prime) << 32);
		s->beside[k] = (lanes){ 0 };
	}
}

/* The prefetch distance: far enough that the data has arrived when the loop reaches it. Scattered
 * pages go to the second-level cache, because the first cannot wait for so many lines at once.
 * Pages of 4 KiB are therefore prefetched a page ahead. Measured on a Neoverse V1, scattered and
 * copied: 300 ns each, half a page ahead 370 to 400. Through the first-level cache it takes 540 ns,
 * without prefetches 590. On a Xeon half a page is better by 2 %. Adjacent pages go to the
 * first-level cache: the core has begun to fetch them anyway. Measured on a Neoverse N1: 430 ns,
 * through the second-level cache 510. Without a copy a shorter distance is enough. Measured on a
 * Neoverse N1 with every tenth page: 560 ns each, 2 KiB ahead 685, without prefetches 800. */
#if defined(__aarch64__)
enum { AHEAD_COPIED_ELSEWHERE = 4096, ONE_LOOP = true };
#else
enum { AHEAD_COPIED_ELSEWHERE = 2048, ONE_LOOP = false };
#endif
enum { AHEAD = 2048, AHEAD_ELSEWHERE = 1024, SECOND = 2, FIRST = 3 };

static inline __attribute__((always_inline)) void fetch(const uint8_t *p, bool follows)
{
	if (follows)
		__builtin_prefetch(p, 0, FIRST);
	else
		__builtin_prefetch(p, 0, SECOND);
}

/* The last stripe of an input has a secret of its own. It begins a byte after the secret of a
 * block's last stripe. */
static inline __attribute__((always_inline)) void add_block(struct digest_sums *s, uint8_t *out, const uint8_t *in, const uint8_t *later,
							    bool follows, bool last)
{
	enum { END = STRIPE * (STRIPES - 1) };

	for (size_t k = 0; k < STRIPES - 1; k++) {
		fetch(later + k * STRIPE, follows);
		add(s, out ? out + k * STRIPE : NULL, in + k * STRIPE, XXH3_kSecret + k * 8);
	}
	fetch(later + END, follows);
	add(s, out ? out + END : NULL, in + END, XXH3_kSecret + (STRIPES - 1) * 8 + last);
}

/* Adds the rest of an input that does not end with a block. */
static inline __attribute__((always_inline)) void add_rest(struct digest_sums *s, uint8_t *out, const uint8_t *in, size_t n, const uint8_t *next,
							   bool follows)
{
	const uint8_t *secret = XXH3_kSecret;

	for (size_t at = 0; at + STRIPE < n; at += STRIPE, next += STRIPE, secret += 8) {
		fetch(next, follows);
		add(s, out ? out + at : NULL, in + at, secret);
	}
	fetch(next, follows);
	add(s, out ? out + n - STRIPE : NULL, in + n - STRIPE, XXH3_kSecret + sizeof(XXH3_kSecret) - STRIPE - 7);
}

/* Sums n > SHORT bytes; out may be NULL. Later bytes are prefetched in the meantime; the bytes at
 * `next` follow the end. A complete last block goes through the loop of all other blocks. A core
 * recognizes a sequential read by its instructions, and would start again with each chunk. Measured
 * on a Neoverse V1, adjacent 4 KiB chunks, copied: 227 ns each, with a separate loop for last
 * blocks 283. */
static inline __attribute__((always_inline)) void sum(uint64_t acc[8], uint8_t *restrict out, const uint8_t *restrict in, size_t n,
						      const uint8_t *next, bool follows)
{
	static const uint64_t start[8] = XXH3_INIT_ACC;
	size_t at = 0, far = follows ? AHEAD : out ? AHEAD_COPIED_ELSEWHERE : AHEAD_ELSEWHERE, ahead = n < far ? n : far;
	struct digest_sums s = { 0 };

	memcpy(s.product, start, sizeof(start));
	if (!follows)
		/* data that does not begin at a cache line ends in one more line */
		fetch(next + ahead - 1, false);
	for (; at + BLOCK <= n; at += BLOCK) {
		const uint8_t *later = at + ahead < n ? in + at + ahead : next + (at + ahead - n);
		bool last = at + BLOCK == n;

		add_block(&s, out ? out + at : NULL, in + at, later, follows, last);
		if (!last)
			scramble(&s);
	}
	if (at < n)
		add_rest(&s, out ? out + at : NULL, in + at, n - at, next + (at + ahead - n), follows);
	exchange(&s);
	for (size_t k = 0; k < 8; k++)
		acc[k] = s.product[k * 8 / WIDTH][k % (WIDTH / 8)];
}

/* XXH3_mergeAccs, but the sums need not go through memory. */
static inline __attribute__((always_inline)) uint64_t merge_with(const uint64_t *acc, const uint8_t *secret, uint64_t start)
{
	for (size_t k = 0; k < 8; k += 2)
		start += XXH3_mul128_fold64(acc[k] ^ XXH_readLE64(secret + 8 * k), acc[k + 1] ^ XXH_readLE64(secret + 8 * k + 8));
	return XXH3_avalanche(start);
}

static inline __attribute__((always_inline)) uint64_t merge(const uint64_t *acc, size_t n)
{
	return merge_with(acc, XXH3_kSecret + 11, (uint64_t)n * XXH_PRIME64_1);
}

static inline __attribute__((always_inline)) void merge_both(const uint64_t *acc, size_t n, struct vv_digest *out)
{
	const uint8_t *secret = XXH3_kSecret + sizeof(XXH3_kSecret) - STRIPE - 11;

	canonical((XXH128_hash_t){ merge(acc, n), merge_with(acc, secret, ~((uint64_t)n * XXH_PRIME64_2)) }, out);
}

static inline __attribute__((always_inline)) void xxh3(const uint8_t *p, size_t n, const uint8_t *next, struct vv_digest *out)
{
	uint64_t acc[8];

	if (next == p + n)
		sum(acc, NULL, p, n, next, true);
	else
		sum(acc, NULL, p, n, next, false);
	merge_both(acc, n, out);
}

static uint64_t check(const uint8_t *p, size_t n)
{
	uint64_t acc[8];

	sum(acc, NULL, p, n, p + n, true);
	return merge(acc, n);
}

static uint64_t check_copy(uint8_t *restrict to, const uint8_t *restrict from, size_t n)
{
	uint64_t acc[8];

	sum(acc, to, from, n, from + n, true);
	return merge(acc, n);
}

/* A core may recognize a sequential read by its instructions. With ONE_LOOP, alternating loops
 * would make such a core start again all the time. */
static uint64_t check_copy_then(uint8_t *restrict to, const uint8_t *restrict from, size_t n, const uint8_t *next)
{
	uint64_t acc[8];

	if (!ONE_LOOP && next == from + n)
		return check_copy(to, from, n);
	sum(acc, to, from, n, next, false);
	return merge(acc, n);
}
#else
static inline void xxh3(const uint8_t *p, size_t n, const uint8_t *next, struct vv_digest *out)
{
	__builtin_prefetch(next);
	canonical(XXH3_128bits(p, n), out);
}

static uint64_t check(const uint8_t *p, size_t n)
{
	return XXH3_64bits(p, n);
}

static uint64_t check_copy(uint8_t *restrict to, const uint8_t *restrict from, size_t n)
{
	memcpy(to, from, n);
	return XXH3_64bits(to, n);
}

static uint64_t check_copy_then(uint8_t *restrict to, const uint8_t *restrict from, size_t n, const uint8_t *next)
{
	__builtin_prefetch(next);
	return check_copy(to, from, n);
}
#endif

/* Inlined for each constant length: the compiler then removes XXH3's choice of a method and unrolls
 * short loops. */
static inline __attribute__((always_inline)) void grains_of(size_t chunk, const uint8_t *p, size_t n, struct vv_digest *out)
{
	for (size_t i = 0; i < n; i++, p += chunk)
		if (chunk <= SHORT)
			canonical(XXH3_128bits(p, chunk), out + i);
		else
			xxh3(p, chunk, p + chunk, out + i);
}

static void grains(const uint8_t *p, size_t chunk, size_t n, struct vv_digest *out)
{
	switch (chunk) {
	case 32:
		grains_of(32, p, n, out);
		break;
	case 64:
		grains_of(64, p, n, out);
		break;
	case 128:
		grains_of(128, p, n, out);
		break;
	case 256:
		grains_of(256, p, n, out);
		break;
	default:
		grains_of(chunk, p, n, out);
	}
}

/* The 128-bit update is the 64-bit update. */
static void add_piece(XXH3_state_t *s, const uint8_t *p, size_t n)
{
	XXH3_64bits_update(s, p, n);
}

const struct digest_loops VV_CPU_NAME(vv_digest_loops) = { xxh3, check, check_copy, check_copy_then, grains, add_piece };

#ifndef VV_CPU_LEVEL /* ---- all else, once ---- */

static inline const struct digest_loops *loops(void)
{
	return VV_CPU_UP_TO_AVX512(vv_digest_loops);
}

void vv_digest_xxh3(const void *p, size_t n, struct vv_digest *out)
{
	vv_digest_xxh3_then(p, n, (const uint8_t *)p + n, out);
}

void vv_digest_xxh3_then(const void *p, size_t n, const void *next, struct vv_digest *out)
{
	if (n <= SHORT)
		canonical(XXH3_128bits(p, n), out);
	else
		loops()->xxh3(p, n, next, out);
}

uint64_t vv_digest_check(const void *p, size_t n)
{
	return n <= SHORT ? XXH3_64bits(p, n) : loops()->check(p, n);
}

uint64_t vv_digest_check_copy(void *restrict to, const void *restrict from, size_t n)
{
	if (n > SHORT)
		return loops()->check_copy(to, from, n);
	memcpy(to, from, n);
	return XXH3_64bits(to, n);
}

/* The half of a digest that is the check of the same bytes, if they are more than SHORT. */
static uint64_t check_of(const struct vv_digest *d)
{
	return XXH_readBE64((const uint8_t *)d + sizeof(*d) - 8);
}

bool vv_digest_fits(const void *p, size_t n, const struct vv_digest *want)
{
	struct vv_digest got;

	if (n > SHORT)
		return loops()->check(p, n) == check_of(want);
	canonical(XXH3_128bits(p, n), &got);
	return memcmp(&got, want, sizeof(got)) == 0;
}

bool vv_digest_fits_copy(void *restrict to, const void *restrict from, size_t n, const void *next, const struct vv_digest *want)
{
	if (n > SHORT)
		return loops()->check_copy_then(to, from, n, next) == check_of(want);
	__builtin_prefetch(next);
	memcpy(to, from, n);
	return vv_digest_fits(to, n, want);
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

void vv_digest_grains(unsigned kind, const void *p, size_t chunk, size_t n, struct vv_digest *out)
{
	if (kind != VV_DIGEST_SHA256) {
		loops()->grains(p, chunk, n, out);
		return;
	}
	for (size_t i = 0; i < n; i++)
		sha256_short((const uint8_t *)p + i * chunk, chunk, out + i);
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

/* XXH3 keeps one state for its 64 and 128 bit results over long inputs. The two are reset alike and
 * finished differently. Any level may add to the state. */
void vv_digest_stream_init(struct vv_digest_stream *s)
{
	XXH3_64bits_reset((XXH3_state_t *)s->opaque);
}

void vv_digest_stream_add(struct vv_digest_stream *s, const void *p, size_t n)
{
	loops()->add((XXH3_state_t *)s->opaque, p, n);
}

uint64_t vv_digest_stream_check(const struct vv_digest_stream *s)
{
	return XXH3_64bits_digest((const XXH3_state_t *)s->opaque);
}

#endif
