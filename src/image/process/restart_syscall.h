/* System calls in which a thread waits, and how it goes back to one after it was stopped in it by ptrace(2). The kernel's own way shows when it is stopped
 * again: a sleep goes on by restart_syscall(2), from then on, of which an image cannot keep what is left to sleep; epoll_wait(2) and its like return EINTR. So
 * it is made to begin the call anew, with the arguments that it had. That is what criu does to it a moment later in any case. */
#ifndef VV_IMAGE_PROCESS_RESTART_SYSCALL_H
#define VV_IMAGE_PROCESS_RESTART_SYSCALL_H

#include "image/process/registers.h"

struct vv_restart_syscall_seen { /* of a thread before it was stopped */
	long number;   /* of the call that it waits in; -1: none */
	uint64_t arg, place;
	uint64_t waits; /* how often it had waited by then */
};

struct vv_restart_syscall_way { /* back to a call */
	bool followed; /* it has to be, until it is in there, with all signals blocked: so one that comes finds it in its call */
	long number;
	uint64_t gate;
};

void vv_restart_syscall_record(pid_t tid, struct vv_restart_syscall_seen *out);
/* It waits, and has no hold of pages of its process: nothing is written there that the kernel would not see. */
bool vv_restart_syscall_is_at_rest(const struct vv_restart_syscall_seen *seen);

/* Registers of a thread that was stopped become those by which it makes its call again; of one that was led away, the registers that it had before. */
void vv_restart_syscall_rewind(pid_t tid, const struct vv_restart_syscall_seen *seen, bool was_led, struct vv_registers_regs *r, struct vv_restart_syscall_way *way);
/* It was followed into a system call. */
void vv_restart_syscall_finish(pid_t tid, const struct vv_restart_syscall_way *way);

#endif
