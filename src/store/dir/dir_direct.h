/* Reads and writes files past the page cache (O_DIRECT). Bytes to be written are gathered in
 * aligned buffers, and several threads write the buffers at the same time. */
#ifndef VV_STORE_DIR_DIR_DIRECT_H
#define VV_STORE_DIR_DIR_DIRECT_H

#include "base/fs.h"

struct vv_dir_direct;
struct vv_pending_write;

enum { VV_DIR_DIRECT_UNIT = 4096 }; /* of memory, offsets and lengths; no disk has larger sectors */

/* Reads all n bytes, whether the descriptor reads directly or not. 0, or -1 with errno. */
int vv_dir_direct_read(const struct vv_fs *fs, int fd, void *to, size_t n, uint64_t off);
/* Writes the file from its beginning on. The descriptor and fs stay the caller's. NULL where the
 * file system has no direct writes, or for lack of memory. */
struct vv_dir_direct *vv_dir_direct_new(const struct vv_fs *fs, int fd);
/* Appends the bytes. 0; or -1 with errno, which may be that of an earlier write. */
int vv_dir_direct_write(struct vv_dir_direct *d, const struct iovec *iov, int n);
/* The same for multiples of the unit at a multiple of it: they are written from where they lie, and
 * w ends when they are. Not if 0 is not returned. */
int vv_dir_direct_submit(struct vv_dir_direct *d, const struct iovec *iov, int n, struct vv_pending_write *w);
/* Waits until all bytes are written; afterwards the descriptor writes through the page cache. 0, or
 * -1 with errno. */
int vv_dir_direct_finish(struct vv_dir_direct *d);
/* Tests: the size of a buffer, a multiple of 4096. */
void vv_dir_direct_set_room(size_t bytes);
void vv_dir_direct_free(struct vv_dir_direct *d); /* NULL is allowed; waits for writes in progress */

#endif
