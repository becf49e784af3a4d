/* XXH3-128 (Yann Collet's specification; seed 0 except for nodes of trees), split into parts for
 * threads that share the work. The result is the canonical one of core/format/digest.h: the same 16
 * bytes as on the host. */
#ifndef VV_GPU_XXH3_CUH
#define VV_GPU_XXH3_CUH

#include "gpu/cuda.h"

namespace xxh3 {

constexpr uint8_t SECRET[192] = {
	0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
	0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
	0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
	0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
	0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
	0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
	0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
	0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
	0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
	0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
	0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
	0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

constexpr uint64_t P32_1 = 0x9E3779B1, P32_2 = 0x85EBCA77, P32_3 = 0xC2B2AE3D;
constexpr uint64_t P64_1 = 0x9E3779B185EBCA87, P64_2 = 0xC2B2AE3D27D4EB4F, P64_3 = 0x165667B19E3779F9;
constexpr uint64_t P64_4 = 0x85EBCA77C2B2AE63, P64_5 = 0x27D4EB2F165667C5;

constexpr uint64_t secret_at(int at)
{
	uint64_t w = 0;

	for (int i = 7; i >= 0; i--)
		w = w << 8 | SECRET[at + i];
	return w;
}

/* The secret's word at a byte offset, as a compile-time constant. */
template <int AT> struct secret {
	static constexpr uint64_t word = secret_at(AT);
};

struct unit { /* 16 bytes */
	uint64_t lo, hi;
};

__device__ __forceinline__ unit unit_of(uint4 v)
{
	return { (uint64_t)v.y << 32 | v.x, (uint64_t)v.w << 32 | v.z };
}

__device__ __forceinline__ uint64_t fold(uint64_t a, uint64_t b)
{
	return a * b ^ __umul64hi(a, b);
}

__device__ __forceinline__ uint64_t avalanche(uint64_t h)
{
	h ^= h >> 37;
	h *= 0x165667919E3779F9;
	return h ^ h >> 32;
}

__device__ __forceinline__ uint64_t swap64(uint64_t v)
{
	uint32_t hi = __byte_perm((uint32_t)v, 0, 0x0123), lo = __byte_perm((uint32_t)(v >> 32), 0, 0x0123);

	return (uint64_t)hi << 32 | lo;
}

__device__ __forceinline__ vv_digest canonical(uint64_t low, uint64_t high)
{
	return { { swap64(high), swap64(low) } };
}

/* ---- 17 to 128 bytes: one thread hashes all of them ------------------------------------------ */

struct sums {
	uint64_t low, high;
};

/* Two units at the same distance from the middle, with the secret from AT on. */
template <int AT> __device__ __forceinline__ void mix_pair(sums &s, unit a, unit b, uint64_t seed)
{
	s.low += fold(a.lo ^ (secret<AT>::word + seed), a.hi ^ (secret<AT + 8>::word - seed));
	s.low ^= b.lo + b.hi;
	s.high += fold(b.lo ^ (secret<AT + 16>::word + seed), b.hi ^ (secret<AT + 24>::word - seed));
	s.high ^= a.lo + a.hi;
}

__device__ __forceinline__ vv_digest finish_short(sums s, uint64_t len, uint64_t seed)
{
	uint64_t low = s.low + s.high;
	uint64_t high = s.low * P64_1 + s.high * P64_4 + (len - seed) * P64_2;

	return canonical(avalanche(low), 0 - avalanche(high));
}

/* Mixes UNITS units, which `get(i)` returns. Pairs come from the middle outwards. */
template <int UNITS, int PAIR = UNITS / 2 - 1> struct short_mix {
	template <class Get> __device__ static __forceinline__ void run(sums &s, const Get &get, uint64_t seed)
	{
		mix_pair<32 * PAIR>(s, get(PAIR), get(UNITS - 1 - PAIR), seed);
		short_mix<UNITS, PAIR - 1>::run(s, get, seed);
	}
};

template <int UNITS> struct short_mix<UNITS, -1> {
	template <class Get> __device__ static __forceinline__ void run(sums &, const Get &, uint64_t)
	{
	}
};

template <int UNITS, class Get> __device__ __forceinline__ vv_digest digest_short(const Get &get, uint64_t seed)
{
	constexpr uint64_t LEN = 16 * UNITS;
	sums s = { LEN * P64_1, 0 };

	short_mix<UNITS>::run(s, get, seed);
	return finish_short(s, LEN, seed);
}

/* The digest of a tree's node. */
__device__ __forceinline__ vv_digest node(vv_digest left, vv_digest right, unsigned height)
{
	return digest_short<2>([&](int i) { return i ? unit{ right.w[0], right.w[1] } : unit{ left.w[0], left.w[1] }; }, height);
}

/* ---- more than 240 bytes: four threads, each with a quarter of every stripe of 64 bytes ------ */

enum { QUARTERS = 4, STRIPE = 64, STRIPES_PER_BLOCK = 16, BLOCK = STRIPE * STRIPES_PER_BLOCK };

/* The secret's words for thread `quarter`, in memory that all threads of a block share. */
struct long_secret {
	uint64_t word[24];                 /* of the stripes, and of scrambling */
	uint64_t last[QUARTERS][2];        /* of the last stripe */
	uint64_t low[QUARTERS][2], high[QUARTERS][2]; /* of merging */
};

__device__ __forceinline__ uint64_t secret_slow(int at)
{
	constexpr uint64_t word[] = {
		secret<0>::word, secret<8>::word, secret<16>::word, secret<24>::word, secret<32>::word, secret<40>::word,
		secret<48>::word, secret<56>::word, secret<64>::word, secret<72>::word, secret<80>::word, secret<88>::word,
		secret<96>::word, secret<104>::word, secret<112>::word, secret<120>::word, secret<128>::word, secret<136>::word,
		secret<144>::word, secret<152>::word, secret<160>::word, secret<168>::word, secret<176>::word, secret<184>::word,
	};
	uint64_t lo = word[at / 8], hi = at % 8 ? word[at / 8 + 1] : 0;

	return at % 8 ? lo >> 8 * (at % 8) | hi << (64 - 8 * (at % 8)) : lo;
}

/* Called by the first threads of a block; the others must wait for them. */
__device__ __forceinline__ void fill_secret(long_secret &s, int thread)
{
	enum { LAST = 192 - STRIPE - 7, LOW = 11, HIGH = 192 - STRIPE - 11 };
	int k = thread % 8;

	if (thread < 24)
		s.word[thread] = secret_slow(8 * thread);
	if (thread < 8) {
		s.last[k / 2][k % 2] = secret_slow(LAST + 8 * k);
		s.low[k / 2][k % 2] = secret_slow(LOW + 8 * k);
		s.high[k / 2][k % 2] = secret_slow(HIGH + 8 * k);
	}
}

struct accumulator {
	uint64_t a, b;
};

__device__ __forceinline__ accumulator start_long(int quarter)
{
	return quarter == 0 ? accumulator{ P32_3, P64_1 } :
	       quarter == 1 ? accumulator{ P64_2, P64_3 } :
	       quarter == 2 ? accumulator{ P64_4, P32_2 } :
			      accumulator{ P64_5, P32_1 };
}

__device__ __forceinline__ uint64_t halves(uint64_t v)
{
	return (uint64_t)(uint32_t)v * (uint32_t)(v >> 32);
}

__device__ __forceinline__ void accumulate(accumulator &acc, unit u, uint64_t key_a, uint64_t key_b)
{
	acc.a += u.hi + halves(u.lo ^ key_a);
	acc.b += u.lo + halves(u.hi ^ key_b);
}

__device__ __forceinline__ uint64_t scramble_one(uint64_t v, uint64_t key)
{
	return (v ^ v >> 47 ^ key) * P32_1;
}

__device__ __forceinline__ void scramble(accumulator &acc, const long_secret &s, int quarter)
{
	acc.a = scramble_one(acc.a, s.word[16 + 2 * quarter]);
	acc.b = scramble_one(acc.b, s.word[17 + 2 * quarter]);
}

/* Over the four threads, neighbours in a warp. */
__device__ __forceinline__ uint64_t sum_quarters(uint64_t v)
{
	v += __shfl_xor_sync(~0u, v, 1);
	return v + __shfl_xor_sync(~0u, v, 2);
}

/* All four threads get the result. */
__device__ __forceinline__ vv_digest finish_long(accumulator acc, const long_secret &s, int quarter, uint64_t len)
{
	uint64_t low = fold(acc.a ^ s.low[quarter][0], acc.b ^ s.low[quarter][1]);
	uint64_t high = fold(acc.a ^ s.high[quarter][0], acc.b ^ s.high[quarter][1]);

	return canonical(avalanche(len * P64_1 + sum_quarters(low)), avalanche(~(len * P64_2) + sum_quarters(high)));
}

} // namespace xxh3

#endif
