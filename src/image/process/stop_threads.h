/* Stops threads of another process by ptrace(2). The calling process must have SIGCHLD blocked and
 * must end soon. At its end the kernel detaches the threads that never stopped or are back in a
 * system call. */
#ifndef VV_IMAGE_PROCESS_STOP_THREADS_H
#define VV_IMAGE_PROCESS_STOP_THREADS_H

#include "image/process/restart_syscall.h"

struct vv_stop_threads_thread {
	pid_t tid;
	bool stopped;
	struct vv_restart_syscall_seen seen; /* state before the stop */
	struct vv_restart_syscall_way way;   /* the way back to that state */
	bool is_redirected; /* its registers are final, and all its signals are blocked */
	struct vv_registers_signals signals; /* the signals that were blocked before */
};

struct vv_stop_threads {
	pid_t pid;
	uint64_t began; /* start of the wait, by vv_clock_ns; 0: no time limit */
	struct vv_stop_threads_thread *thread; /* the first is the main thread */
	size_t n, cap;
	double longest_s; /* longest stop of a thread in vv_stop_threads_each */
};

/* Stops all threads. VV_ENOTSUP, with the reason: some threads may be stopped. */
int vv_stop_threads_all(struct vv_stop_threads *h);
/* The threads continue with their interrupted calls. */
void vv_stop_threads_resume(struct vv_stop_threads *h);
/* Stops one thread after another, each for a moment only. Threads at rest in the kernel are not
 * stopped. */
int vv_stop_threads_each(struct vv_stop_threads *h);

/* Waits for the status (as of wait(2)) of a thread that was continued or interrupted. Returns false
 * after the time limit, or if we do not trace the thread any more. */
bool vv_stop_threads_wait(const struct vv_stop_threads *h, pid_t tid, int *status);
/* Returns whether the status is a stop by PTRACE_INTERRUPT or of a stopped process. */
bool vv_stop_threads_is_stop(int status);

#endif
