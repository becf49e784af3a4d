/* Threads of another process, stopped by ptrace(2). Whoever stops them must have SIGCHLD blocked. Those that it cannot let go of, because they never came to a
 * stop, the kernel lets go of when it ends. */
#ifndef VV_IMAGE_HALT_H
#define VV_IMAGE_HALT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct vv_halt_thread {
	pid_t tid;
	bool stopped;
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
void vv_halt_let_go(struct vv_halt *h);
/* One after another, each for a moment only. */
int vv_halt_each(struct vv_halt *h);

/* ptrace(2), as the kernel has it. */
int vv_halt_trace(int request, pid_t tid, uintptr_t addr, uintptr_t data);
/* What has become of a thread that was told to go on, or to stop: a status of wait(2); false: nothing, for too long. */
bool vv_halt_hear(const struct vv_halt *h, pid_t tid, int *status);
/* Is it one that was asked for by PTRACE_INTERRUPT, or of a process that is stopped? */
bool vv_halt_is_stop(int status);

#endif
