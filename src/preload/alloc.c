/* malloc and its family, for the program and its libraries. The caller's address decides which heap
 * serves an allocation (caller.h). The object's address decides it for free and realloc. */
#undef _FORTIFY_SOURCE
#pragma GCC visibility push(default) /* exports the functions of these headers */
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#pragma GCC visibility pop

#include "preload/alloc.h"
#include "preload/heap_fast.h"
#include "base/env.h"
#include "preload/argv.h"
#include "preload/libc_memory_fortran.h"
#include "preload/library.h"
#include "track/write_protect.h"
#include <errno.h>

static void *run_thread(void *arg);

/* A thread's first function may tail-call malloc, which then returns to run_thread. */
static bool is_of_thread(uintptr_t caller)
{
	return caller - (uintptr_t)run_thread < 256;
}

__thread bool vv_alloc_on_behalf;
_Static_assert((int)VV_HEAP_RUNNING < (int)VV_CALLER_PHASES && VV_HEAP_UNKNOWN == 0, "each phase has a table, the one before all of them too");

bool vv_alloc_decide(uintptr_t caller)
{
	bool program = vv_caller_is_program(caller);

	if ((!program && !vv_alloc_on_behalf && !is_of_thread(caller) && !vv_libc_memory_fortran_calls(caller)) || !vv_heap_prepare_thread())
		return false;
	if (program)
		vv_caller_note(caller, vv_heap_thread_phase, &vv_heap.phase);
	return true;
}

void *(*vv_alloc_process_malloc)(size_t n) = __libc_malloc;

/* Finds a function of the C library itself: another allocator may come before it. */
static void *of_c_library(const char *name)
{
	void *library = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);

	return library ? dlsym(library, name) : NULL;
}

/* The C library has a heap for each thread, at addresses that later libraries would use. Libraries
 * must lie at the same addresses in every run. The C library serves few allocations here, so one
 * heap is enough. */
static void have_one_heap(void)
{
	int (*set)(int, int) = (int (*)(int, int))of_c_library("mallopt");

	if (set)
		set(M_ARENA_MAX, 1);
}

/* An executable with its own malloc comes before any library. A position-dependent executable that
 * takes malloc's address has a symbol for it, too. That symbol is undefined and leads to us. */
bool vv_alloc_is_ours(const char *name)
{
	void *first = dlsym(RTLD_DEFAULT, name), *symbol = NULL;
	Dl_info theirs, ours;

	return !first || !dladdr1(first, &theirs, &symbol, RTLD_DL_SYMENT) || !dladdr((void *)&run_thread, &ours) || theirs.dli_fbase == ours.dli_fbase ||
	       !symbol || ((const ElfW(Sym) *)symbol)->st_shndx == SHN_UNDEF;
}

/* Finds a function of the library whose __libc_malloc we call: allocators that come before the C
 * library (tcmalloc, mimalloc) have one, too. */
static void *of_process(const char *name)
{
	Dl_info where;
	void *library = dladdr((void *)__libc_malloc, &where) ? dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	void *f = library ? dlsym(library, name) : NULL;

	return f ? f : of_c_library(name);
}

static size_t usable_size(void *p)
{
	static _Atomic(void *) real;
	void *f = atomic_load_explicit(&real, memory_order_relaxed);

	if (!p)
		return 0;
	if (vv_heap_owns(p))
		return vv_heap_room(p);
	if (!f) {
		f = of_process("malloc_usable_size");
		atomic_store_explicit(&real, f, memory_order_relaxed);
	}
	return ((size_t (*)(void *))f)(p);
}

/* Called early: the search itself may free memory, whose size is requested while pages are
 * write-protected. */
static void find_usable_size(void)
{
	void *p = __libc_malloc(1);

	usable_size(p);
	__libc_free(p);
}

/* Runs before other constructors: addresses must not depend on the first of them to allocate. */
__attribute__((constructor(101))) static void begin(int argc, char **argv)
{
	/* Our allocations for its callers must come from its allocator, too. */
	if (!vv_alloc_is_ours("malloc")) {
		vv_alloc_process_malloc = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
		vv_heap_disable("the executable has an allocator of its own, which cannot be replaced");
	}
	vv_env_keep();
	vv_library_begin();
	vv_caller_forget();
	vv_heap_begin();
	have_one_heap();
	vv_libc_memory_fortran_ask();
	find_usable_size();
	if (vv_heap_prepare_thread())
		vv_argv_begin(argc, argv);
}

static __attribute__((noinline)) void *allocate(size_t n, uintptr_t caller)
{
	return vv_alloc_is_for_program(caller) ? vv_heap_alloc(n) : __libc_malloc(n);
}

