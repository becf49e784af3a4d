/* The layers of the bytes to be read, each once. */
#ifndef VV_ENGINE_READ_LAYER_LIST_H
#define VV_ENGINE_READ_LAYER_LIST_H

#include "engine/read/restore.h"

struct vv_layer_list_layer {
	uint64_t layer;
	size_t n_runs; /* that refer to it */
	uint64_t bytes; /* of these */
};

struct vv_layer_list {
	struct vv_layer_list_layer *v;
	size_t n, cap;
	uint64_t bytes; /* in these layers */
	uint32_t *slot; /* an open hash by layer: 1 + number, or 0 */
	size_t mask;
};

/* Adds the layer, whatever refers to it. */
int vv_layer_list_add(struct vv_layer_list *l, uint64_t layer);
/* Adds layers in the order of first use, after the present ones. Runs on all threads of the pool;
 * NULL is fine. */
int vv_layer_list_find(struct vv_layer_list *out, struct vv_pool *pool, const struct vv_want *w, size_t n);
void vv_layer_list_fini(struct vv_layer_list *l);

#endif
