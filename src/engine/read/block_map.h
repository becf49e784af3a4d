/* Where the bytes of regions lie in blocks: run tables, cut at the borders of the blocks of their layers. */
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
	struct vv_layer_file *file; /* shut, without `get`: there are more of them than can be open; it is opened for each block */
	size_t first; /* number of its first block */
};

struct vv_block_map {
	struct vv_block_map_layer *layer; /* ascending */
	size_t n_layers;
	struct vv_block_map_region *region;
	size_t n_regions;
	uint64_t *used; /* bytes of each block that the regions have, in all */
	size_t n_blocks; /* of all layers */
};

int vv_block_map_open(const struct vv_lineage *lin, const struct vv_runs *const *runs, size_t n, struct vv_block_map *out);
void vv_block_map_close(struct vv_block_map *c);
/* The last that begins at or before `at`; NULL: there is none at all. */
const struct vv_block_map_part *vv_block_map_find(const struct vv_block_map_region *r, uint64_t at);

#endif
