/* Layers that are open together, and the state of their pages and chunks. Cached bytes can be
 * copied from the mapped files (engine/read/copy_mapped.h). */
#ifndef VV_ENGINE_READ_OPEN_LAYERS_H
#define VV_ENGINE_READ_OPEN_LAYERS_H

#include "engine/lineage/plain_extent.h"
#include "engine/lineage/layer_file.h"
#include <stdatomic.h>

/* All data for the next piece of a layer: one cache line, because all else leaves the cache between
 * two pieces. */
struct vv_open_layers_extent {
	uint64_t lo, hi;      /* positions */
	const uint8_t *bytes; /* at lo; NULL: they must be read normally */
	const struct vv_digest *digest; /* of the chunk at `first`; NULL: none are known */
	/* of the same chunk: GOOD, BAD, or 0: not checked; NULL: no state is kept */
	atomic_uchar *state;
	uint64_t first;                 /* the last chunk that begins at or before lo */
	uint32_t chunk;
	bool may_touch;                    /* all of it may be touched */
	const struct vv_block *full_block; /* the block, if this is all of it */
};

_Static_assert(sizeof(struct vv_open_layers_extent) == 64, "a line");

enum { VV_OPEN_LAYERS_LAYERS = 128, VV_OPEN_LAYERS_SLOTS = 4 * VV_OPEN_LAYERS_LAYERS };

struct vv_open_layers {
	size_t n;
	uint64_t layer[VV_OPEN_LAYERS_LAYERS];
	struct vv_layer_file *file[VV_OPEN_LAYERS_LAYERS];
	/* the state of each window of the file; NULL: it is not mapped */
	atomic_uchar *window[VV_OPEN_LAYERS_LAYERS];
	/* and of each chunk with a digest; NULL: there are none */
	atomic_uchar *chunk[VV_OPEN_LAYERS_LAYERS];
	/* All extents of a layer with many runs; NULL: they are searched one by one. */
	struct vv_open_layers_extent *extent[VV_OPEN_LAYERS_LAYERS];
	size_t n_extents[VV_OPEN_LAYERS_LAYERS];
	/* so much is wanted that all of it is read if it is not in memory */
	bool dense[VV_OPEN_LAYERS_LAYERS];
	bool all;                             /* all layers with wanted bytes are open */
	uint8_t slot[VV_OPEN_LAYERS_SLOTS];          /* by layer: 1 + its number */
};

_Static_assert(VV_OPEN_LAYERS_LAYERS < UINT8_MAX, "numbers fit the slots");

/* Opens a layer; the set owns the file, and fini closes it. The arguments n_runs and bytes are its
 * runs and its wanted bytes; 0: unknown. Many digests are read by all threads of the pool; NULL is
 * fine. */
int vv_open_layers_open(struct vv_open_layers *w, size_t i, const struct vv_lineage *lin, struct vv_pool *pool, uint64_t layer, size_t n_runs, uint64_t bytes);
void vv_open_layers_close(struct vv_open_layers *w, size_t i);
/* Called at the end: bytes that were checked and later copied from a mapped file are right only if
 * the file has not changed meanwhile. */
int vv_open_layers_check(const struct vv_open_layers *w);
/* Called once all are open: layers are found by their number. */
void vv_open_layers_build_index(struct vv_open_layers *w);
/* Number of the layer, or w->n if it is not open. */
size_t vv_open_layers_find(const struct vv_open_layers *w, uint64_t layer);

/* May this part of the file be touched? Yes, if it is in the page cache: one page in two MiB is
 * tested, and the result is kept. Yes, if most of the layer is wanted: a thread that touches it
 * then waits for the disk, as in a read. */
bool vv_open_layers_may_touch(const struct vv_open_layers *w, size_t i, uint64_t off, uint64_t len);
/* The layer is read normally from now on: digests in the mapped file are dropped. */
void vv_open_layers_stop_mapping(struct vv_open_layers *w, size_t i);
/* The data for copying from an extent of the layer. */
struct vv_open_layers_extent vv_open_layers_get_extent(const struct vv_open_layers *w, size_t layer, const struct vv_plain_extent *at);

#endif
