/* A userfaultfd of another process. It speaks of the memory of whoever makes it; so that process makes the call itself, held by ptrace(2) for a moment, and
 * knows nothing of it. */
#ifndef VV_IMAGE_INJECT_H
#define VV_IMAGE_INJECT_H

#include <sys/types.h>

/* *stopped_s becomes longer by how long it stood still. VV_ENOTSUP, with the reason, where it cannot be had; the process runs on as before. */
int vv_inject_userfault(pid_t pid, int *uffd, double *stopped_s);
/* Each thread has been outside of the kernel once since this was called: system calls that were under way before are done, or begin again. */
int vv_inject_settle(pid_t pid, double *stopped_s);

#endif
