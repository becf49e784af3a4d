/* Digests of the content of grains at some time, from bytes that need not be theirs now. */
#ifndef VV_SPACE_LEARN_H
#define VV_SPACE_LEARN_H

#include "space/last_digests.h"
#include "space/space.h"

/* Runs on all threads of the pool (NULL: this one), guarded by the guard of the options. Other
 * threads may write the bytes meanwhile: their digests are then arbitrary, and the caller corrects
 * them. If some bytes are not there, that is an error, and the others are learned or not. */
int vv_learn_all(const struct vv_sieve_options *opt, struct vv_pool *pool, struct vv_last_digests *past, const struct vv_grain_bytes *lesson, size_t n);

/* Learns the regions from their memory as it is now. */
int vv_learn_regions(struct vv_sieve *s, struct vv_span *span, size_t n);

#endif
