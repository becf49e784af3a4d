/* C++'s operator new and delete, by their mangled names. The versions of C++'s library would call
 * malloc anyway: these are faster. They also replace allocators that are linked as libraries, whose
 * memory our free would not know. Calls that can throw are left to C++'s library. */
#include "preload/alloc.h"
#include "preload/heap_fast.h"
#include <dlfcn.h>
#include <stdatomic.h>

#define NAMES(X)                                                                                                                                 \
	X(_Znwm) X(_ZnwmRKSt9nothrow_t) X(_ZnwmSt11align_val_t) X(_ZnwmSt11align_val_tRKSt9nothrow_t)                                            \
	X(_Znam) X(_ZnamRKSt9nothrow_t) X(_ZnamSt11align_val_t) X(_ZnamSt11align_val_tRKSt9nothrow_t)                                            \
	X(_ZdlPv) X(_ZdlPvm) X(_ZdlPvRKSt9nothrow_t) X(_ZdlPvSt11align_val_t) X(_ZdlPvmSt11align_val_t) X(_ZdlPvSt11align_val_tRKSt9nothrow_t)   \
	X(_ZdaPv) X(_ZdaPvm) X(_ZdaPvRKSt9nothrow_t) X(_ZdaPvSt11align_val_t) X(_ZdaPvmSt11align_val_t) X(_ZdaPvSt11align_val_tRKSt9nothrow_t)

enum id {
#define ID(name) ID_##name,
	NAMES(ID)
	COUNT
};

static const char *const names[COUNT] = {
#define NAME(name) #name,
	NAMES(NAME)
};

static _Atomic(void *) found[COUNT];
/* The program has its own operators. In C++'s library the operators call each other, and the
 * program may rely on that; ours do not. */
static bool replaced;

/* Looks for GNU's library by its name: an allocator's library may have such operators, too, and
 * come first. */
static void *of_library(enum id id)
{
	void *f = atomic_load_explicit(&found[id], memory_order_relaxed), *library;

	if (!f) {
		library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
		f = dlsym(library ? library : RTLD_NEXT, names[id]);
		atomic_store_explicit(&found[id], f, memory_order_relaxed);
	}
	return f;
}

__attribute__((constructor(102))) static void begin(void)
{
	replaced = !vv_alloc_is_ours("_Znwm") || !vv_alloc_is_ours("_ZdlPv");
}

/* ---- new ------------------------------------------------------------------------------------- */

/* After a failure here, C++'s library tries again: it calls the program's new handler, or
 * throws. */

static void *make(size_t n, uintptr_t caller)
{
	return replaced ? NULL : vv_alloc_is_for_program(caller) ? vv_heap_alloc(n) : __libc_malloc(n ? n : 1);
}

/* C++'s library refuses an alignment that is not a power of two, or too large. */
static void *make_aligned(size_t n, size_t align, uintptr_t caller)
{
	if (replaced || align == 0 || align & (align - 1))
		return NULL;
	align = align < VV_HEAP_GRAIN ? VV_HEAP_GRAIN : align;
	return vv_alloc_is_for_program(caller) ? vv_heap_alloc_aligned(align, n) : __libc_memalign(align, n ? n : 1);
}

#define EXPORTED __attribute__((visibility("default")))
#define CALLER (uintptr_t)__builtin_return_address(0)

/* Rare cases have separate functions, so that the common case needs no stack space for them. */
#define RARE static __attribute__((noinline))

