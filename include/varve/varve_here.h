/* Checkpoints of programs that declare no regions.
 *
 *	struct state *s = make(...);
 *	varve_root_here(s);                         the root of the state
 *	for (; s->step < n; s->step++) {            on the heap, or static; not on the stack
 *		...
 *		varve_checkpoint_here();
 *	}
 *
 * Under `varve run -- ./program`, the call saves the whole heap of the program if a checkpoint is
 * due. After a restart the program runs its normal start-up code, and the first call restores the
 * heap. Without `varve run` the calls do nothing. The functions are looked up at run time, so the
 * program links no library. */
#ifndef VARVE_HERE_H
#define VARVE_HERE_H

#include <dlfcn.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* By name, at run time: in a program of a fixed address (x86_64) the linker would resolve a weak
 * symbol for good. */
typedef void (*varve_here_fn)(void);

static inline varve_here_fn varve_here_find(const char *name)
{
	varve_here_fn fn = NULL;

	*(void **)&fn = dlsym(NULL, name); /* RTLD_DEFAULT, which not every language standard declares */
	return fn;
}

/* Makes an object visible to other code. Otherwise the compiler may keep a newly allocated object
 * in registers, and not read it again after a call. Call it once for the root of the state, after
 * its allocation. It is not needed for an object in a global variable or from another source
 * file. */
static inline void varve_root_here(const volatile void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

/* Returns 1 if the heap has just been restored from an epoch. Returns 0 if the program continues
 * with its own heap: a checkpoint was taken, or none was due. Returns < 0 if a checkpoint failed,
 * with a warning that gives the reason. One thread calls it; in an MPI program, one thread of every
 * rank. During the first call no other thread may allocate or change the heap. */
static inline int varve_checkpoint_here(void)
{
	int (*fn)(void) = (int (*)(void))varve_here_find("varve_checkpoint_here");
	int rc;

	__asm__ volatile("" : : : "memory");
	rc = fn ? fn() : 0;
	__asm__ volatile("" : : : "memory");
	return rc;
}

/* Adds memory outside of the heap to the state: a static or global variable. Call it before the
 * first varve_checkpoint_here, with the same name in every run. `varve run --globals` adds all of
 * them. */
static inline int varve_protect_here(const char *name, void *p, size_t len)
{
	int (*fn)(const char *, void *, size_t) = (int (*)(const char *, void *, size_t))varve_here_find("varve_protect_here");

	return fn ? fn(name, p, len) : 0;
}

/* Excludes an object in the heap, or in a protected variable, that must keep the value of this run:
 * a communicator, a file, a stream. Call it before the first varve_checkpoint_here. */
static inline int varve_except_here(void *p, size_t len)
{
	int (*fn)(void *, size_t) = (int (*)(void *, size_t))varve_here_find("varve_except_here");

	return fn ? fn(p, len) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
