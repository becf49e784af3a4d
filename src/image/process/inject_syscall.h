/* Makes another process execute system calls: ptrace(2) stops it for a moment, and it does not
 * notice. An example is userfaultfd(2), which acts on the memory of its caller. */
#ifndef VV_IMAGE_PROCESS_INJECT_SYSCALL_H
#define VV_IMAGE_PROCESS_INJECT_SYSCALL_H

#include "image/process/registers.h"

struct vv_inject_syscall;

/* Stops all threads of a process and runs `act`, which makes the process execute calls. Then the
 * process continues as before. act runs in a process that shares our memory and our descriptors.
 * VV_ENOTSUP, with the reason: it is not possible. */
int vv_inject_syscall_run(pid_t pid, int (*act)(struct vv_inject_syscall *j, void *arg), void *arg);
/* For act: executes one call; *result may be a negated error number. vv_inject_syscall_take
 * duplicates a descriptor of the process into ours. */
int vv_inject_syscall_call(struct vv_inject_syscall *j, long number, const uint64_t arg[VV_REGISTERS_ARGS], long *result);
int vv_inject_syscall_take(struct vv_inject_syscall *j, int fd, int *out);

/* Creates a userfaultfd of the process. Then calls `meanwhile` before any thread of the process
 * continues: the memory map does not change until it returns. That call runs in a process that
 * shares our memory. The duration of the stop is added to *stopped_s. VV_ENOTSUP, with the reason:
 * it is not possible, and the process continues as before. */
int vv_inject_syscall_userfault(pid_t pid, int (*meanwhile)(void *arg, int uffd), void *arg, int *uffd, double *stopped_s);
/* On return each thread has left the kernel once, or waits there without holding pages. So the
 * system calls that were in progress before have ended or begin again. They could have written
 * unseen. */
int vv_inject_syscall_wait_pending(pid_t pid, double *stopped_s);

#endif
