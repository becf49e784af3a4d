/* XXH3-128 of more than 240 bytes: four threads, each with a quarter of every stripe of 64
 * bytes. */
#ifndef VV_GPU_XXH3_LONG_CUH
#define VV_GPU_XXH3_LONG_CUH

#include "gpu/xxh3.cuh"

namespace xxh3 {

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
