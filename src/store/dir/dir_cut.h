/* Frees large removed files in steps. Many disks take more than a second to free a gigabyte, and
 * writes wait meanwhile. */
#ifndef VV_STORE_DIR_DIR_CUT_H
#define VV_STORE_DIR_DIR_CUT_H

#include "store/dir/dir_priv.h"

void vv_dir_cut_init(struct vv_dir *d);
/* In a child of fork the file stays the parent's, whose thread may hold the lock. */
void vv_dir_cut_fini(struct vv_dir *d);
/* Opens a file that is about to be removed or replaced. -1: it is small or absent. */
int vv_dir_cut_open(struct vv_dir *d, const char *path);
/* Takes fd from vv_dir_cut_open, or -1. gone: the removal is durable. Then the file is freed in
 * steps, after an earlier one. Else it stays as it is. */
void vv_dir_cut_close(struct vv_dir *d, int fd, bool gone);
/* Both, for a file that nobody looks for. Returns like unlink. */
int vv_dir_cut_unlink(struct vv_dir *d, const char *path);
/* Frees one step of the file in progress. False: there is none. */
bool vv_dir_cut_step(struct vv_dir *d);
/* Does no other process or mapping use this file? False on file systems without leases. */
bool vv_dir_cut_is_only_ours(int fd);
/* Tests: the size of a step. */
void vv_dir_cut_set_step(uint64_t bytes);

#endif
