/* The blocks of the bytes of regions: run tables, cut at the borders of the blocks of their
 * layers. */
#ifndef VV_ENGINE_READ_BLOCK_MAP_H
#define VV_ENGINE_READ_BLOCK_MAP_H

#include "engine/lineage/layer_file.h"

#define VV_BLOCK_MAP_ZEROS UINT32_MAX

struct vv_block_map_part {
	uint64_t at; /* in the region */
	uint32_t len, from; /* in the decoded block */
	uint32_t block; /* counted over all layers; or VV_BLOCK_MAP_ZEROS */
};

struct vv_block_map_region {
	struct vv_block_map_part *v; /* ascending, without gaps */
	size_t n, cap;
};

struct vv_block_map_layer {
	uint64_t layer;
	/* Closed, without `get`, if there are more layers than can be open: it is opened for each
	 * block. */
	struct vv_layer_file *file;
	size_t first; /* number of its first block */
};

struct vv_block_map {
	struct vv_block_map_layer *layer; /* ascending */
	size_t n_layers;
	struct vv_block_map_region *region;
	size_t n_regions;
	uint64_t *used; /* bytes of each block that all regions use together */
	size_t n_blocks; /* of all layers */
};

int vv_block_map_open(const struct vv_lineage *lin, const struct vv_runs *const *runs, size_t n, struct vv_block_map *out);
void vv_block_map_close(struct vv_block_map *c);
/* The last part that begins at or before `at`; NULL: there are no parts. */
const struct vv_block_map_part *vv_block_map_find(const struct vv_block_map_region *r, uint64_t at);

#endif