void *malloc(size_t n)
{
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	size_t grains = vv_heap_grains(n);

	return vv_alloc_is_known(caller) && vv_heap_are_few(grains) ? vv_heap_alloc_few(grains) : allocate(n, caller);
}

static __attribute__((noinline)) void *allocate_zeroed(size_t n, size_t size, uintptr_t caller)
{
	size_t all;

	if (!vv_alloc_is_for_program(caller))
		return __libc_calloc(n, size);
	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return vv_heap_alloc_zeroed(all);
}

void *calloc(size_t n, size_t size)
{
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	size_t all, grains;

	if (!vv_alloc_is_known(caller) || __builtin_mul_overflow(n, size, &all) || !vv_heap_are_exact(grains = vv_heap_grains(all)))
		return allocate_zeroed(n, size, caller);
	return vv_heap_alloc_exact_zeroed(grains);
}

/* The C library returns its blocks to the kernel without our munmap; the heap calls our madvise. */
static void unprotect_freed(void *p)
{
	int saved = errno;

	if (p && vv_write_protect_is_active())
		vv_write_protect_before_free(p, usable_size(p));
	errno = saved;
}

void vv_alloc_free_other(void *p)
{
	if (vv_heap_owns(p)) {
		vv_heap_free(p);
		return;
	}
	unprotect_freed(p);
	__libc_free(p);
}

void free(void *p)
{
	vv_alloc_free(p);
}

static inline void *resize(void *p, size_t n, bool program)
{
	if (!p)
		return program ? vv_heap_alloc(n) : __libc_malloc(n);
	if (!vv_heap_owns(p)) {
		unprotect_freed(p);
		return __libc_realloc(p, n);
	}
	if (n)
		return vv_heap_resize(p, n);
	vv_heap_free(p);
	return NULL;
}

void *realloc(void *p, size_t n)
{
	return resize(p, n, !p && FOR_PROGRAM());
}

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t all;

	if (!__builtin_mul_overflow(n, size, &all))
		return resize(p, all, !p && FOR_PROGRAM());
	errno = ENOMEM;
	return NULL;
}

/* Like the C library, rounds any alignment up to a power of two. */
static inline void *aligned(size_t align, size_t n, bool program)
{
	size_t power = VV_HEAP_GRAIN;
	void *p;

	if (!program)
		return __libc_memalign(align, n);
	while (power < align && power <= SIZE_MAX / 4)
		power *= 2;
	p = vv_heap_alloc_aligned(power, n);
	if (!p)
		errno = ENOMEM; /* jemalloc sets it for malloc, not for these */
	return p;
}

void *memalign(size_t align, size_t n)
{
	return aligned(align, n, FOR_PROGRAM());
}

void *aligned_alloc(size_t align, size_t n)
{
	return aligned(align, n, FOR_PROGRAM());
}

int posix_memalign(void **out, size_t align, size_t n)
{
	int saved = errno;
	void *p;

	if (align < sizeof(void *) || (align & (align - 1)))
		return EINVAL;
	p = aligned(align, n, FOR_PROGRAM());
	errno = saved;
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

void *valloc(size_t n)
{
	return aligned((size_t)getpagesize(), n, FOR_PROGRAM());
}

void *pvalloc(size_t n)
{
	size_t page = (size_t)getpagesize(), whole = (n + page - 1) & ~(page - 1);

	/* On overflow the allocation fails anyway. */
	return aligned(page, whole < n ? n : whole, FOR_PROGRAM());
}

size_t malloc_usable_size(void *p)
{
	return usable_size(p);
}

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

int dlclose(void *handle)
{
	int rc = ((int (*)(void *))next("dlclose"))(handle);

	vv_caller_forget();
	return rc;
}

/* ---- threads: numbered in the order of pthread_create, not of their first allocation --------- */

struct thread_start {
	void *(*fn)(void *);
	void *arg;
	unsigned number;
};

__attribute__((noinline, aligned(64))) static void *run_thread(void *arg)
{
	struct thread_start b = *(struct thread_start *)arg;
	void *result;

	__libc_free(arg);
	vv_heap_name_thread(b.number);
	result = b.fn(b.arg);
	/* Prevents a tail call: b.fn must return to this function. */
	__asm__ volatile("" : "+r"(result));
	return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = next("pthread_create");
	struct thread_start *b;
	int rc;

	if (!vv_caller_makes_workers((uintptr_t)__builtin_return_address(0)))
		return real(thread, attr, fn, arg);
	vv_heap_begin();
	b = __libc_malloc(sizeof(*b));
	if (!b)
		return EAGAIN;
	*b = (struct thread_start){ fn, arg, vv_heap_next_thread() };
	rc = real(thread, attr, run_thread, b);
	if (rc)
		__libc_free(b);
	return rc;
}
