/* XXH3 of more than 240 bytes, directly from memory: four threads hash them. */
#ifndef VV_GPU_LONG_CUH
#define VV_GPU_LONG_CUH

#include "gpu/device.cuh"
#include "gpu/xxh3_long.cuh"

template <int STRIPES, bool ALIGNED>
__device__ __forceinline__ void accumulate_stripes(xxh3::accumulator &acc, const uint8_t *p, const uint64_t *secret, bool last,
						   const uint64_t *last_secret)
{
	uint4 v[STRIPES];

#pragma unroll
	for (int i = 0; i < STRIPES; i++)
		v[i] = ALIGNED ? __ldcs((const uint4 *)(p + i * xxh3::STRIPE)) : load_anywhere(p + i * xxh3::STRIPE);
#pragma unroll
	for (int i = 0; i < STRIPES; i++) {
		const uint64_t *key = last && i == STRIPES - 1 ? last_secret : secret + i;

		xxh3::accumulate(acc, xxh3::unit_of(v[i]), key[0], key[1]);
	}
}

/* Accumulates this thread's quarter of the stripes of `chunk` bytes at p, in rounds of STRIPES. */
template <int STRIPES, bool ALIGNED>
__device__ __forceinline__ xxh3::accumulator accumulate_grain(const uint8_t *p, uint32_t chunk, const xxh3::long_secret &s, int quarter)
{
	constexpr uint32_t ROUND = STRIPES * xxh3::STRIPE;
	xxh3::accumulator acc = xxh3::start_long(quarter);

	p += 16 * quarter;
	for (uint32_t at = 0; at < chunk; at += ROUND) {
		bool last = at + ROUND == chunk;

		accumulate_stripes<STRIPES, ALIGNED>(acc, p + at, s.word + at % xxh3::BLOCK / xxh3::STRIPE + 2 * quarter, last,
						     s.last[quarter]);
		if (!last && (at + ROUND) % xxh3::BLOCK == 0)
			xxh3::scramble(acc, s, quarter);
	}
	return acc;
}

#endif
