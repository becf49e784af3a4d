#include "engine/dock.h"
#include "base/mem.h"
#include <stddef.h>

enum {
	STRIPE = 4 << 20, /* of a region: what goes into a room, which has twice as much space */
	LEAST_STRIPE = 256 << 10,
	SPARE = 4,        /* rooms on their way while every thread fills one */
};

/* Every thread has something to do. */
static uint64_t stripe_for(const struct vv_pool *pool, uint64_t most, uint64_t len)
{
	while (most > LEAST_STRIPE && 2 * most * vv_pool_width(pool) > len)
		most /= 2;
	return most;
}

uint64_t vv_dock_stripe(const struct vv_dock *d, uint64_t len)
{
	return stripe_for(d->pool, d->room / 2, len);
}

static int make_crates(struct vv_dock *d)
{
	int rc = 0;

	d->crate = vv_mem_new(d->rooms, sizeof(struct vv_crate *));
	if (!d->crate)
		return VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < d->rooms; i++)
		rc = vv_crate_new((size_t)d->room, &d->crate[i]);
	return rc;
}

static void drop(struct vv_dock *d)
{
	if (d->inlet)
		d->space->inlet->close(d->inlet, d->pool);
	for (size_t i = 0; d->crate && i < d->rooms; i++)
		vv_crate_free(d->crate[i]);
	vv_mem_free(d->crate);
	d->inlet = NULL;
	d->crate = NULL;
}

static struct vv_dock *dock_of(struct vv_task *t)
{
	return (struct vv_dock *)((char *)t - offsetof(struct vv_dock, task));
}

/* Whoever waits for anything may run this, and has perhaps something to tell: that stays. */
static void run_open(struct vv_task *t)
{
	struct vv_dock *d = dock_of(t);
	struct vv_err_state before;

	vv_err_save(0, &before);
	d->rc = make_crates(d);
	if (d->rc == 0)
		d->rc = d->space->inlet->open(d->device, (size_t)d->room, d->rooms, d->pool, &d->inlet);
	if (d->rc)
		vv_err_save(d->rc, &d->error);
	vv_err_restore(&before);
}

static void run_close(struct vv_task *t)
{
	drop(dock_of(t));
}

static void submit(struct vv_dock *d, void (*run)(struct vv_task *t))
{
	d->task = (struct vv_task){ .run = run };
	vv_pool_submit(d->pool, &d->task);
}

static void settle(struct vv_dock *d)
{
	if (d->state != VV_DOCK_QUIET)
		vv_pool_wait(d->pool, &d->task);
	d->state = VV_DOCK_QUIET;
}

/* All rooms together have the memory that there may be. */
void vv_dock_begin(struct vv_dock *d, struct vv_pool *pool, const struct vv_space *space, int device, uint64_t memory, uint64_t len)
{
	size_t rooms = vv_pool_width(pool) + SPARE, stripes;
	uint64_t stripe = stripe_for(pool, STRIPE, len);

	while (stripe > LEAST_STRIPE && 2 * stripe * rooms > memory)
		stripe /= 2;
	stripes = (size_t)((len + stripe - 1) / stripe);
	rooms = rooms < stripes ? rooms : stripes;
	if (!space->inlet || len < VV_DOCK_LEAST || 2 * stripe * rooms > memory)
		return;
	*d = (struct vv_dock){ .space = space, .device = device, .len = len, .room = 2 * stripe, .rooms = rooms, .pool = pool };
	d->state = VV_DOCK_OPENING;
	submit(d, run_open);
}

bool vv_dock_serves(const struct vv_dock *d, const struct vv_space *space, int device, uint64_t len)
{
	return d->len >= len && d->space == space && d->device == device;
}

int vv_dock_wait(struct vv_dock *d)
{
	settle(d);
	return d->rc ? vv_err_restore(&d->error) : 0;
}

void vv_dock_leave(struct vv_dock *d)
{
	if (!d->len)
		return;
	settle(d);
	d->state = VV_DOCK_CLOSING;
	submit(d, run_close);
}

void vv_dock_end(struct vv_dock *d)
{
	if (!d->len)
		return;
	settle(d);
	drop(d);
	*d = (struct vv_dock){ 0 };
}
