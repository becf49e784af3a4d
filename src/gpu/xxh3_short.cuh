/* XXH3-128 of a multiple of 32 bytes, at most 128: one thread hashes all of them. */
#ifndef VV_GPU_XXH3_SHORT_CUH
#define VV_GPU_XXH3_SHORT_CUH

#include "gpu/xxh3.cuh"

namespace xxh3 {

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

} // namespace xxh3

#endif
