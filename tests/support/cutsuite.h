/* What every chunker that cuts by content keeps to: bounds, the average, the same cuts however the bytes come, and few chunks that change with a
 * change. */
#ifndef VV_TEST_CUTSUITE_H
#define VV_TEST_CUTSUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUTSUITE_N = 8 << 20 };

struct cutter { /* of one chunker, which it holds itself */
	int (*init)(size_t min, size_t avg, size_t max);
	size_t (*next)(const uint8_t *p, size_t n, bool end);
};

struct cut_sizes {
	size_t min, avg, max;
	size_t mean; /* of the chunks of noise */
};

/* Noise, CUTSUITE_N bytes of it, the same every time. */
const uint8_t *cutsuite_bytes(void);

void cutsuite_run(const struct cutter *c, const struct cut_sizes *s);
/* Ends shorter than the least, of 512 bytes. */
void cutsuite_short_ends(const struct cutter *c);
/* Chunks of a byte that is repeated are as long as they may be. */
void cutsuite_repeated(const struct cutter *c, const struct cut_sizes *s, uint8_t value);
/* Digests of chunks are in stores: the cuts must never change. These are the first ones of the noise. */
void cutsuite_for_ever(const struct cutter *c, const struct cut_sizes *s, const size_t *want, size_t n);
void cutsuite_refuses(const struct cutter *c, size_t min, size_t avg, size_t max, const char *why);

#endif
