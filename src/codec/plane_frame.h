/* One plane of bytes as one frame: the smallest of several ways. */
#ifndef VV_CODEC_PLANE_FRAME_H
#define VV_CODEC_PLANE_FRAME_H

#include "core/format/recipe.h"
#include <stddef.h>
#include <stdint.h>

/* Compresses by the coder and the level of a recipe, quickly. *out = 0: it does not shrink, or
 * fit. */
int vv_plane_frame_quick(const uint8_t *p, size_t n, const struct vv_recipe *how, uint8_t *to, size_t cap, size_t *out);
/* Compresses in further ways, too, if these promise less. */
int vv_plane_frame_encode(const uint8_t *p, size_t n, const struct vv_recipe *how, uint8_t *to, size_t cap, size_t *out);

#endif
