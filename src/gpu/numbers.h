/* The state of a set's grains, number by number, in device memory: see struct vv_gpu_numbers. */
#ifndef VV_GPU_NUMBERS_H
#define VV_GPU_NUMBERS_H

#include "gpu/kernels.h"

struct vv_numbers_region {
	uint64_t id;
	struct vv_gpu_span span;
};

struct vv_numbers { /* all zero: no regions; the owner sets chunk and blank */
	struct vv_gpu_numbers of;
	uint32_t end;
	struct vv_numbers_region *region;
	size_t n;
};

void vv_numbers_fini(struct vv_numbers *g);
/* The set becomes these spans, numbered up to `end`. The state of a region's grains moves with
 * them. */
int vv_numbers_fit(struct vv_numbers *g, const struct vv_span *span, size_t n, uint32_t end, cudaStream_t stream);
/* Copies the spans and their state to the device. */
int vv_numbers_publish(struct vv_numbers *g, cudaStream_t stream);
/* All grains have been hashed; or nothing is known of any. */
void vv_numbers_seen(struct vv_numbers *g);
void vv_numbers_forget(struct vv_numbers *g);

static inline uint32_t vv_numbers_slices(const struct vv_numbers *g)
{
	return (uint32_t)(((uint64_t)g->end + VV_GRAIN_SLICE - 1) / VV_GRAIN_SLICE);
}

#endif
