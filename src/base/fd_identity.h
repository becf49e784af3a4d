/* Which file a descriptor was of when we opened it. A program that closes descriptors that it has not opened, or puts files of its own in their place (dup2), gives
 * our numbers to its files; then what we write must not go there, and what we close is not ours. (In programs that are run with libvarve_preload.so that cannot
 * happen: base/own_fds.h.)
 *
 * The look is the last thing before the call: but in the few instructions between the two another thread may still do it. No call of the kernel's takes a descriptor
 * only if it is of a certain file. What was written is looked at again after the call, so that no epoch is made of it. */
#ifndef VV_BASE_FD_IDENTITY_H
#define VV_BASE_FD_IDENTITY_H

#include "base/fs.h"
#include <stdbool.h>
#include <sys/types.h>

struct vv_fd_identity {
	dev_t dev;
	ino_t ino;
};

/* Of what has no name. If it cannot be told, it fits nothing. */
struct vv_fd_identity vv_fd_identity_of(int fd);
/* Of the file of that name: so that it is not a stranger's that took the number right after it was opened. */
struct vv_fd_identity vv_fd_identity_named(const char *path);
bool vv_fd_identity_fits(const struct vv_fd_identity *s, int fd);
/* 0; or VV_EIO: it is not what it was, and `what` was to be done. */
int vv_fd_identity_check(const struct vv_fd_identity *s, int fd, const char *what);
/* vv_err_sys for descriptors of our own, with the one reason that there is for EBADF. */
int vv_fd_identity_err(int errnum, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Closes it, kept or not, if it is still ours. */
void vv_fd_identity_close(const struct vv_fd_identity *s, int fd);

/* A file system for one open file: each of its calls that take a descriptor is refused with EBADF unless it is still that of the file. */
struct vv_fd_identity_fs {
	struct vv_fs fs; /* first; the calls that take a path are not there */
	const struct vv_fs *under;
	struct vv_fd_identity stamp;
};

void vv_fd_identity_guard(struct vv_fd_identity_fs *out, const struct vv_fs *under, const struct vv_fd_identity *stamp);

#endif
