/* The images that a rank is to bring back, wherever they lie: in a store for all, or in those of several ranks. */
#ifndef VV_IMAGE_RESTORE_FIND_IMAGES_H
#define VV_IMAGE_RESTORE_FIND_IMAGES_H

#include "engine/context.h"
#include "image/restore/serve_images.h"

struct vv_find_images {
	struct varve *v; /* the session of the ranks that restore; NULL: one alone */
	const struct vv_lineage *lin;
	uint64_t epoch;
	uint32_t saved_by; /* ranks */
	struct vv_pool *pool;
	uint64_t memory; /* that may be used; 0: this rank's part of half of what is free */
	bool lazy;       /* pages that lie in other stores are not read yet */
};

/* Each of M ranks has what every M-th rank saved. All ranks come here together. Those in *out, *n of them, are to be closed, and *out freed, also after a failure. */
int vv_find_images_open(const struct vv_find_images *m, struct vv_serve_images **out, size_t *n);

#endif
