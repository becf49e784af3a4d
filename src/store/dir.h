/* A store in a directory of a POSIX file system. */
#ifndef VV_STORE_DIR_H
#define VV_STORE_DIR_H

#include "store/dir_priv.h"
#include "store/store.h"

struct vv_fs;

/* url: a path, or dir:PATH. */
int vv_dir_open(const char *url, const struct vv_store_options *opt, struct vv_store **out);
/* Tests: the file system that directories opened from now on use; NULL = the real one. */
void vv_dir_set_fs(const struct vv_fs *fs);

char *vv_dir_path(struct vv_dir *d, const char *name); /* new memory */
/* Makes the directories above path, which lies below the root; each new one is made durable in its parent. */
int vv_dir_make_parents(struct vv_dir *d, char *path);
/* Makes the entry of path in its directory durable. */
int vv_dir_sync_parent(struct vv_dir *d, const char *path);
/* Opens a regular file: anything else is VV_EDAMAGED, and so is one that a file system of this machine has lost. */
int vv_dir_open_file(struct vv_dir *d, const char *path, int flags, int *fd, struct stat *st);
/* Reads n bytes, at a second try if need be. VV_EDAMAGED: a file system of this machine has lost them. Other errors tell nothing of the bytes. */
int vv_dir_read(const struct vv_fs *fs, int fd, const char *path, void *to, size_t n, uint64_t off);

#endif
