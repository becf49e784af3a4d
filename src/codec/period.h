/* What comes again after a while, in bytes of which nobody said what they are: the length of a record, the length of a row. */
#ifndef VV_CODEC_PERIOD_H
#define VV_CODEC_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VV_PERIOD_RECORD = 1024, VV_PERIOD_STRIDE = 1024 }; /* the longest that are looked for: bytes, numbers */
enum { VV_PERIOD_SEEN = 1 << 16 };

/* After how many bytes most of them are as before: more than 8, so a record of several numbers; 0: none stands out. */
size_t vv_period_record(const uint8_t *p, size_t n);

struct vv_period_numbers {
	const uint8_t *p;
	size_t n;       /* numbers */
	unsigned width; /* 4 or 8 bytes of each; vv_period_shared: or 1, bytes of which nothing is known */
	bool real, swapped;
};

/* Distances at which numbers are close to each other again, after they were not: the shortest that stands out, a row, and where one beyond it
 * does so as well, a plane. 0: none. */
void vv_period_strides(const struct vv_period_numbers *x, size_t *row, size_t *plane);

/* Of what is in the last one's second half, a word or the upper halves of some numbers: how large a part is in one of those before it, but not in
 * its own first half? Nothing else can make them shorter together than apart. seen: VV_PERIOD_SEEN zeros. */
double vv_period_shared(const struct vv_period_numbers *x, size_t n, uint16_t *seen);

#endif
