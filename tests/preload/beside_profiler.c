/* For test_interpose.py: a profiler as Darshan and Score-P are. It interposes calls for files, memory and signals, finds the functions behind
 * its own with dlsym, and counts. At the end it writes the counts into the file $BESIDE_COUNTS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_long n_read, n_write, n_malloc, n_free, n_munmap, n_sigaction;

#define NEXT(name)                                                                                                     \
	static __typeof__(name) *next;                                                                                 \
	if (!next)                                                                                                     \
		next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);                                                    \
	n_##name++

ssize_t read(int fd, void *p, size_t n)
{
	NEXT(read);
	return next(fd, p, n);
}

ssize_t write(int fd, const void *p, size_t n)
{
	NEXT(write);
	return next(fd, p, n);
}

void *malloc(size_t n)
{
	NEXT(malloc);
	return next(n);
}

void free(void *p)
{
	NEXT(free);
	next(p);
}

int munmap(void *p, size_t n)
{
	NEXT(munmap);
	return next(p, n);
}

int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	NEXT(sigaction);
	return next(sig, act, old);
}

__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("BESIDE_COUNTS");
	FILE *f = path ? fopen(path, "w") : NULL;

	if (!f)
		return;
	fprintf(f, "read %ld\nwrite %ld\nmalloc %ld\nfree %ld\nsigaction %ld\n", n_read, n_write, n_malloc, n_free, n_sigaction);
	fclose(f);
}
