/* FPC (Burtscher and Ratanaworabhan, "FPC: A High-Speed Compressor for Double-Precision Floating-Point Data", IEEE Transactions
 * on Computers 58(1), 2009): each number is predicted twice, from what followed the same numbers before (FCM) and the same differences (DFCM); of the
 * better one's difference, by exclusive or, the zero bytes in front are left out. */
#ifndef VV_CODEC_FPC_H
#define VV_CODEC_FPC_H

#include <stddef.h>
#include <stdint.h>

enum { VV_FPC_MIN_LOG = 1, VV_FPC_MAX_LOG = 20 }; /* log2 of a table's entries */

size_t vv_fpc_bound(size_t count);
/* So many doubles into to[vv_fpc_bound()]. */
int vv_fpc_encode(const void *from, size_t count, unsigned log, uint8_t *to, size_t *out);
/* VV_EDAMAGED unless n bytes are exactly so many doubles. */
int vv_fpc_decode(const uint8_t *from, size_t n, unsigned log, void *to, size_t count);

#endif
