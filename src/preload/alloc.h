/* Shared by malloc and operator new: the choice between the program's heap and the C library's. */
#ifndef VV_PRELOAD_ALLOC_H
#define VV_PRELOAD_ALLOC_H

#include "preload/caller.h"
#include "preload/heap_fast.h"

/* the C library's own heap */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

/* Returns whether the caller at this address gets memory of the heap. The fast check knows callers
 * of a prepared thread; vv_alloc_decide examines all others. */
static inline bool vv_alloc_is_known(uintptr_t caller)
{
	return __builtin_expect(vv_caller_is_known(caller), 1);
}

bool vv_alloc_decide(uintptr_t caller);

static inline bool vv_alloc_is_for_program(uintptr_t caller)
{
	return vv_alloc_is_known(caller) || vv_alloc_decide(caller);
}

#define FOR_PROGRAM() vv_alloc_is_for_program((uintptr_t)__builtin_return_address(0))

/* In this thread the C library now allocates on behalf of the program (libc_memory_within.c). */
extern __thread bool vv_alloc_on_behalf __attribute__((visibility("hidden"), tls_model("initial-exec")));
/* Returns whether the program's function of this name is the one of this library. */
bool vv_alloc_is_ours(const char *name);
/* The allocator whose memory free() accepts besides ours. */
extern void *(*vv_alloc_process_malloc)(size_t n);

void vv_alloc_free_other(void *p);

static inline void vv_alloc_free(void *p)
{
	if (__builtin_expect(vv_heap_is_plain(p), 1))
		vv_heap_free_plain(p);
	else
		vv_alloc_free_other(p);
}

#endif
