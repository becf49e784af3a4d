/* Copies blocks from the mapped file of a layer. */
#ifndef VV_ENGINE_LINEAGE_MAPPED_BLOCK_H
#define VV_ENGINE_LINEAGE_MAPPED_BLOCK_H

#include "engine/lineage/layer_file.h"

/* Copies parts of a plain block to their destinations and verifies the block's check. The complete
 * block must be in memory. Returns false if it is not, if the file was truncated meanwhile, or if
 * the content is damaged. An ordinary read then reports the error. */
bool vv_mapped_block_copy(const struct vv_layer_file *f, const struct vv_block *b, const struct vv_part *part, size_t n);

#endif
