/* A record for each thread, which is there in its signal handlers, too. Not thread-local storage: where the library comes by dlopen, the first use of that in
 * a thread allocates, maybe in the midst of malloc; and the kind that never does (initial-exec) may be used up by then, so that the library cannot be loaded. */
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
	_Atomic uintptr_t owner; /* pthread_self(); 0: nobody's */

	/* what the kernel writes into on its behalf (kernel_writes.c) */
	unsigned depth;
	struct {
		_Atomic uintptr_t lo, hi;
	} slot[VV_THREAD_SLOTS];

	/* what it met (write_protect.c) */
	uintptr_t page;           /* where it last met a fence that was open already, */
	unsigned long n_enabled; /* and what had been shut by then */
	unsigned long removals;   /* as of its last fault at no fence */
	void *escape;             /* where to go on if memory is gone; NULL: nowhere */
	const sigset_t *blocked;  /* what it had blocked when it met the fence that it is at; NULL: it is at none */
	unsigned held;            /* signals that the program's handler has blocked (chain.c) */

	bool flushes; /* vv_thread_mark_own */
} __attribute__((aligned(64)));

/* This thread's; NULL if there is no memory for one. Safe in signal handlers, after fork, and while the thread ends. */
struct vv_thread *vv_thread_self(void);
/* All of them, whoever's, by `next`: the list only grows. */
struct vv_thread *vv_thread_first(void);
/* Starts a thread of varve's own. It blocks the program's signals, and receives SIGSEGV and SIGBUS. Returns 0 or an errno. */
int vv_thread_start(pthread_t *out, void *(*run)(void *), void *arg);
/* The error for a thread that could not be started; `does` says what the thread is for. */
int vv_thread_not_started(int errnum, const char *does);
/* The calling thread stores epochs: it must never wait at a fence for itself. */
void vv_thread_mark_own(void);
bool vv_thread_is_own(void);
/* In the child of a fork: those of other threads are nobody's. */
void vv_thread_forked(void);

#endif
