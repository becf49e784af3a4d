/* Memory that is released: the pending pages of a checkpoint must be saved before. */
#include "preload/wrap/wrap.h"
#include <stdarg.h>

void *mmap(void *addr, size_t n, int prot, int flags, int fd, off_t at)
{
	WRITES(addr, flags & MAP_FIXED ? n : 0);
	ENGINE->note_mprotect(addr, flags & MAP_FIXED ? n : 0);
	return REAL(mmap)(addr, n, prot, flags, fd, at);
}

void *mmap64(void *addr, size_t n, int prot, int flags, int fd, off64_t at)
{
	WRITES(addr, flags & MAP_FIXED ? n : 0);
	ENGINE->note_mprotect(addr, flags & MAP_FIXED ? n : 0);
	return REAL(mmap64)(addr, n, prot, flags, fd, at);
}

/* Write-protected pages are unprotected first, and then get the program's protection. */
int mprotect(void *addr, size_t n, int prot)
{
	WRITES(addr, n);
	ENGINE->note_mprotect(addr, n);
	return REAL(mprotect)(addr, n, prot);
}

int munmap(void *addr, size_t n)
{
	WRITES(addr, n);
	ENGINE->note_mprotect(addr, n);
	return REAL(munmap)(addr, n);
}

/* The kernel accepts only one mapping: so the memory is made one mapping again. */
void *mremap(void *addr, size_t n, size_t wanted, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	void *target = va_arg(ap, void *);
	va_end(ap);
	RANGES(r);
	vv_wrap_add(&r, addr, n);
	vv_wrap_add(&r, target, flags & MREMAP_FIXED ? wanted : 0);
	vv_wrap_enter_all(&r);
	ENGINE->note_mprotect(addr, n);
	ENGINE->note_mprotect(target, flags & MREMAP_FIXED ? wanted : 0);
	ENGINE->release_registered(addr, n);
	return REAL(mremap)(addr, n, wanted, flags, target);
}

/* Includes MADV_FREE: the kernel takes the pages at any time, possibly right after the call. */
static bool discards(int advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_REMOVE:
#ifdef MADV_DONTNEED_LOCKED
	case MADV_DONTNEED_LOCKED:
#endif
		return true;
	default:
		return false;
	}
}

int madvise(void *addr, size_t n, int advice)
{
	WRITES(addr, discards(advice) ? n : 0);
	return REAL(madvise)(addr, n, advice);
}

int mincore(void *addr, size_t n, unsigned char *in)
{
	size_t page = (size_t)getpagesize();
	WRITES(in, n / page + (n % page != 0));
	return REAL(mincore)(addr, n, in);
}
