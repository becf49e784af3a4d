/* Checks whether a process may be copied while it runs. */
#ifndef VV_IMAGE_CHECK_PRECOPY_CHECK_H
#define VV_IMAGE_CHECK_PRECOPY_CHECK_H

#include <sys/types.h>

/* VV_ENOTSUP, with the reason: the process must not be touched, or its memory may be written unseen
 * by the kernel. */
int vv_precopy_check_check(pid_t pid);

#endif
