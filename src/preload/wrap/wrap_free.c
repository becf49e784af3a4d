/* free and realloc. The C library gives large blocks back to the kernel by system calls of its own, which pass no wrapper of munmap or
 * mremap. So what a checkpoint has not stored of a block yet is saved here, before the block goes.
 *
 * Both are weak: an allocator in a static library, or that of libvarve_preload, takes their place. Another allocator in a shared library
 * comes next after us, like the C library. */
#include "preload/wrap/wrap.h"
#include <dlfcn.h>
#include <malloc.h>

static size_t (*usable_size)(void *p);

/* Of the library whose free comes next: another one would take the block for its own. Early, as dlsym may free memory itself. */
__attribute__((constructor(101))) static void find_usable_size(void)
{
	void *f = dlsym(RTLD_NEXT, "malloc_usable_size");
	Dl_info its, theirs;

	if (f && dladdr(f, &its) && dladdr((void *)REAL(free), &theirs) && its.dli_fbase == theirs.dli_fbase)
		usable_size = (size_t (*)(void *))f;
}

/* A block that has no page of its own has nothing behind a fence. */
static __attribute__((noinline)) void vacate(void *p)
{
	int saved = errno;

	if (p && usable_size)
		vv_write_protect_before_free(p, usable_size(p));
	errno = saved;
}

/* Before the constructors. dlsym frees the text of an error before it, if there was one: meanwhile that is lost. */
static __attribute__((noinline)) void free_early(void *p)
{
	static _Atomic(uintptr_t) finder;
	uintptr_t me = (uintptr_t)pthread_self();

	if (atomic_load(&finder) == me)
		return;
	atomic_store(&finder, me);
	vv_wrap_real(VV_WRAP_free);
	atomic_store(&finder, 0);
	REAL(free)(p);
}

__attribute__((weak)) void free(void *p)
{
	void *theirs = atomic_load_explicit(&vv_wrap_found[VV_WRAP_free], memory_order_relaxed);

	if (vv_write_protect_is_active())
		vacate(p);
	if (__builtin_expect(theirs != NULL, 1))
		((__typeof__(free) *)theirs)(p);
	else
		free_early(p);
}

__attribute__((weak)) void *realloc(void *p, size_t n)
{
	if (vv_write_protect_is_active())
		vacate(p);
	return REAL(realloc)(p, n);
}
