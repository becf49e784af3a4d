/* The method full on the device: nothing is hashed, all grains are data. */
#ifndef VV_GPU_FULL_H
#define VV_GPU_FULL_H

#include "gpu/outlet.h"

/* `end`: of the spans' numbers. */
int vv_full_pass(struct vv_outlet *o, const struct vv_span *span, size_t n, uint32_t end, struct vv_sieve_counts *counts);

#endif
