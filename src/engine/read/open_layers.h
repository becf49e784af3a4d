/* Layers that are open together, so that what lies in the page cache can be copied out of the mapped files (engine/read/copy_mapped.h), and what is known of them. */
#ifndef VV_ENGINE_READ_OPEN_LAYERS_H
#define VV_ENGINE_READ_OPEN_LAYERS_H

#include "engine/lineage/plain_extent.h"
#include "engine/lineage/layer_file.h"
#include <stdatomic.h>

/* All that is needed for the next piece of a layer: a line of the cache, because between two pieces everything else has left it. */
struct vv_open_layers_extent {
	uint64_t lo, hi;      /* positions */
	const uint8_t *bytes; /* at lo; NULL: they are to be read in the plain way */
	const struct vv_digest *digest; /* of the chunk at `first`; NULL: none are known */
	atomic_uchar *state;            /* of the same chunk: GOOD, BAD, or 0: nobody has looked; NULL: it is not kept */
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
	atomic_uchar *window[VV_OPEN_LAYERS_LAYERS]; /* what is known of each stretch of the file; NULL: it is not mapped */
	atomic_uchar *chunk[VV_OPEN_LAYERS_LAYERS];  /* and of each chunk that has a digest; NULL: there are none */
	struct vv_open_layers_extent *extent[VV_OPEN_LAYERS_LAYERS]; /* all of a layer that many runs refer to; NULL: they are looked for one by one */
	size_t n_extents[VV_OPEN_LAYERS_LAYERS];
	bool dense[VV_OPEN_LAYERS_LAYERS];           /* so much is wanted that all of it is read, should it not be in memory */
	bool all;                             /* of the layers that hold what is wanted */
	uint8_t slot[VV_OPEN_LAYERS_SLOTS];          /* by layer: 1 + its number */
};

_Static_assert(VV_OPEN_LAYERS_LAYERS < UINT8_MAX, "numbers fit the slots");

/* The file becomes the set's. What is opened is closed by fini. So many runs refer to it, and so many bytes of it are wanted; 0: who knows. Digests that are many are read by all threads
 * of the pool; NULL is fine. */
int vv_open_layers_open(struct vv_open_layers *w, size_t i, const struct vv_lineage *lin, struct vv_pool *pool, uint64_t layer, size_t n_runs, uint64_t bytes);
void vv_open_layers_close(struct vv_open_layers *w, size_t i);
/* At the end: what was found good and copied later from a mapped file is right only if nobody has changed the file meanwhile. */
int vv_open_layers_check(const struct vv_open_layers *w);
/* Once all are open: layers are found by their number. */
void vv_open_layers_build_index(struct vv_open_layers *w);
/* Number of the layer, or w->n if it is not open. */
size_t vv_open_layers_find(const struct vv_open_layers *w, uint64_t layer);

/* May that much of the file be touched? It is in the page cache: one page in two MiB is asked for, and what was said is kept. Or most of the layer is wanted; then
 * whoever touches it waits for the disk, as if he read it. */
bool vv_open_layers_may_touch(const struct vv_open_layers *w, size_t i, uint64_t off, uint64_t len);
/* The layer is read in the plain way from now on: digests that lie in the mapped file are let go. */
void vv_open_layers_stop_mapping(struct vv_open_layers *w, size_t i);
/* What is needed to copy from a lane of the layer. */
struct vv_open_layers_extent vv_open_layers_get_extent(const struct vv_open_layers *w, size_t layer, const struct vv_plain_extent *at);

#endif
