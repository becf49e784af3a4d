/* Content-defined chunks: cuts follow from the bytes before them, so that what is inserted or deleted moves no cut far from it. A gear hash over
 * 64 bytes, with cuts less likely before the average and more likely after it (FastCDC, USENIX ATC 2016, 3.3). */
#ifndef VV_CORE_DEDUP_CDC_H
#define VV_CORE_DEDUP_CDC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VV_CDC_WINDOW = 64, /* bytes that decide on a cut after them */
	VV_CDC_MIN = 4 << 10,
	VV_CDC_AVG = 8 << 10,
	VV_CDC_MAX = 64 << 10,
};

struct vv_cdc {
	size_t min, turn, max;
	uint64_t rare, frequent; /* hashes below cut: before `turn`, after it */
	uint64_t gear[256];
};

/* VV_CDC_WINDOW <= min < avg < max <= 2^30, or VV_EINVAL. The same cuts everywhere and for ever. */
int vv_cdc_init(struct vv_cdc *c, size_t min, size_t avg, size_t max);
/* The length of the chunk that begins at p, of which there are n bytes; 0: they do not tell, more are needed (max always do). last: after them
 * there are no more. */
size_t vv_cdc_next(const struct vv_cdc *c, const uint8_t *p, size_t n, bool last);

#endif
