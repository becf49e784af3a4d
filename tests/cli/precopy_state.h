/* What all of these programs have: QUIET bytes that never change, memory, threads, a clock. */
#ifndef VV_TEST_PRECOPY_STATE_H
#define VV_TEST_PRECOPY_STATE_H

#include "image_state.h"
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, WORDS = PAGE / 8, QUIET = 24 << 20, WRITERS = 4, PAGES = 512 };

static uint64_t *quiet;
static int zeros; /* that can be read */

static void *map(void *where, size_t bytes)
{
	void *p = mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

static void fill(uint64_t *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i += 16) /* some words of every line are enough */
		p[i] = mix(seed << 32 | i);
}

static int is_filled(const uint64_t *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i += 16)
		if (p[i] != mix(seed << 32 | i))
			return 0;
	return 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void run_thread(void *(*run)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg) != 0)
		exit(1);
}

#endif
