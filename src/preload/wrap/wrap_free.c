/* free and realloc. The C library returns large blocks to the kernel by its own system calls,
 * which bypass the wrappers of munmap and mremap. So the pending pages of a block are saved
 * here, before the block is released.
 *
 * Both are weak: an allocator in a static library, or that of libvarve_preload, replaces them.
 * Another allocator in a shared library comes next after us, like the C library. */
#include "preload/wrap/wrap.h"
#include <dlfcn.h>
#include <malloc.h>

static size_t (*usable_size)(void *p);

/* Uses the library whose free comes next: another one would misinterpret the block. Called early,
 * because dlsym may free memory itself. */
__attribute__((constructor(101))) static void find_usable_size(void)
{
	void *f = dlsym(RTLD_NEXT, "malloc_usable_size");
	Dl_info its, theirs;

	if (f && dladdr(f, &its) && dladdr((void *)REAL(free), &theirs) && its.dli_fbase == theirs.dli_fbase)
		usable_size = (size_t (*)(void *))f;
}

static inline bool is_active(void)
{
	return __builtin_expect(__atomic_load_n(ENGINE->n_pages, __ATOMIC_RELAXED) != 0, 0);
}

/* A block without a page of its own has no write-protected page. */
static __attribute__((noinline)) void vacate(void *p)
{
	int saved = errno;

	if (p && usable_size)
		ENGINE->before_free(p, usable_size(p));
	errno = saved;
}

/* Called before the constructors. dlsym frees the text of an earlier error, if there was one:
 * during the search that memory is leaked. */
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

	if (is_active())
		vacate(p);
	if (__builtin_expect(theirs != NULL, 1))
		((__typeof__(free) *)theirs)(p);
	else
		free_early(p);
}

__attribute__((weak)) void *realloc(void *p, size_t n)
{
	if (is_active())
		vacate(p);
	return REAL(realloc)(p, n);
}
