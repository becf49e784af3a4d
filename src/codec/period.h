/* The search for periods in bytes of unknown type: the length of a record, and the length of a
 * row. */
#ifndef VV_CODEC_PERIOD_H
#define VV_CODEC_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* the longest periods searched for: bytes, numbers */
enum { VV_PERIOD_RECORD = 1024, VV_PERIOD_STRIDE = 1024 };

/* The lag in bytes at which most bytes are equal: more than 8, so a record of several numbers; 0:
 * none stands out. */
size_t vv_period_record(const uint8_t *p, size_t n);

struct vv_period_numbers {
	const uint8_t *p;
	size_t n;       /* numbers */
	unsigned width; /* bytes of a number: 4 or 8 */
	bool real, swapped;
};

/* Finds the distances at which numbers are close to each other again. The shortest that stands out
 * is a row; one beyond it that stands out as well is a plane. 0: none. */
void vv_period_strides(const struct vv_period_numbers *x, size_t *row, size_t *plane);

#endif
