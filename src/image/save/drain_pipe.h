/* Pages out of criu's pipe into memory, while a process stands still. Copying takes longer than criu takes to fill the pipe, so what is in it is moved on by
 * reference, into pipes of our own, and copied from there on several cores: criu never waits for a copy, while there is a pipe left. */
#ifndef VV_IMAGE_SAVE_DRAIN_PIPE_H
#define VV_IMAGE_SAVE_DRAIN_PIPE_H

#include <stddef.h>
#include <stdint.h>

struct vv_drain_pipe;
struct vv_pool;

int vv_drain_pipe_open(struct vv_drain_pipe **out);
/* Moves up to n bytes on; they are at `to` after vv_drain_pipe_wait. *took is 0 at the end of the pipe. 1: some, or the end; 0: nothing yet. */
int vv_drain_pipe_take(struct vv_drain_pipe *d, int fd, uint8_t *to, size_t n, size_t *took);
/* The same for what nobody needs: it is not even read. */
int vv_drain_pipe_skip(struct vv_drain_pipe *d, int fd, size_t *took);
/* Everything that was taken is in memory. */
int vv_drain_pipe_wait(struct vv_drain_pipe *d);
/* Its threads, for other work while there is nothing to take. */
struct vv_pool *vv_drain_pipe_pool(struct vv_drain_pipe *d);
void vv_drain_pipe_close(struct vv_drain_pipe *d); /* NULL is fine */

#endif
