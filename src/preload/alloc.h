/* What malloc and operator new share: whose memory it is. */
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

/* Does the caller, at this address, get memory of the heap? One that is known to, from a thread that is settled; or whoever is found to. */
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

/* Of this thread: what the C library asks for now, it asks for on the program's behalf (libc_memory_within.c). */
extern __thread bool vv_alloc_on_behalf __attribute__((visibility("hidden"), tls_model("initial-exec")));
/* Is the function of this name, as the program finds it, the one of this library? */
bool vv_alloc_is_ours(const char *name);
/* Whose memory free() takes, if it is not ours. */
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
