/* A userfaultfd of another process. It speaks of the memory of whoever makes it; so that process makes the call itself, held by ptrace(2) for a moment, and
 * knows nothing of it. */
#ifndef VV_IMAGE_INJECT_H
#define VV_IMAGE_INJECT_H

#include <sys/types.h>

/* As soon as it is there, and before any thread of the process goes on, `meanwhile` is called: the map of its memory does not change until it returns. It runs in
 * a process that shares our memory. *stopped_s becomes longer by how long the process stood still. VV_ENOTSUP, with the reason, where it cannot be had; it runs on
 * as before. */
int vv_inject_userfault(pid_t pid, int (*meanwhile)(void *arg, int uffd), void *arg, int *uffd, double *stopped_s);
/* Each thread has been outside of the kernel once since this was called, or waited there without a hold of memory: system calls that were under way before, and
 * could write unseen, are done, or begin again. */
int vv_inject_settle(pid_t pid, double *stopped_s);

#endif
