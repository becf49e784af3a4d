/* What the files of the directory store share. */
#ifndef VV_STORE_DIR_PRIV_H
#define VV_STORE_DIR_PRIV_H

#include "base/fs.h"
#include "store/store.h"

#define VV_DIR_TMP ".tmp-" /* names of unfinished objects begin so */

struct vv_dir {
	struct vv_store base;
	const struct vv_fs *fs;
	char *root;
};

static inline struct vv_dir *vv_dir_of(struct vv_store *s)
{
	return (struct vv_dir *)s;
}

char *vv_dir_path(struct vv_dir *d, const char *name); /* new memory */
/* Makes the directories above path, which lies below the root; each new one is made durable in its parent. */
int vv_dir_make_parents(struct vv_dir *d, char *path);
/* Makes the entry of path in its directory durable. */
int vv_dir_sync_parent(struct vv_dir *d, const char *path);

int vv_dir_put_open(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out);
int vv_dir_put_write(struct vv_put *base, const struct iovec *iov, int n);
int vv_dir_put_commit(struct vv_put *base);
void vv_dir_put_abort(struct vv_put *base);

#endif
