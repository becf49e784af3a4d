/* FPC (Burtscher and Ratanaworabhan, "FPC: A High-Speed Compressor for Double-Precision
 * Floating-Point Data", IEEE Transactions on Computers 58(1), 2009). Each number is predicted
 * twice: from the successors of the same numbers (FCM) and of the same differences (DFCM). The
 * better prediction is combined with the number by exclusive or; the leading zero bytes are left
 * out. */
#ifndef VV_CODEC_FPC_H
#define VV_CODEC_FPC_H

#include <stddef.h>
#include <stdint.h>

enum { VV_FPC_MIN_LOG = 1, VV_FPC_MAX_LOG = 20 }; /* log2 of a table's entries */

size_t vv_fpc_bound(size_t count);
/* Compresses `count` doubles into to[vv_fpc_bound()]. */
int vv_fpc_encode(const void *from, size_t count, unsigned log, uint8_t *to, size_t *out);
/* VV_EDAMAGED unless the n bytes are exactly `count` doubles. */
int vv_fpc_decode(const uint8_t *from, size_t n, unsigned log, void *to, size_t count);

#endif
