/* In the call of a checkpoint: copies dirty memory into the buffer, and write-protects the rest. */
#ifndef VV_ENGINE_MEMORY_CAPTURE_H
#define VV_ENGINE_MEMORY_CAPTURE_H

#include "engine/memory/tiles.h"

/* Finds dirty memory, copies it as far as the buffer allows, and write-protects the rest. *chunks:
 * the number of chunks to be hashed. */
int vv_capture_take(struct vv_layer_writer *p, size_t *chunks);
/* Waits, while the flush runs, for tiles that could neither be copied nor write-protected. */
void vv_capture_wait(struct varve *v);
/* Called before the commit, or after storing failed. Returns an error if memory that was stored in
 * place was unmapped or replaced meanwhile. */
int vv_capture_check(const struct vv_layer_writer *p);

#endif
