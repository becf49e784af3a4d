/* In the call of a checkpoint: copies dirty memory into the buffer, and write-protects the rest. */
#ifndef VV_ENGINE_MEMORY_CAPTURE_H
#define VV_ENGINE_MEMORY_CAPTURE_H

#include "engine/memory/tiles.h"

/* What is dirty, and copies of it, and fences; *chunks: how many are to be looked at. */
int vv_capture_take(struct vv_layer_writer *p, size_t *chunks);
/* Once the flush runs: waits for what could neither be copied nor write-protected. */
void vv_capture_wait(struct varve *v);
/* Before the commit, or when storing failed: has memory that was stored in place been there all the time? */
int vv_capture_check(const struct vv_layer_writer *p);

#endif
