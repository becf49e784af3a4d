/* Threads of another process, stopped by ptrace(2). Whoever stops them must have SIGCHLD blocked, and end soon: the kernel then lets go of those that never came
 * to a stop, and of those that are back in a system call. */
#ifndef VV_IMAGE_HALT_H
#define VV_IMAGE_HALT_H

#include "image/process/restart_syscall.h"

struct vv_halt_thread {
	pid_t tid;
	bool stopped;
	struct vv_calls_seen seen; /* what it did before, */
	struct vv_calls_way way;   /* and how it goes back to that: */
	bool is_led;               /* its registers are as they are to be already, and all signals are blocked */
	struct vv_trace_signals signals; /* that were before */
};

struct vv_halt {
	pid_t pid;
	uint64_t began; /* to wait, by vv_clock_ns; 0: what is waited for must come */
	struct vv_halt_thread *thread; /* the first is the process itself */
	size_t n, cap;
	double longest_s; /* that one of vv_halt_each was stopped */
};

/* All at once. VV_ENOTSUP, with the reason: some may be stopped. */
int vv_halt_all(struct vv_halt *h);
/* They go on with what they were in. */
void vv_halt_let_go(struct vv_halt *h);
/* One after another, each for a moment only; those that are at rest in the kernel are left there. */
int vv_halt_each(struct vv_halt *h);

/* What has become of a thread that was told to go on, or to stop: a status of wait(2); false: nothing, for too long, or it is not ours any more. */
bool vv_halt_hear(const struct vv_halt *h, pid_t tid, int *status);
/* Is it one that was asked for by PTRACE_INTERRUPT, or of a process that is stopped? */
bool vv_halt_is_stop(int status);

#endif
