/* bf16, random numbers and exp: the same bits on every processor. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include "launch.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint16_t bf16; /* the upper half of a float */

INLINE float from_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

INLINE uint32_t to_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

INLINE float from_bf16(bf16 x)
{
	return from_bits((uint32_t)x << 16);
}

/* Rounds up as often as the lower half says: so small changes of a weight count, on average. random: 16 bits. */
INLINE bf16 to_bf16(float x, uint32_t random)
{
	return (bf16)((to_bits(x) + random) >> 16);
}

/* Random bits number i of a state (SplitMix64). */
INLINE uint64_t random_bits(uint64_t state, uint64_t i)
{
	uint64_t x = state + (i + 1) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* exp(x) for x <= 0. The functions of libm and of CUDA differ in the last bit. */
INLINE float exp_of(float x)
{
	float k = floorf(x * 1.44269504f + 0.5f), r = x - k * 0.693359375f + k * 2.12194440e-4f;
	float p = 1 + r * (1 + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * 0.00833333333f))));

	return x > -80 ? p * from_bits((uint32_t)(127 + (int)k) << 23) : 0;
}

#endif
