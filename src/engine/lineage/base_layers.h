/* Reads bases of delta blocks: bytes of older layers of the same rank, whose blocks stay known. */
#ifndef VV_ENGINE_LINEAGE_BASE_LAYERS_H
#define VV_ENGINE_LINEAGE_BASE_LAYERS_H

#include "core/format/delta_bases.h"
#include "engine/lineage_handle.h"
#include <stddef.h>

struct vv_base_layers;
struct vv_layer_file;

int vv_base_layers_new(const struct vv_lineage *lin, uint32_t rank, struct vv_base_layers **out);
void vv_base_layers_free(struct vv_base_layers *b); /* NULL is allowed */
/* The layer of an epoch, with its blocks, which stay until the end. */
int vv_base_layers_open(struct vv_base_layers *b, uint64_t epoch, struct vv_layer_file **out);
/* Reads n bases, one after another. Each of their blocks is decoded once. VV_EDAMAGED also if a
 * base lies in a delta block. Any thread may call it. */
int vv_base_layers_read(struct vv_base_layers *b, const struct vv_delta_base *v, size_t n, uint8_t *to);

#endif
