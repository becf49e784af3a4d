/* Protects varve's descriptors in a program that may close descriptors it has not opened, for
 * instance before it becomes a daemon. They have numbers far from the program's own. So the
 * program's next descriptor, or a dup2 to a certain number, does not meet one of them.
 *
 * A library that interposes close(2) calls vv_own_fds_begin and asks here. Without it the
 * descriptors can be closed: base/fd_identity.h. */
#ifndef VV_BASE_OWN_FDS_H
#define VV_BASE_OWN_FDS_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on descriptors are recorded, in this process but not in its children. */
void vv_own_fds_begin(void);

/* Called before and after a call that makes a descriptor. The second moves the descriptor to a
 * number far from the program's, if possible, records it, and returns the new number. -1 stays -1,
 * with its errno. In between the descriptor has a number that the program may think free, so a
 * closing thread waits a moment. */
void vv_own_fds_make(void);
int vv_own_fds_made(int fd);
/* open(2) with both calls. */
int vv_own_fds_open(const char *path, int flags, mode_t mode);
/* Closes the descriptor, recorded or not. */
int vv_own_fds_close(int fd);

/* Called around code that closes or replaces descriptors. Meanwhile no descriptor is made, and none
 * has its first number any more. */
void vv_own_fds_stop(void);
void vv_own_fds_go_on(void);
bool vv_own_fds_has(int fd);
/* The first recorded descriptor from this number on; -1: none. */
int vv_own_fds_next(int fd);

#endif
