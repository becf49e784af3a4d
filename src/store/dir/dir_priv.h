/* Types that the files of the directory store share. */
#ifndef VV_STORE_DIR_DIR_PRIV_H
#define VV_STORE_DIR_DIR_PRIV_H

#include "base/fs.h"
#include "base/fd_identity.h"
#include "core/format/bundle.h"
#include "store/backend/backend.h"
#include "store/backend/store_options.h"
#include <pthread.h>
#include <stdatomic.h>

#define VV_DIR_TMP ".tmp-" /* prefix of unfinished objects' names */

struct vv_dir_cut { /* the removed file that is being freed (dir_cut.c) */
	pthread_mutex_t lock;
	int fd; /* -1: none */
	uint64_t size; /* that is left */
	struct vv_fd_identity_fs own;
};

struct vv_dir {
	struct vv_store base;
	const struct vv_fs *fs;
	pid_t pid; /* of the process that opened it */
	char *root;
	enum vv_store_io io;
	atomic_bool wrote_direct; /* the file system has direct writes */
	struct vv_dir_spares *spares; /* NULL: removed files are freed (dir_spare.c) */
	struct vv_dir_memory *memory; /* remembered bundles (dir_member.c) */
	struct vv_dir_cut cut;
};

static inline struct vv_dir *vv_dir_of(struct vv_store *s)
{
	return (struct vv_dir *)s;
}

struct vv_dir_bundles { /* the bundles of a folder, by their names: v[].v is empty */
	struct vv_bundle *v;
	size_t n;
	size_t cap;
};

struct vv_dir_member { /* an object in a bundle, open */
	int fd;
	char *path; /* of the bundle */
	uint64_t off;
	uint64_t len;
	struct stat st; /* of the bundle */
	struct vv_fd_identity_fs own;
};

/* Guards an opened file with this status. */
static inline void vv_dir_guard(struct vv_dir *d, const struct stat *st, struct vv_fd_identity_fs *out)
{
	struct vv_fd_identity stamp = { st->st_dev, st->st_ino };

	vv_fd_identity_guard(out, d->fs, &stamp);
}

#endif
