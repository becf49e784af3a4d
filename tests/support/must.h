/* Checks that say which case of many was under way, and an alarm that ends a case that hangs. */
#ifndef VV_TEST_MUST_H
#define VV_TEST_MUST_H

#include "vv_test.h"
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <varve/varve.h>

enum { MUST_ALARM_S = 60 };

static char must_case[700];

static void must_hang(int sig)
{
	(void)sig;
	if (write(2, "hang: ", 6) + write(2, must_case, strlen(must_case)) + write(2, "\n", 1) < 0)
		_exit(2);
	abort();
}

/* Names the case that begins now, and starts its clock. */
__attribute__((format(printf, 1, 2))) static void must_begin(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(must_case, sizeof(must_case), format, args);
	va_end(args);
	signal(SIGALRM, must_hang);
	alarm(MUST_ALARM_S);
}

static inline void must_fail(const char *file, int line, const char *why)
{
	fprintf(stderr, "%s:%d: %s\n  in: %s\n  last error: %s\n", file, line, why, must_case, varve_last_error());
	exit(1);
}

#define MUST(e)                                                                                                                  \
	do {                                                                                                                   \
		if (!(e))                                                                                                      \
			must_fail(__FILE__, __LINE__, #e);                                                                     \
	} while (0)

/* From now on no file can grow beyond so many bytes; RLIM_INFINITY: any may. */
static inline void must_limit_files(rlim_t bytes)
{
	struct rlimit l;

	CHECK(getrlimit(RLIMIT_FSIZE, &l) == 0);
	l.rlim_cur = bytes;
	CHECK(setrlimit(RLIMIT_FSIZE, &l) == 0);
}

static inline void must_nap(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

#endif
