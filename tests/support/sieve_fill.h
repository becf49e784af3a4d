/* Grains of known content, for regions of a trial. */
#ifndef VV_TEST_SIEVE_FILL_H
#define VV_TEST_SIEVE_FILL_H

#include "support/gen.h"
#include "support/sieve_trial.h"
#include "vv_test.h"

#define PLENTY (1ull << 40)

static inline void put_grain(struct trial_region *r, uint32_t chunk, size_t i, uint64_t what)
{
	uint64_t state = what;

	CHECK((i + 1) * chunk <= r->len);
	if (what == 0)
		memset(r->p + i * chunk, 0, chunk);
	else
		gen_bytes(&state, r->p + i * chunk, chunk);
}

static inline struct trial_region *fill(struct trial_memory *m, size_t i, uint32_t chunk, uint64_t (*what)(size_t i))
{
	struct trial_region *r = &m->region[i];

	for (size_t k = 0; k < r->len / chunk; k++)
		put_grain(r, chunk, k, what(k));
	return r;
}

static inline uint64_t distinct(size_t i)
{
	return i + 1;
}

static inline uint64_t others(size_t i)
{
	return i + 1000000;
}

static inline uint64_t equal(size_t i)
{
	(void)i;
	return 77;
}

static inline uint64_t nothing(size_t i)
{
	(void)i;
	return 0;
}

static inline uint64_t in_turn(size_t i)
{
	return 500 + i % 2;
}

static inline uint64_t in_three(size_t i)
{
	return i % 64 < 50 ? 600 + i % 3 : 0;
}

#endif
