/* Threads of another process, stopped by ptrace(2). Whoever stops them must have SIGCHLD blocked, and end soon: the kernel then lets go of those that never came
 * to a stop, and of those that are back in a system call. */
#ifndef VV_IMAGE_PROCESS_STOP_THREADS_H
#define VV_IMAGE_PROCESS_STOP_THREADS_H

#include "image/process/restart_syscall.h"

struct vv_stop_threads_thread {
	pid_t tid;
	bool stopped;
	struct vv_restart_syscall_seen seen; /* what it did before, */
	struct vv_restart_syscall_way way;   /* and how it goes back to that: */
	bool is_redirected;               /* its registers are as they are to be already, and all signals are blocked */
	struct vv_registers_signals signals; /* that were before */
};

struct vv_stop_threads {
	pid_t pid;
	uint64_t began; /* to wait, by vv_clock_ns; 0: what is waited for must come */
	struct vv_stop_threads_thread *thread; /* the first is the process itself */
	size_t n, cap;
	double longest_s; /* that one of vv_stop_threads_each was stopped */
};

/* All at once. VV_ENOTSUP, with the reason: some may be stopped. */
int vv_stop_threads_all(struct vv_stop_threads *h);
/* They go on with what they were in. */
void vv_stop_threads_resume(struct vv_stop_threads *h);
/* One after another, each for a moment only; those that are at rest in the kernel are left there. */
int vv_stop_threads_each(struct vv_stop_threads *h);

/* What has become of a thread that was told to go on, or to stop: a status of wait(2); false: nothing, for too long, or it is not ours any more. */
bool vv_stop_threads_wait(const struct vv_stop_threads *h, pid_t tid, int *status);
/* Is it one that was asked for by PTRACE_INTERRUPT, or of a process that is stopped? */
bool vv_stop_threads_is_stop(int status);

#endif
