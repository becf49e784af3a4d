/* Ranks whose regions are deduped in grains, in every mode: all hold the same at first, and it is stored once. */
#ifndef VV_TEST_GRAIN_JOB_H
#define VV_TEST_GRAIN_JOB_H

#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <varve/varve_comm.h>

enum { SHARED = 1 << 20, RANKS = 3 };

struct job {
	char store[PLACE_MAX];
	const char *options;
	bool any_thread;
	atomic_uint_least64_t stored;
};

/* What all ranks hold at first. */
static inline void grain_job_fill(uint8_t p[SHARED])
{
	uint64_t mix = 7;

	for (size_t i = 0; i < SHARED; i++)
		p[i] = (uint8_t)((mix = mix * 6364136223846793005ull + 1442695040888963407ull) >> 33);
}

/* work is done by each rank; it adds what it stored of its first epoch to `stored` of the job, which is its argument. */
static inline void grain_job_run(void (*work)(const struct varve_comm *comm, void *job))
{
	static const char *const options[] = { "grain=256 mode=sync", "grain=256 mode=async", "grain=128 mode=sync aggregate=2" };

	for (int k = 0; k < 6; k++) {
		struct job j = { .options = options[k % 3], .any_thread = k >= 3 };

		must_begin("ranks: %s", j.options);
		place_path(j.store, "ranks");
		threadcomm_run(RANKS, work, &j);
		MUST(j.stored == SHARED);
		place_remove(j.store);
	}
}

#endif
