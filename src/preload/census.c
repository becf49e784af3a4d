#include "preload/census.h"
#include "base/err.h"
#include "base/mem.h"
#include "preload/heap.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

void vv_census_fini(struct vv_census *c)
{
	vv_mem_free(c->p);
	*c = (struct vv_census){ 0 };
}

void vv_census_add(void *arg, uintptr_t at, uint8_t mark)
{
	struct vv_census *c = arg;
	uint64_t step = (at - c->last) / VV_HEAP_GRAIN;

	for (bool more = true; more && c->rc == 0; step >>= 7) {
		c->rc = vv_mem_room(&c->p, c->n + 1, &c->cap, 1);
		more = step > 0x7f;
		if (c->rc == 0)
			c->p[c->n++] = (uint8_t)((step & 0x7f) | (more ? 0x80 : 0));
	}
	if (c->rc)
		return;
	c->p[c->n++] = mark;
	c->last = at;
	c->objects++;
}

int vv_census_next(struct vv_census_cursor *c)
{
	uint64_t step = 0;
	unsigned shift = 0;
	uint8_t byte = 0x80;

	if (c->p == c->end)
		return 0;
	for (; byte & 0x80 && c->p < c->end && shift < 63; shift += 7) {
		byte = *c->p++;
		step |= (uint64_t)(byte & 0x7f) << shift;
	}
	if (byte & 0x80 || c->p == c->end || *c->p == 0)
		return vv_err_set(VV_EDAMAGED, "the list of allocations is damaged");
	c->mark = *c->p++;
	c->at += step * VV_HEAP_GRAIN;
	return 1;
}

struct difference {
	uint64_t missing, surplus, resized;
	char first[160];
};

/* A mark of 0 means that there is no object. */
static void note(struct difference *d, uint64_t at, uint8_t now, uint8_t then)
{
	char is[48] = "nothing", was[48] = "nothing";

	*(now && then ? &d->resized : now ? &d->surplus : &d->missing) += 1;
	if (d->first[0])
		return;
	if (now)
		snprintf(is, sizeof(is), "an object of up to %zu bytes", vv_heap_mark_room(now));
	if (then)
		snprintf(was, sizeof(was), "one of up to %zu bytes", vv_heap_mark_room(then));
	snprintf(d->first, sizeof(d->first), "at %#" PRIx64 " there is %s and was %s", at, is, was);
}

static int err_difference(const struct difference *d)
{
	if (d->missing + d->surplus + d->resized == 0)
		return 0;
	return vv_err_set(VV_EMISMATCH, "the program has not allocated what it had allocated at its first checkpoint: %s; in all, %" PRIu64
			  " objects are missing, %" PRIu64 " were not there, %" PRIu64
			  " have another size. Is it the same input, and the same number of threads?",
			  d->first, d->missing, d->surplus, d->resized);
}

int vv_census_compare(const struct vv_census *now, const struct vv_census *then)
{
	struct vv_census_cursor a = { now->p, now->p + now->n, 0, 0 }, b = { then->p, then->p + then->n, 0, 0 };
	struct difference d = { 0 };
	int more_a = vv_census_next(&a), more_b = vv_census_next(&b);

	while (more_a >= 0 && more_b >= 0 && more_a + more_b > 0) {
		bool step_a = more_a && (!more_b || a.at <= b.at), step_b = more_b && (!more_a || b.at <= a.at);

		if (!step_a || !step_b || a.mark != b.mark)
			note(&d, step_a ? a.at : b.at, step_a ? a.mark : 0, step_b ? b.mark : 0);
		if (step_a)
			more_a = vv_census_next(&a);
		if (step_b)
			more_b = vv_census_next(&b);
	}
	return more_a < 0 || more_b < 0 ? VV_EDAMAGED : err_difference(&d);
}
