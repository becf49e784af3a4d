/* C++'s operator new and delete, as compilers name them. Those of its library would come to malloc by themselves: this saves them the way. What
 * can throw is left to them. */
#include "preload/alloc.h"
#include <dlfcn.h>
#include <stdatomic.h>

#pragma GCC visibility push(default)
void *_Znwm(size_t n);
void *_Znam(size_t n);
void _ZdlPv(void *p);
void _ZdaPv(void *p);
void _ZdlPvm(void *p, size_t n);
void _ZdaPvm(void *p, size_t n);
#pragma GCC visibility pop

/* That of C++'s library: has the program's handler make room, or throws. */
static void *by_library(size_t n)
{
	static _Atomic(void *) real;
	void *f = atomic_load_explicit(&real, memory_order_relaxed);

	if (!f) {
		f = dlsym(RTLD_NEXT, "_Znwm");
		atomic_store_explicit(&real, f, memory_order_relaxed);
	}
	return ((void *(*)(size_t))f)(n);
}

static __attribute__((noinline)) void *make_other(size_t n, uintptr_t caller)
{
	void *p = vv_alloc_is_for_program(caller) ? vv_heap_alloc(n) : NULL;

	return p ? p : by_library(n);
}

static inline void *make(size_t n, uintptr_t caller)
{
	size_t whole = vv_heap_rounded(n);
	void *p;

	if (!vv_alloc_is_known(caller) || !vv_heap_is_small(whole))
		return make_other(n, caller);
	p = vv_heap_alloc_small(whole);
	return __builtin_expect(p != NULL, 1) ? p : by_library(whole);
}

void *_Znwm(size_t n)
{
	return make(n, (uintptr_t)__builtin_return_address(0));
}

void *_Znam(size_t n)
{
	return make(n, (uintptr_t)__builtin_return_address(0));
}

void _ZdlPv(void *p)
{
	vv_alloc_free(p);
}

void _ZdaPv(void *p)
{
	vv_alloc_free(p);
}

/* Of a size that the compiler knows. */
static inline void release(void *p, size_t n)
{
	if (__builtin_expect(vv_heap_is_plain(p), 1)) {
		*vv_heap_mark(p) = 0;
		vv_je_sdallocx(p, n < VV_HEAP_GRAIN ? VV_HEAP_GRAIN : n, 0);
	} else {
		vv_alloc_free_other(p);
	}
}

void _ZdlPvm(void *p, size_t n)
{
	release(p, n);
}

void _ZdaPvm(void *p, size_t n)
{
	release(p, n);
}
