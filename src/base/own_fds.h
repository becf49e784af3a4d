/* Descriptors of our own, in a program that may close whatever it has not opened itself, before it goes into the background for instance. They have numbers far from
 * its own, so that what it opens next, or puts in a certain place with dup2, does not get one of ours. Who stands in front of close(2) asks here, and begins it;
 * without that they can be closed: base/fd_identity.h. */
#ifndef VV_BASE_OWN_FDS_H
#define VV_BASE_OWN_FDS_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on descriptors are kept, in this process, not in its children. */
void vv_own_fds_begin(void);

/* Before a call that makes a descriptor, and after it: moves that to a number far from the program's own, where there is one, and keeps it: the number that counts is
 * returned. -1 stays -1, with its errno. In between it has a number that the program may think to be free: who closes something waits a moment. */
void vv_own_fds_make(void);
int vv_own_fds_made(int fd);
/* open(2), and keeps it. */
int vv_own_fds_open(const char *path, int flags, mode_t mode);
/* Closes it, whether it is kept or not. */
int vv_own_fds_close(int fd);

/* Around what closes numbers, or puts something else in their place: meanwhile none is made, and none that is made has its first number still. */
void vv_own_fds_stop(void);
void vv_own_fds_go_on(void);
bool vv_own_fds_has(int fd);
/* The first that is kept from this number on; -1: none. */
int vv_own_fds_next(int fd);

#endif
