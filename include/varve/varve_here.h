/* Checkpoints of programs that declare nothing.
 *
 *	struct state *s = make(...);
 *	varve_root_here(s);                         what the state hangs on
 *	for (; s->step < n; s->step++) {            on the heap, or static; not on the stack
 *		...
 *		varve_checkpoint_here();
 *	}
 *
 * Run by `varve run -- ./program`, the call saves all that the program has allocated, when it is time for a checkpoint. When the program
 * is started again, it does what it does until it comes to the first such call; there it finds its heap as it was. Run without varve, the
 * same program has calls that do nothing: what they call is looked up when the program runs, and no library need be linked. */
#ifndef VARVE_HERE_H
#define VARVE_HERE_H

#include <dlfcn.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* By name, at run time: a weak symbol would be settled for good when a program of a fixed address is linked (x86_64). */
typedef void (*varve_here_fn)(void);

static inline varve_here_fn varve_here_find(const char *name)
{
	varve_here_fn fn = NULL;

	*(void **)&fn = dlsym(NULL, name); /* RTLD_DEFAULT, which not every language standard shows */
	return fn;
}

/* The compiler must know that the object is seen by others: one that it has watched being allocated, and that was never handed to anybody, it may
 * keep in registers, and not look at again after a call. To be said once, of what the state hangs on, after it was allocated; not needed if that is in
 * a global variable, or came from another source file. */
static inline void varve_root_here(const volatile void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

/* 1: the heap has just become that of the epoch that the program goes on from. 0: it goes on as it was; a checkpoint was taken, or it was not
 * time for one. < 0: none could be taken, and a warning said why.
 * One thread calls it, of MPI programs one of each rank, and the others do not allocate or change the heap during the first call. */
static inline int varve_checkpoint_here(void)
{
	int (*fn)(void) = (int (*)(void))varve_here_find("varve_checkpoint_here");
	int rc;

	__asm__ volatile("" : : : "memory");
	rc = fn ? fn() : 0;
	__asm__ volatile("" : : : "memory");
	return rc;
}

/* Something outside of the heap that belongs to the state: a static or global variable. To be said before the first
 * varve_checkpoint_here, under the same name each time. `varve run --globals` says so of all of them. */
static inline int varve_protect_here(const char *name, void *p, size_t len)
{
	int (*fn)(const char *, void *, size_t) = (int (*)(const char *, void *, size_t))varve_here_find("varve_protect_here");

	return fn ? fn(name, p, len) : 0;
}

/* Something in the heap, or in a variable that is protected, that must stay as this run has made it: a communicator, a file, a stream.
 * To be said before the first varve_checkpoint_here. */
static inline int varve_except_here(void *p, size_t len)
{
	int (*fn)(void *, size_t) = (int (*)(void *, size_t))varve_here_find("varve_except_here");

	return fn ? fn(p, len) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
