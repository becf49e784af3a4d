/* Content-defined chunks: cuts depend on the bytes before them, so an insertion or a deletion moves
 * no distant cut. The hash is a gear hash over 64 bytes. Cuts are less likely before the average
 * length and more likely after it (FastCDC, USENIX ATC 2016, 3.3). */
#ifndef VV_CORE_DEDUP_CDC_H
#define VV_CORE_DEDUP_CDC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VV_CDC_WINDOW = 64, /* bytes that decide about a cut after them */
	VV_CDC_MIN = 4 << 10,
	VV_CDC_AVG = 8 << 10,
	VV_CDC_MAX = 64 << 10,
};

struct vv_cdc {
	size_t min, turn, max;
	uint64_t rare, frequent; /* limits: a smaller hash is a cut; before `turn`, after it */
	uint64_t gear[256];
};

/* VV_CDC_WINDOW <= min < avg < max <= 2^30, or VV_EINVAL. The cuts are the same on every machine
 * and in every version. */
int vv_cdc_init(struct vv_cdc *c, size_t min, size_t avg, size_t max);
/* Returns the length of the chunk that begins at p, or 0 if the n bytes there do not decide it. At
 * `max` bytes it is always decided. With `last`, no bytes follow these n. */
size_t vv_cdc_next(const struct vv_cdc *c, const uint8_t *p, size_t n, bool last);

#endif
