/* What jemalloc asks for, and what is asked of it. */
#include "preload/jemalloc.h"
#include "preload/heap.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

/* Its records, in a part of the range: each thread makes some, when it comes to, and where the kernel would put them, libraries come to lie that are loaded
 * meanwhile. Aligned as jemalloc likes it, or it would ask for more, to cut it to size. */
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

/* MALLOC_CONF is for the jemalloc that the program may have, which is not ours. */
char *vv_je_secure_getenv(const char *name)
{
	(void)name;
	return NULL;
}

/* And so is /etc/malloc.conf. */
ssize_t vv_je_readlink(const char *path, char *buf, size_t n)
{
	(void)path, (void)buf, (void)n;
	errno = ENOENT;
	return -1;
}

void vv_je_set_decay(unsigned arena, ssize_t ms)
{
	ssize_t then = ms < 0 ? ms : 0; /* pages that the kernel may take, of which we have none */
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
