/* A record for each thread that its signal handlers can use, too. Thread-local storage would not
 * do. If the library is loaded by dlopen, its first use in a thread allocates, perhaps inside
 * malloc. The kind that never allocates (initial-exec) may be used up by then, so that the library
 * cannot be loaded. */
#ifndef VV_TRACK_THREAD_H
#define VV_TRACK_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { VV_THREAD_SLOTS = 8 };

struct vv_thread {
	struct vv_thread *next;  /* fixed once it is in the list */
	_Atomic uintptr_t owner; /* pthread_self(); 0: free */

	/* memory that the kernel writes on its behalf (kernel_writes.c) */
	unsigned depth;
	struct {
		_Atomic uintptr_t lo, hi;
		uintptr_t frame; /* an address in the frame of the call; 0: unknown */
	} slot[VV_THREAD_SLOTS];

	/* state of its faults (write_protect.c) */
	uintptr_t page;           /* page of its last fault that was unprotected already */
	unsigned long n_enabled; /* the value of n_enabled at that time */
	unsigned long removals;   /* as of its last fault outside all ranges */
	void *escape;             /* where to continue if memory is gone; NULL: nowhere */
	/* The signals blocked before the write fault that it is in; NULL: it is in none. */
	const sigset_t *blocked;
	unsigned held;            /* signals that the program's handler has blocked (chain.c) */

	bool flushes; /* vv_thread_mark_own */
} __attribute__((aligned(64)));

/* The record of this thread, or NULL if there is no memory. Safe in signal handlers, after fork,
 * and while the thread ends. */
struct vv_thread *vv_thread_self(void);
/* All records, linked by `next`. The list only grows. */
struct vv_thread *vv_thread_first(void);
/* Starts a thread of varve's own. It blocks the program's signals, and receives SIGSEGV and SIGBUS.
 * Returns 0 or an errno. */
int vv_thread_start(pthread_t *out, void *(*run)(void *), void *arg);
/* Sets the error for a thread that could not be started. does: the purpose of the thread, as a verb
 * phrase. */
int vv_thread_not_started(int errnum, const char *does);
/* The calling thread stores epochs, so it must never wait for itself at a write fault. */
void vv_thread_mark_own(void);
bool vv_thread_is_own(void);
/* In the child of a fork: frees the records of the other threads. */
void vv_thread_forked(void);

#endif
