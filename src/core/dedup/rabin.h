/* Chen 2016's chunks: a Rabin fingerprint of the last 48 bytes decides on a cut (Rabin, 1981; LBFS, SOSP 2001, 3.1). The same contract as core/dedup/cdc.h, which is
 * faster and spreads the lengths less; this one is what the paper measured. */
#ifndef VV_CORE_DEDUP_RABIN_H
#define VV_CORE_DEDUP_RABIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VV_RABIN_WINDOW = 48,
	VV_RABIN_MIN = 512,
	VV_RABIN_AVG = 4096,
	VV_RABIN_MAX = 32768,
};

#define VV_RABIN_POLYNOMIAL 0x3da3358b4dc173 /* irreducible, of degree 53 */

struct vv_rabin {
	size_t min, max;
	uint64_t mask; /* a cut is where these bits of the fingerprint are all set */
	uint64_t in[256];  /* what the bits that leave at the top stand for */
	uint64_t out[256]; /* what a byte adds that is about to leave the window */
};

/* VV_RABIN_WINDOW <= min < avg < max <= 2^30, avg a power of two, or VV_EINVAL. The same cuts everywhere and for ever. */
int vv_rabin_init(struct vv_rabin *r, size_t min, size_t avg, size_t max);
/* The length of the chunk that begins at p, of which there are n bytes; 0: they do not tell, more are needed (max always do). last: after them
 * there are no more. */
size_t vv_rabin_next(const struct vv_rabin *r, const uint8_t *p, size_t n, bool last);

#endif
