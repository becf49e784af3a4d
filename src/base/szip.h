/* Szip streams (CCSDS 121.0-B), if varve was built with libaec. */
#ifndef VV_BASE_SZIP_H
#define VV_BASE_SZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_szip { /* as in HDF5 */
	uint32_t options, pixels_per_block, bits_per_pixel, pixels_per_scanline;
};

/* Decompresses a stream of n bytes into exactly raw_len bytes; anything else is VV_EDAMAGED.
 * Without libaec: VV_ENOTSUP. */
int vv_szip_unpack(const struct vv_szip *how, const void *from, size_t n, void *to, size_t raw_len);

#endif
