/* Descriptors of our own, in a program that may close whatever it has not opened itself, before it goes into the background for instance. They have numbers far from
 * its own, so that what it opens next, or puts in a certain place with dup2, does not get one of ours. Who stands in front of close(2) asks here, and begins it;
 * without that they can be closed: base/stamp.h. */
#ifndef VV_BASE_KEEP_H
#define VV_BASE_KEEP_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on descriptors are kept, in this process, not in its children. */
void vv_keep_begin(void);

/* Moves it to a number far from the program's own, where there is one, and keeps it: the number that counts is returned. -1 stays -1, with its errno. */
int vv_keep_fd(int fd);
/* open(2), and keeps it. */
int vv_keep_open(const char *path, int flags, mode_t mode);
/* Closes it, whether it is kept or not. */
int vv_keep_close(int fd);
/* Waits a moment for one that is just being opened. */
bool vv_keep_has(int fd);
/* The first that is kept from this number on; -1: none. */
int vv_keep_next(int fd);

#endif
