/* What comes again after a while, in bytes of which nobody said what they are: the length of a record, the length of a row. */
#ifndef VV_CODEC_PERIOD_H
#define VV_CODEC_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VV_PERIOD_RECORD = 1024, VV_PERIOD_STRIDE = 1024 }; /* the longest that are looked for: bytes, numbers */

/* After how many bytes most of them are as before: more than 8, so a record of several numbers; 0: none stands out. */
size_t vv_period_record(const uint8_t *p, size_t n);

struct vv_period_numbers {
	const uint8_t *p;
	size_t n;       /* numbers */
	unsigned width; /* 4 or 8 bytes of each */
	bool real, swapped;
};

/* Distances at which numbers are close to each other again, after they were not: the shortest that stands out, a row, and where one beyond it
 * does so as well, a plane. 0: none. */
void vv_period_strides(const struct vv_period_numbers *x, size_t *row, size_t *plane);

#endif
