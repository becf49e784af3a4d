/* Which file a descriptor was of when we opened it. A program that closes descriptors that it has not opened gives our numbers to its own files; then what we
 * write must not go there, and what we close is not ours. (In programs that are run with libvarve_preload.so that cannot happen: base/keep.h.) */
#ifndef VV_BASE_STAMP_H
#define VV_BASE_STAMP_H

#include <stdbool.h>
#include <sys/types.h>

struct vv_stamp {
	dev_t dev;
	ino_t ino;
};

/* Of what has no name. If it cannot be told, it fits nothing. */
struct vv_stamp vv_stamp_of(int fd);
/* Of the file of that name: so that it is not a stranger's that took the number right after it was opened. */
struct vv_stamp vv_stamp_named(const char *path);
bool vv_stamp_fits(const struct vv_stamp *s, int fd);
/* 0; or VV_EIO: it is not what it was, and `what` was to be done. */
int vv_stamp_check(const struct vv_stamp *s, int fd, const char *what);
/* Closes it, kept or not, if it is still ours. */
void vv_stamp_close(const struct vv_stamp *s, int fd);

#endif
