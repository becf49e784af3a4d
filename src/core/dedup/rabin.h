/* Chen 2016's chunks: a Rabin fingerprint of the last 48 bytes decides about a cut (Rabin 1981;
 * LBFS, SOSP 2001, 3.1). The contract is that of core/dedup/cdc.h, which is faster and spreads the
 * lengths less. The paper measured the method of this file. */
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
	uint64_t mask; /* a cut is at a fingerprint that has all of these bits set */
	uint64_t in[256];  /* the value of the bits that leave at the top */
	uint64_t out[256]; /* the contribution of a byte that is about to leave the window */
};

/* VV_RABIN_WINDOW <= min < avg < max <= 2^30, avg a power of two, or VV_EINVAL. The cuts are the
 * same on every machine and in every version. */
int vv_rabin_init(struct vv_rabin *r, size_t min, size_t avg, size_t max);
/* Returns the length of the chunk that begins at p, or 0 if the n bytes there do not decide it. At
 * `max` bytes it is always decided. With `last`, no bytes follow these n. */
size_t vv_rabin_next(const struct vv_rabin *r, const uint8_t *p, size_t n, bool last);

#endif
