/* The functions that jemalloc calls, and settings of its arenas. */
#include "preload/jemalloc.h"
#include "preload/heap.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

/* Places jemalloc's records in a part of the range. Each thread creates some at an arbitrary time.
 * The kernel would place them at addresses that later libraries need. They are aligned for
 * jemalloc, which would otherwise request more and trim it. */
void *vv_je_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	static atomic_size_t used;
	const size_t unit = (size_t)1 << 21;
	size_t whole = (n + unit - 1) & ~(unit - 1), place;

	if (at || n > vv_heap.records_size)
		return mmap(at, n, prot, flags, fd, offset);
	place = atomic_fetch_add(&used, whole);
	if (place > vv_heap.records_size - n)
		return mmap(at, n, prot, flags, fd, offset);
	return mmap((void *)(vv_heap.records + place), n, prot, flags | MAP_FIXED, fd, offset);
}

/* MALLOC_CONF is for the program's own jemalloc, if it has one. */
char *vv_je_secure_getenv(const char *name)
{
	(void)name;
	return NULL;
}

/* So is /etc/malloc.conf. */
ssize_t vv_je_readlink(const char *path, char *buf, size_t n)
{
	(void)path, (void)buf, (void)n;
	errno = ENOENT;
	return -1;
}

void vv_je_set_decay(unsigned arena, ssize_t ms)
{
	ssize_t then = ms < 0 ? ms : 0; /* for lazily freed pages, of which we have none */
	char name[64];

	snprintf(name, sizeof(name), "arena.%u.dirty_decay_ms", arena);
	vv_je_mallctl(name, NULL, NULL, &ms, sizeof(ms));
	snprintf(name, sizeof(name), "arena.%u.muzzy_decay_ms", arena);
	vv_je_mallctl(name, NULL, NULL, &then, sizeof(then));
}

void vv_je_limit_growth(unsigned arena)
{
	size_t most = VV_JE_GROWTH;
	char name[64];

	snprintf(name, sizeof(name), "arena.%u.retain_grow_limit", arena);
	vv_je_mallctl(name, NULL, NULL, &most, sizeof(most));
}
