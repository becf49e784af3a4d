/* What jemalloc asks for. */
#include "preload/jemalloc.h"
#include "preload/heap.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
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
