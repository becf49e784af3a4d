/* Erasure coding of the blocks of a stripe: k data blocks and m parity blocks, of which any m may
 * be lost. Arithmetic in GF(2^8) (Plank 1997), by ISA-L if varve was built with it. docs/format.md
 * defines the coefficients. */
#ifndef VV_CORE_RANKS_ERASURE_CODE_H
#define VV_CORE_RANKS_ERASURE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most blocks of a stripe, and of its parity. */
enum { VV_ERASURE_BLOCKS = 64, VV_ERASURE_PARITY = 16 };

struct vv_erasure_code {
	uint8_t k, m;
};

/* Is it a code that varve writes and reads? */
bool vv_erasure_code_is_sound(unsigned k, unsigned m);
/* The factor of a data block in a parity block. */
uint8_t vv_erasure_code_factor(const struct vv_erasure_code *c, unsigned parity, unsigned data);
/* The factors that make one block of a stripe from others. Blocks 0 to k - 1 are the data, the rest
 * parity. The stripe has `n` data blocks, and the missing ones are zero. from: n blocks of it.
 * Returns false if they do not determine the block: one of them is given twice. */
bool vv_erasure_code_solve(const struct vv_erasure_code *c, unsigned n, const uint8_t *from, unsigned block, uint8_t *factor);
/* out[r] = the sum of factor[r * n + i] * in[i], for all rows r. n is 1 or more. */
void vv_erasure_code_sum(const uint8_t *factor, unsigned n, unsigned rows, size_t len, const uint8_t *const *in, uint8_t *const *out);
/* The same without ISA-L, for comparison. */
void vv_erasure_code_sum_plain(const uint8_t *factor, unsigned n, unsigned rows, size_t len, const uint8_t *const *in,
			       uint8_t *const *out);

#endif
