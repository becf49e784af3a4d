/* What malloc and operator new share: whose memory it is. */
#ifndef VV_PRELOAD_ALLOC_H
#define VV_PRELOAD_ALLOC_H

#include "preload/heap.h"

/* the C library's own heap */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

/* Most callers are in the executable, or in C++'s library. */
static inline bool vv_alloc_is_usual(uintptr_t caller)
{
	return __builtin_expect(caller - vv_heap.program < vv_heap.n_program || caller - vv_heap.runtime < vv_heap.n_runtime, 1);
}

bool vv_alloc_decide(uintptr_t caller);

/* Does the caller, at this address, get memory of the heap? */
static inline bool vv_alloc_is_for_program(uintptr_t caller)
{
	return (vv_alloc_is_usual(caller) && vv_heap_is_settled()) || vv_alloc_decide(caller);
}

static inline void vv_alloc_free(void *p)
{
	if (__builtin_expect(vv_heap_owns(p), 1))
		vv_heap_free(p);
	else
		__libc_free(p);
}

#endif