/* If an allocation of the grains fails, one of n bytes would fail, too. */
#define NEW(name)                                                                                                                                \
	EXPORTED void *name(size_t n);                                                                                                           \
	RARE void *again##name(size_t grains)                                                                                                    \
	{                                                                                                                                        \
		return ((__typeof__(name) *)of_library(ID_##name))(grains * VV_HEAP_GRAIN);                                                      \
	}                                                                                                                                        \
	RARE void *other##name(size_t n, uintptr_t caller)                                                                                       \
	{                                                                                                                                        \
		void *p = make(n, caller);                                                                                                       \
                                                                                                                                                 \
		return p ? p : ((__typeof__(name) *)of_library(ID_##name))(n);                                                                   \
	}                                                                                                                                        \
	void *name(size_t n)                                                                                                                     \
	{                                                                                                                                        \
		uintptr_t caller = CALLER;                                                                                                       \
		size_t grains = vv_heap_grains(n);                                                                                               \
		void *p;                                                                                                                         \
                                                                                                                                                 \
		if (!vv_alloc_is_known(caller) || !vv_heap_are_few(grains) || __builtin_expect(replaced, 0))                                     \
			return other##name(n, caller);                                                                                           \
		p = vv_heap_alloc_few(grains);                                                                                                   \
		return __builtin_expect(p != NULL, 1) ? p : again##name(grains);                                                                 \
	}

NEW(_Znwm)
NEW(_Znam)

#define NEW_OF(name, how, params, args)                                                                                                          \
	EXPORTED void *name params;                                                                                                              \
	void *name params                                                                                                                        \
	{                                                                                                                                        \
		void *p = how;                                                                                                                   \
                                                                                                                                                 \
		return p ? p : ((__typeof__(name) *)of_library(ID_##name)) args;                                                                 \
	}

NEW_OF(_ZnwmRKSt9nothrow_t, make(n, CALLER), (size_t n, const void *tag), (n, tag))
NEW_OF(_ZnamRKSt9nothrow_t, make(n, CALLER), (size_t n, const void *tag), (n, tag))
NEW_OF(_ZnwmSt11align_val_t, make_aligned(n, align, CALLER), (size_t n, size_t align), (n, align))
NEW_OF(_ZnamSt11align_val_t, make_aligned(n, align, CALLER), (size_t n, size_t align), (n, align))
NEW_OF(_ZnwmSt11align_val_tRKSt9nothrow_t, make_aligned(n, align, CALLER), (size_t n, size_t align, const void *tag), (n, align, tag))
NEW_OF(_ZnamSt11align_val_tRKSt9nothrow_t, make_aligned(n, align, CALLER), (size_t n, size_t align, const void *tag), (n, align, tag))

/* ---- delete ---------------------------------------------------------------------------------- */

/* For a size that the compiler knows. */
static inline void release(void *p, size_t n)
{
	if (__builtin_expect(vv_heap_is_plain(p), 1)) {
		*vv_heap_mark(p) = 0;
		vv_je_sdallocx(p, n < VV_HEAP_GRAIN ? VV_HEAP_GRAIN : n, 0);
	} else {
		vv_alloc_free_other(p);
	}
}

#define DELETE(name, how, params, args)                                                                                                          \
	EXPORTED void name params;                                                                                                               \
	RARE void theirs##name params                                                                                                            \
	{                                                                                                                                        \
		((__typeof__(name) *)of_library(ID_##name)) args;                                                                                \
	}                                                                                                                                        \
	void name params                                                                                                                         \
	{                                                                                                                                        \
		if (__builtin_expect(replaced, 0))                                                                                               \
			theirs##name args;                                                                                                       \
		else                                                                                                                             \
			how;                                                                                                                     \
	}

DELETE(_ZdlPv, vv_alloc_free(p), (void *p), (p))
DELETE(_ZdaPv, vv_alloc_free(p), (void *p), (p))
DELETE(_ZdlPvm, release(p, n), (void *p, size_t n), (p, n))
DELETE(_ZdaPvm, release(p, n), (void *p, size_t n), (p, n))
DELETE(_ZdlPvRKSt9nothrow_t, vv_alloc_free(p), (void *p, const void *tag), (p, tag))
DELETE(_ZdaPvRKSt9nothrow_t, vv_alloc_free(p), (void *p, const void *tag), (p, tag))
DELETE(_ZdlPvSt11align_val_t, vv_alloc_free(p), (void *p, size_t align), (p, align))
DELETE(_ZdaPvSt11align_val_t, vv_alloc_free(p), (void *p, size_t align), (p, align))
DELETE(_ZdlPvmSt11align_val_t, vv_alloc_free(p), (void *p, size_t n, size_t align), (p, n, align))
DELETE(_ZdaPvmSt11align_val_t, vv_alloc_free(p), (void *p, size_t n, size_t align), (p, n, align))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, vv_alloc_free(p), (void *p, size_t align, const void *tag), (p, align, tag))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, vv_alloc_free(p), (void *p, size_t align, const void *tag), (p, align, tag))
