/* A devpts of its own: the terminals of a restored tree keep their numbers, whoever has these numbers outside. */
#ifndef VV_IMAGE_PROCESS_PRIVATE_DEVPTS_H
#define VV_IMAGE_PROCESS_PRIVATE_DEVPTS_H

#include <stdbool.h>
#include <sys/types.h>

/* From here on this thread, and all that it starts, are in a mount namespace of their own with a fresh devpts. */
int vv_private_devpts_open(void);
/* Is that the mount namespace of this process, and not ours? */
bool vv_private_devpts_has(pid_t pid);

#endif
