/* The storage nodes that hold each layer, where ranks have stores of their own. */
#ifndef VV_ENGINE_RANKS_LAYER_HOLDERS_H
#define VV_ENGINE_RANKS_LAYER_HOLDERS_H

#include "engine/ranks/group.h"

struct vv_holder {
	uint64_t layer;
	uint32_t storage_node; /* its leader */
};

struct vv_layer_holders {
	struct vv_holder *v; /* ascending */
	size_t n, cap;
};

void vv_layer_holders_fini(struct vv_layer_holders *h);
/* All ranks exchange their lists of layers from epoch `from` on (the lowest `from` of all
 * ranks). */
int vv_layer_holders_exchange(struct vv_group *g, int rc, const struct vv_lineage *lin, uint64_t from, struct vv_layer_holders *out);
/* The first entry of the layer; h->n if no storage node has it. */
size_t vv_layer_holders_find(const struct vv_layer_holders *h, uint64_t layer);

#endif
