/* A pass over the set of a sieve whose regions, maps and work are fitted already; on the sieve's
 * device. */
#ifndef VV_GPU_SIEVE_PASS_H
#define VV_GPU_SIEVE_PASS_H

#include "gpu/gpu_sieve.h"

/* Passes the changes to the sink. */
int vv_sieve_pass_pass(struct vv_gpu_sieve *s, uint32_t ordinal, const struct vv_sink *sink);
/* Stores the digest of every grain. */
int vv_sieve_pass_look(struct vv_gpu_sieve *s);
/* The grains in `usable` become known as those of `ordinal` with their numbers. */
int vv_sieve_pass_know(struct vv_gpu_sieve *s, uint32_t ordinal, const struct vv_number_range *usable, size_t n);

#endif
