/* What the tests of device memory as regions share: memory of the host or the device, and what it is to hold. */
#ifndef VV_TEST_GPU_REGIONS_H
#define VV_TEST_GPU_REGIONS_H

#include "support/device.h"
#include "support/dice.h"
#include "support/must.h"
#include "support/place.h"
#include "vv_test.h"
#include <stdbool.h>

#define OK(call) MUST((call) >= 0)

/* ---- memory ------------------------------------------------------------------------------------------------------------------- */

static const struct vv_space *space;

struct buf {
	size_t len;
	bool device;
	uint8_t *p;      /* what is protected */
	uint8_t *mirror; /* what it is to hold */
};

static inline void get(struct buf *b, size_t len, bool device)
{
	*b = (struct buf){ len, device, device ? device_get_odd(len) : malloc(len), malloc(len) };
	MUST(b->p && b->mirror);
	memset(b->mirror, 0x5a, len);
}

static inline void put(struct buf *b)
{
	(b->device ? device_put_odd : free)(b->p);
	free(b->mirror);
}

static inline void push(const struct buf *b)
{
	if (b->device)
		OK(space->copy_in(b->p, b->mirror, b->len));
	else
		memcpy(b->p, b->mirror, b->len);
}

static inline bool holds(const struct buf *b, const uint8_t *what)
{
	uint8_t *is = malloc(b->len);
	bool same;

	MUST(is);
	if (b->device)
		OK(space->copy_out(is, b->p, b->len));
	same = memcmp(b->device ? is : b->p, what, b->len) == 0;
	free(is);
	return same;
}

static inline void scramble(const struct buf *b)
{
	uint8_t *junk = malloc(b->len);

	MUST(junk);
	memset(junk, 0xc3, b->len);
	if (b->device)
		OK(space->copy_in(b->p, junk, b->len));
	else
		memcpy(b->p, junk, b->len);
	free(junk);
}

static inline uint64_t new_bytes(varve *v)
{
	struct varve_stats st;

	OK(varve_checkpoint(v));
	OK(varve_stats(v, &st));
	MUST(st.bytes_memory == st.bytes_unchanged + st.bytes_zero + st.bytes_dup_time + st.bytes_dup_space +
					st.bytes_dup_ranks + st.bytes_new);
	return st.bytes_new;
}

/* What the newest epoch has of the region, read into the host's memory and into the device's. */
static inline void check_stored(varve *v, const char *name, const uint8_t *want, size_t len)
{
	for (int device = 0; device < 2; device++) {
		struct buf b;

		get(&b, len, device);
		OK(varve_restart_region(v, varve_epoch(v), name, b.p, len));
		MUST(holds(&b, want));
		put(&b);
	}
}

#endif
