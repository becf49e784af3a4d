/* The images that a rank is to bring back, wherever they lie: in a store for all, or in those of several ranks. */
#ifndef VV_IMAGE_MUSTER_H
#define VV_IMAGE_MUSTER_H

#include "engine/session.h"
#include "image/restore/serve_images.h"

struct vv_muster {
	struct varve *v; /* the session of the ranks that restore; NULL: one alone */
	const struct vv_lineage *lin;
	uint64_t epoch;
	uint32_t saved_by; /* ranks */
	struct vv_pool *pool;
	uint64_t memory; /* that may be used; 0: this rank's part of half of what is free */
	bool lazy;       /* pages that lie in other stores are not read yet */
};

/* Each of M ranks has what every M-th rank saved. All ranks come here together. Those in *out, *n of them, are to be closed, and *out freed, also after a failure. */
int vv_muster_open(const struct vv_muster *m, struct vv_serve **out, size_t *n);

#endif
