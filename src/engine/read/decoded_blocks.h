/* The compressed blocks of open layers, decoded in host memory by all threads. */
#ifndef VV_ENGINE_READ_DECODED_BLOCKS_H
#define VV_ENGINE_READ_DECODED_BLOCKS_H

#include "engine/read/open_layers.h"

struct vv_decoded_blocks {
	uint8_t *bytes; /* of all blocks; NULL: none is decoded */
	size_t len;
	/* per layer and block: its bytes; NULL: it is plain or damaged */
	const uint8_t **block[VV_OPEN_LAYERS_LAYERS];
};

/* Decodes all compressed blocks, if they have at most `most` bytes together. d starts empty. */
int vv_decoded_blocks_read(struct vv_decoded_blocks *d, const struct vv_open_layers *w, struct vv_pool *pool, uint64_t most);
void vv_decoded_blocks_fini(struct vv_decoded_blocks *d);

/* The bytes of a block of layer i; NULL: they are not at hand. */
const uint8_t *vv_decoded_blocks_get(const struct vv_decoded_blocks *d, const struct vv_open_layers *w, size_t i, const struct vv_block *block);

#endif
