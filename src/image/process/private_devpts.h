/* A private devpts: the terminals of a restored tree keep their numbers, even if these numbers are
 * in use outside. */
#ifndef VV_IMAGE_PROCESS_PRIVATE_DEVPTS_H
#define VV_IMAGE_PROCESS_PRIVATE_DEVPTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Moves this thread and its future children into a new mount namespace with a new devpts. */
int vv_private_devpts_open(void);
/* Returns whether the process is in such a mount namespace, and not in ours. */
bool vv_private_devpts_has(pid_t pid);

#endif
