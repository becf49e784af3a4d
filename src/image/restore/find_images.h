/* Finds the images that a rank restores: in a common store, or in the stores of several ranks. */
#ifndef VV_IMAGE_RESTORE_FIND_IMAGES_H
#define VV_IMAGE_RESTORE_FIND_IMAGES_H

#include "engine/context.h"
#include "image/restore/serve_images.h"

struct vv_find_images {
	struct varve *v; /* the session of the restoring ranks; NULL: a single process */
	const struct vv_lineage *lin;
	uint64_t epoch;
	uint32_t saved_by; /* number of ranks */
	struct vv_pool *pool;
	uint64_t memory; /* limit in bytes; 0: this rank's share of half of the free memory */
	bool lazy;       /* pages in other stores are not read yet */
};

/* Each of M ranks gets the images of every M-th saving rank. All ranks call this together. The
 * caller closes the *n elements of *out and frees *out, also after a failure. */
int vv_find_images_open(const struct vv_find_images *m, struct vv_serve_images **out, size_t *n);

#endif
