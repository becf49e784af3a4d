/* System calls that another process makes itself, held by ptrace(2) for a moment: it knows nothing of them. Of that kind is a userfaultfd, which speaks of the
 * memory of whoever makes it. */
#ifndef VV_IMAGE_PROCESS_INJECT_SYSCALL_H
#define VV_IMAGE_PROCESS_INJECT_SYSCALL_H

#include "image/process/registers.h"

struct vv_inject_syscall;

/* All threads of a process stand still, and it makes the calls that `act` asks for; then it goes on as before. act runs in a process that shares our memory and
 * our descriptors. VV_ENOTSUP, with the reason, where that cannot be had. */
int vv_inject_syscall_run(pid_t pid, int (*act)(struct vv_inject_syscall *j, void *arg), void *arg);
/* For act: one call, whose result may be an error, negated; and a descriptor of the process, taken over. */
int vv_inject_syscall_call(struct vv_inject_syscall *j, long number, const uint64_t arg[VV_REGISTERS_ARGS], long *result);
int vv_inject_syscall_take(struct vv_inject_syscall *j, int fd, int *out);

/* As soon as it is there, and before any thread of the process goes on, `meanwhile` is called: the map of its memory does not change until it returns. It runs in
 * a process that shares our memory. *stopped_s becomes longer by how long the process stood still. VV_ENOTSUP, with the reason, where it cannot be had; it runs on
 * as before. */
int vv_inject_syscall_userfault(pid_t pid, int (*meanwhile)(void *arg, int uffd), void *arg, int *uffd, double *stopped_s);
/* Each thread has been outside of the kernel once since this was called, or waited there without a hold of memory: system calls that were under way before, and
 * could write unseen, are done, or begin again. */
int vv_inject_syscall_wait_pending(pid_t pid, double *stopped_s);

#endif
