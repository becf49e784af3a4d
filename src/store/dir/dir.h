/* A store in a directory of a POSIX file system. */
#ifndef VV_STORE_DIR_DIR_H
#define VV_STORE_DIR_DIR_H

#include "store/backend/store_options.h"
#include "store/dir/dir_priv.h"

struct vv_fs;

/* url: a path, or dir:PATH. */
int vv_dir_open(const char *url, const struct vv_store_options *opt, struct vv_store **out);
/* For tests: the file system of directories opened from now on; NULL = the real one. */
void vv_dir_set_fs(const struct vv_fs *fs);

char *vv_dir_path(struct vv_dir *d, const char *name); /* the caller frees it */
/* Makes the directories above path, which lies below the root, and makes each new one durable in
 * its parent. */
int vv_dir_make_parents(struct vv_dir *d, char *path);
/* Makes the entry of path in its directory durable. */
int vv_dir_sync_parent(struct vv_dir *d, const char *path);
/* Opens a regular file. VV_EDAMAGED: another kind of file, or a local file system has lost it. */
int vv_dir_open_file(struct vv_dir *d, const char *path, int flags, int *fd, struct stat *st);
/* Reads n bytes, with a second try if necessary. VV_EDAMAGED: a local file system has lost them.
 * Other errors do not mean that the bytes are lost. */
int vv_dir_read(const struct vv_fs *fs, int fd, const char *path, void *to, size_t n, uint64_t off);

#endif
