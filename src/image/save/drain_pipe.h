/* Moves pages from criu's pipe into memory, while a process is frozen. A copy takes longer than
 * criu needs to fill the pipe. So the pages are moved by reference into our own pipes, and copied
 * from there on several cores. While one of these pipes is free, criu never waits for a copy. */
#ifndef VV_IMAGE_SAVE_DRAIN_PIPE_H
#define VV_IMAGE_SAVE_DRAIN_PIPE_H

#include <stddef.h>
#include <stdint.h>

struct vv_drain_pipe;
struct vv_pool;

int vv_drain_pipe_open(struct vv_drain_pipe **out);
/* Moves up to n bytes; they are at `to` after vv_drain_pipe_wait. *took is 0 at the end of the
 * pipe. Returns 1 for some bytes or the end, 0 if there is nothing yet. */
int vv_drain_pipe_take(struct vv_drain_pipe *d, int fd, uint8_t *to, size_t n, size_t *took);
/* The same for unneeded bytes, which are discarded unread. */
int vv_drain_pipe_skip(struct vv_drain_pipe *d, int fd, size_t *took);
/* Waits until all moved bytes are in memory. */
int vv_drain_pipe_wait(struct vv_drain_pipe *d);
/* Its threads, for other work while the pipe is idle. */
struct vv_pool *vv_drain_pipe_pool(struct vv_drain_pipe *d);
void vv_drain_pipe_close(struct vv_drain_pipe *d); /* accepts NULL */

#endif
