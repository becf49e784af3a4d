/* The identity of the file behind a descriptor at its opening. A program may close descriptors that
 * it has not opened, or replace them by its own files (dup2). Then varve's numbers denote its
 * files: varve must not write to them or close them. With libvarve_preload.so this cannot happen:
 * base/own_fds.h.
 *
 * The check comes last before the call, but in the few instructions in between another thread may
 * still replace the descriptor. No call of the kernel takes a descriptor only if it belongs to a
 * certain file. So written data is checked again after the call, and no epoch is made of a failed
 * write. */
#ifndef VV_BASE_FD_IDENTITY_H
#define VV_BASE_FD_IDENTITY_H

#include "base/fs.h"
#include <stdbool.h>
#include <sys/types.h>

struct vv_fd_identity {
	dev_t dev;
	ino_t ino;
};

/* Of an unnamed file. If the identity cannot be determined, it matches nothing. */
struct vv_fd_identity vv_fd_identity_of(int fd);
/* Of the named file: another file may have taken the number right after the opening. */
struct vv_fd_identity vv_fd_identity_named(const char *path);
bool vv_fd_identity_fits(const struct vv_fd_identity *s, int fd);
/* 0; or VV_EIO: the descriptor has changed. The last argument names the intended operation. */
int vv_fd_identity_check(const struct vv_fd_identity *s, int fd, const char *what);
/* vv_err_sys for varve's own descriptors, with the only possible reason of EBADF. */
int vv_fd_identity_err(int errnum, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Closes the descriptor, kept or not, if it is still varve's. */
void vv_fd_identity_close(const struct vv_fd_identity *s, int fd);

/* A file system for one open file. Each call that takes a descriptor fails with EBADF unless the
 * descriptor still belongs to the file. */
struct vv_fd_identity_fs {
	struct vv_fs fs; /* first member; calls that take a path are missing */
	const struct vv_fs *under;
	struct vv_fd_identity stamp;
};

void vv_fd_identity_guard(struct vv_fd_identity_fs *out, const struct vv_fs *under, const struct vv_fd_identity *stamp);

#endif
