#include "base/clock.h"
#include <errno.h>
#include <time.h>

static uint64_t read_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t vv_clock_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

double vv_clock_s(void)
{
	return (double)vv_clock_ns() * 1e-9;
}

double vv_clock_own_s(void)
{
	return (double)read_ns(CLOCK_THREAD_CPUTIME_ID) * 1e-9;
}

uint64_t vv_clock_wall_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

void vv_clock_sleep(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds };

	if (seconds <= 0)
		return;
	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}
