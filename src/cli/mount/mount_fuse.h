/* The tree of a store as a file system of the kernel, by libfuse. */
#ifndef VV_CLI_MOUNT_MOUNT_FUSE_H
#define VV_CLI_MOUNT_MOUNT_FUSE_H

#include "cli/mount/mount_tree.h"

struct vv_mount_fuse;

/* Mounts at an existing folder, read-only. The tree comes later: threads do not survive a fork. */
int vv_mount_fuse_open(const char *url, const char *folder, struct vv_mount_fuse **out);
/* Serves requests until the folder is unmounted, or a signal ends the process. With `log`, errors
 * go to the system's log; else to the standard error. */
int vv_mount_fuse_serve(struct vv_mount_fuse *m, struct vv_mount_tree *tree, bool log);
/* Unmounts, if it is still mounted. */
void vv_mount_fuse_close(struct vv_mount_fuse *m);

#endif
