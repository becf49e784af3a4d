/* What the files of the directory store share. */
#ifndef VV_STORE_DIR_PRIV_H
#define VV_STORE_DIR_PRIV_H

#include "base/fs.h"
#include "base/fd_identity.h"
#include "core/format/bundle.h"
#include "store/store.h"

#define VV_DIR_TMP ".tmp-" /* names of unfinished objects begin so */

struct vv_dir {
	struct vv_store base;
	const struct vv_fs *fs;
	char *root;
	struct vv_dir_memory *memory; /* of bundles seen before (dir_member.c) */
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

/* Opens a regular file: anything else is VV_EDAMAGED, and so is one that a file system of this machine has lost. */
int vv_dir_open_file(struct vv_dir *d, const char *path, int flags, int *fd, struct stat *st);

/* Reads n bytes, at a second try if need be. VV_EDAMAGED: a file system of this machine has lost them. Other errors tell nothing of the bytes. */
int vv_dir_read(const struct vv_fs *fs, int fd, const char *path, void *to, size_t n, uint64_t off);

int vv_dir_list(struct vv_store *s, const char *dir, struct vv_names *out);
int vv_dir_look_unfinished(struct vv_store *s, const char *dir, struct vv_names *out);
int vv_dir_look_size(struct vv_store *s, const char *name, uint64_t *size);

int vv_dir_put_open(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out);
int vv_dir_put_write(struct vv_put *base, const struct iovec *iov, int n);
int vv_dir_put_commit(struct vv_put *base);
void vv_dir_put_abort(struct vv_put *base);
int vv_dir_put_join(struct vv_store *s, const char *bundle, const char *token, uint64_t off, uint64_t room,
		    struct vv_put **out);
/* "PID-N", never the same twice; and DIR/NAME -> DIR/.tmp-NAME-PID-N in new memory. */
void vv_dir_put_token(char token[VV_STORE_TOKEN]);
char *vv_dir_put_tmp(const char *path, const char *token);
/* Creates it, and the folders above it. */
int vv_dir_put_create(struct vv_dir *d, char *tmp, int *fd);
/* Gives what is durable under a temporary name its own; with an rc that is not 0, or if it fails, nothing is left of it. */
int vv_dir_put_publish(struct vv_dir *d, const char *tmp, const char *path, int rc);

int vv_dir_bundle_make(struct vv_store *s, const char *bundle, char token[VV_STORE_TOKEN]);
int vv_dir_bundle_seal(struct vv_store *s, const char *bundle, const char *token, const struct vv_member *m, size_t n);
void vv_dir_bundle_drop(struct vv_store *s, const char *bundle, const char *token);
/* The unfinished file of a bundle, in new memory; the token may come from anywhere. */
int vv_dir_bundle_tmp(struct vv_dir *d, const char *bundle, const char *token, char **out);

struct vv_dir_bundles { /* the bundles of a folder, by their names: nothing in v[].v */
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

/* Looks after a file that was opened, and had this status then. */
static inline void vv_dir_guard(struct vv_dir *d, const struct stat *st, struct vv_fd_identity_fs *out)
{
	struct vv_fd_identity stamp = { st->st_dev, st->st_ino };

	vv_fd_identity_guard(out, d->fs, &stamp);
}

int vv_dir_member_init(struct vv_dir *d);
void vv_dir_member_fini(struct vv_dir *d);
/* Looks for the bundles of a folder and remembers them; sorted. An absent folder has none. */
int vv_dir_member_scan(struct vv_dir *d, const char *folder, struct vv_dir_bundles *out);
/* FOLDER/NAME of a bundle, in new memory. */
char *vv_dir_member_bundle(const char *folder, const struct vv_bundle *b);
/* Reads the directory of a bundle, whose name has been parsed into b. */
int vv_dir_member_load(const struct vv_fs *fs, int fd, const char *path, uint64_t size, struct vv_bundle *b);
/* Is a member's first byte there? 1, 0, or an error. */
int vv_dir_member_present(const struct vv_fs *fs, int fd, const char *path, uint64_t off);
/* path: ROOT/.../NAME of an object. VV_ENOENT if no bundle has it; with `look` the folder is looked through before that is
 * said, else what is remembered of it will do. */
int vv_dir_member_open(struct vv_dir *d, const char *path, int flags, bool look, struct vv_dir_member *out);
void vv_dir_member_close(struct vv_dir_member *m);
/* Removes the object from whatever bundle has it, durably. */
int vv_dir_member_remove(struct vv_dir *d, const char *path);
/* A plain object of that name is durable now: its space in a bundle that is known goes, or stays for the next sweep. */
void vv_dir_member_replaced(struct vv_dir *d, const char *path);
/* Finishes what the dead have begun in a folder's bundles. What they did to its names is durable already. */
int vv_dir_member_sweep(struct vv_dir *d, const char *folder);

#endif
