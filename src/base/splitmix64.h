/* splitmix64: a hash of a number. Similar numbers have results that look random. */
#ifndef VV_BASE_SPLITMIX64_H
#define VV_BASE_SPLITMIX64_H

#include <stdint.h>

#define VV_SPLITMIX64_STEP 0x9e3779b97f4a7c15u

static inline uint64_t vv_splitmix64(uint64_t number)
{
	uint64_t z = number + VV_SPLITMIX64_STEP;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* The next number of a sequence that looks random. */
static inline uint64_t vv_splitmix64_next(uint64_t *state)
{
	uint64_t z = vv_splitmix64(*state);

	*state += VV_SPLITMIX64_STEP;
	return z;
}

#endif
