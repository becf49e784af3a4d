/* Where the block writer gets the bases of blocks that may be stored as differences. */
#ifndef VV_ENGINE_WRITE_DELTA_SOURCE_H
#define VV_ENGINE_WRITE_DELTA_SOURCE_H

#include "codec/delta.h"
#include "core/format/delta_bases.h"

struct vv_delta_source {
	void *arg;
	/* The bases of the positions pos..pos+len, which were just added. `how` was passed to
	 * vv_block_writer_set_delta. Returns their number, at most VV_DELTA_BASES_EXTENTS; 0: there
	 * are none. *most: a longer difference does not pay.
	 * Called by the thread that adds, in the order of positions. */
	size_t (*find)(void *arg, const struct vv_delta *how, uint64_t pos, uint64_t len, struct vv_delta_base *out, size_t *most);
	/* Reads n bases, one after another. Called by any thread. */
	int (*read)(void *arg, const struct vv_delta_base *v, size_t n, uint8_t *to);
};

#endif
