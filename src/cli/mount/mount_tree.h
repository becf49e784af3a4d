/* A store as a tree of folders and files, for reading:
 *
 *	LINEAGE/latest                 a symbolic link to the newest epoch
 *	LINEAGE/EPOCH/REGION.npy       a region with a type; without one: REGION.bin
 *	LINEAGE/EPOCH/rankR/REGION.npy the same of an epoch of several ranks
 *	LINEAGE/EPOCH/PATH             a packed file of any rank
 *
 * Names of the second level that are no numbers, such as latest, are symbolic links to epochs. */
#ifndef VV_CLI_MOUNT_MOUNT_TREE_H
#define VV_CLI_MOUNT_MOUNT_TREE_H

#include "cli/mount/mount_reader.h"
#include <sys/stat.h>

struct vv_mount_tree;

/* The pool and the store stay the caller's. */
int vv_mount_tree_open(struct vv_store *store, struct vv_pool *pool, struct vv_mount_tree **out);
void vv_mount_tree_close(struct vv_mount_tree *t); /* NULL is allowed */

/* Paths begin with '/'. All calls may be made from any thread. VV_ENOENT if the path, or its epoch,
 * is not there any more. */
int vv_mount_tree_stat(struct vv_mount_tree *t, const char *path, struct stat *out);
void vv_mount_tree_stat_item(const struct vv_mount_item *item, struct stat *out);
/* VV_EINVAL if the path is no symbolic link. A longer target is cut. */
int vv_mount_tree_readlink(struct vv_mount_tree *t, const char *path, char *out, size_t size);
/* Calls fn for each entry of a folder. fn returns true to stop. */
int vv_mount_tree_list(struct vv_mount_tree *t, const char *path, bool (*fn)(void *arg, const char *name), void *arg);
/* Opens a file. VV_EINVAL if the path is none. */
int vv_mount_tree_open_file(struct vv_mount_tree *t, const char *path, struct vv_mount_reader **out);
void vv_mount_tree_close_file(struct vv_mount_tree *t, struct vv_mount_reader *r);

#endif
