/* Blocks out of the mapped file of a layer. */
#ifndef VV_ENGINE_LINEAGE_MAPPED_BLOCK_H
#define VV_ENGINE_LINEAGE_MAPPED_BLOCK_H

#include "engine/lineage/layer_file.h"

/* Parts of a plain block to their places, by the check of the block, if all of it is in memory. False: it is not, or the file was cut short meanwhile, or what lies there is not what was
 * stored; then reading in the plain way says what is wrong. */
bool vv_mapped_block_copy(const struct vv_layer_file *f, const struct vv_block *b, const struct vv_part *part, size_t n);

#endif
