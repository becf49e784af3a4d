/* The members of bundles, as objects. */
#ifndef VV_STORE_DIR_DIR_MEMBER_H
#define VV_STORE_DIR_DIR_MEMBER_H

#include "store/dir/dir_priv.h"

int vv_dir_member_init(struct vv_dir *d);
void vv_dir_member_fini(struct vv_dir *d);
/* Finds the bundles of a folder and remembers them; sorted. An absent folder has none. */
int vv_dir_member_scan(struct vv_dir *d, const char *folder, struct vv_dir_bundles *out);
/* FOLDER/NAME of a bundle; the caller frees it. */
char *vv_dir_member_bundle(const char *folder, const struct vv_bundle *b);
/* Reads the directory of a bundle, whose name has been parsed into b. */
int vv_dir_member_load(const struct vv_fs *fs, int fd, const char *path, uint64_t size, struct vv_bundle *b);
/* Is a member's first byte set? 1, 0, or an error. */
int vv_dir_member_present(const struct vv_fs *fs, int fd, const char *path, uint64_t off);
/* path: ROOT/.../NAME of an object. VV_ENOENT if no bundle has it. With `look` the folder is
 * scanned first; else the remembered bundles suffice. */
int vv_dir_member_open(struct vv_dir *d, const char *path, int flags, bool look, struct vv_dir_member *out);
void vv_dir_member_close(struct vv_dir_member *m);
/* Removes the object durably from the bundle that has it. */
int vv_dir_member_remove(struct vv_dir *d, const char *path);
/* After a plain object of that name is durable: frees its space in a remembered bundle, or leaves
 * it to the next sweep. */
void vv_dir_member_replaced(struct vv_dir *d, const char *path);
/* Completes operations of dead processes on a folder's bundles. Their changes of names must be
 * durable already. */
int vv_dir_member_sweep(struct vv_dir *d, const char *folder);

#endif
