/* Returns a thread to the system call in which ptrace(2) has stopped it. The kernel's own restart
 * is visible at the next stop. From then on, a sleep continues by restart_syscall(2), and an image
 * cannot keep its remaining time; epoll_wait(2) and similar calls return EINTR. So the thread
 * begins the call again, with its original arguments. criu does the same a moment later in any
 * case. */
#ifndef VV_IMAGE_PROCESS_RESTART_SYSCALL_H
#define VV_IMAGE_PROCESS_RESTART_SYSCALL_H

#include "image/process/registers.h"

struct vv_restart_syscall_seen { /* state of a thread before its stop */
	long number;   /* of the call in which it waits; -1: none */
	uint64_t arg, place;
	uint64_t waits; /* number of its waits up to then */
};

struct vv_restart_syscall_way { /* the way back to a call */
	/* The thread must be traced into the call with all signals blocked, so that a signal finds
	 * it there. */
	bool followed;
	long number;
	uint64_t gate;
};

void vv_restart_syscall_record(pid_t tid, struct vv_restart_syscall_seen *out);
/* The thread waits and holds no pages of its process: the kernel sees every write to them. */
bool vv_restart_syscall_is_at_rest(const struct vv_restart_syscall_seen *seen);

/* Changes the registers of a stopped thread so that it makes its call again. For a redirected
 * thread, `r` holds its original registers. */
void vv_restart_syscall_rewind(pid_t tid, const struct vv_restart_syscall_seen *seen, bool was_led, struct vv_registers_regs *r, struct vv_restart_syscall_way *way);
/* Corrects the call number of a followed thread that has entered its system call. */
void vv_restart_syscall_finish(pid_t tid, const struct vv_restart_syscall_way *way);

#endif
