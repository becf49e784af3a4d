/* What is remembered of the grains of a set, number by number, in device memory: see struct vv_gpu_numbers. */
#ifndef VV_GPU_NUMBERS_H
#define VV_GPU_NUMBERS_H

#include "gpu/kernels.h"

struct vv_numbers_region {
	uint64_t id;
	struct vv_gpu_span span;
};

struct vv_numbers { /* all zero: of no regions; chunk and blank are set by the owner */
	struct vv_gpu_numbers of;
	uint32_t end;
	struct vv_numbers_region *region;
	size_t n;
};

void vv_numbers_fini(struct vv_numbers *g);
/* From now on it is about these spans, numbered up to `end`. What is remembered of a region's grains goes with them. */
int vv_numbers_fit(struct vv_numbers *g, const struct vv_span *span, size_t n, uint32_t end, cudaStream_t stream);
/* Tells the device where the spans are and what is remembered of them. */
int vv_numbers_publish(struct vv_numbers *g, cudaStream_t stream);
/* All grains have been looked at; or nothing is known of any. */
void vv_numbers_seen(struct vv_numbers *g);
void vv_numbers_forget(struct vv_numbers *g);

static inline uint32_t vv_numbers_slices(const struct vv_numbers *g)
{
	return (uint32_t)(((uint64_t)g->end + VV_GRAIN_SLICE - 1) / VV_GRAIN_SLICE);
}

#endif
