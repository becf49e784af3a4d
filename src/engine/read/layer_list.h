/* The layers that bytes to be read lie in, each once. */
#ifndef VV_ENGINE_LAYERSET_H
#define VV_ENGINE_LAYERSET_H

#include "engine/read/restore.h"

struct vv_layerset_layer {
	uint64_t layer;
	size_t n_runs; /* that refer to it */
	uint64_t bytes; /* of these */
};

struct vv_layerset {
	struct vv_layerset_layer *v;
	size_t n, cap;
	uint64_t bytes; /* that lie in them */
	uint32_t *slot; /* an open hash by layer: 1 + number, or 0 */
	size_t mask;
};

/* It is one of them, whatever refers to it. */
int vv_layerset_add(struct vv_layerset *l, uint64_t layer);
/* In the order of first use, behind those that there are. On all threads of the pool; NULL is fine. */
int vv_layerset_find(struct vv_layerset *out, struct vv_pool *pool, const struct vv_want *w, size_t n);
void vv_layerset_fini(struct vv_layerset *l);

#endif
