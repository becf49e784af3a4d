/* The compressed blocks of open layers, decoded in host memory by the thread that first needs them.
 * A block is kept for other threads until its memory is needed for another one. */
#ifndef VV_ENGINE_READ_DECODED_BLOCKS_H
#define VV_ENGINE_READ_DECODED_BLOCKS_H

#include "engine/read/open_layers.h"
#include <pthread.h>

struct vv_decoded_block;

struct vv_decoded_blocks {
	const struct vv_open_layers *layers;
	struct vv_decoded_block **block[VV_OPEN_LAYERS_LAYERS]; /* per layer and block; NULL: not decoded */
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct vv_decoded_block *oldest, *newest;
	uint64_t bytes, most;
};

/* At most `most` bytes are decoded at a time. */
int vv_decoded_blocks_open(struct vv_decoded_blocks *d, const struct vv_open_layers *layers, uint64_t most);
void vv_decoded_blocks_close(struct vv_decoded_blocks *d); /* all blocks must be released before */

/* Gets block b of layer i, for use until vv_decoded_blocks_release. NULL: it is damaged, or there
 * is no memory for it; that is no error yet. */
struct vv_decoded_block *vv_decoded_blocks_get(struct vv_decoded_blocks *d, size_t i, size_t b);
void vv_decoded_blocks_release(struct vv_decoded_blocks *d, struct vv_decoded_block *block);
const uint8_t *vv_decoded_blocks_bytes(const struct vv_decoded_block *block);

#endif
