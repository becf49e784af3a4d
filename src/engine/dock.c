#include "engine/dock.h"
#include "base/mem.h"
#include "engine/tiles.h"
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

/* Whoever runs this has perhaps something to tell: that stays. */
static void run_open(struct vv_dock *d)
{
	struct vv_err_state before;
	int rc;

	vv_err_save(0, &before);
	rc = make_crates(d);
	if (rc == 0)
		rc = d->space->inlet->open(d->device, (size_t)d->room, d->rooms, &d->inlet);
	pthread_mutex_lock(&d->lock);
	d->rc = rc;
	if (rc)
		vv_err_save(rc, &d->error);
	d->open = true;
	pthread_cond_broadcast(&d->change);
	pthread_mutex_unlock(&d->lock);
	vv_err_restore(&before);
}

static void *open_aside(void *arg)
{
	struct vv_dock *d = arg;

	run_open(d);
	while (d->rc == 0 && !atomic_load(&d->enough) && d->space->inlet->furnish(d->inlet))
		;
	return NULL;
}

static void close_all(struct vv_dock *d)
{
	atomic_store(&d->enough, true);
	if (d->has_thread)
		pthread_join(d->thread, NULL);
	d->has_thread = false;
	drop(d);
}

static void run_close(struct vv_task *t)
{
	close_all((struct vv_dock *)((char *)t - offsetof(struct vv_dock, task)));
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
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->change, NULL);
	d->has_thread = vv_fault_start_thread(&d->thread, open_aside, d) == 0;
	if (!d->has_thread)
		run_open(d);
}

bool vv_dock_serves(const struct vv_dock *d, const struct vv_space *space, int device, uint64_t len)
{
	return d->len >= len && d->space == space && d->device == device;
}

int vv_dock_wait(struct vv_dock *d)
{
	pthread_mutex_lock(&d->lock);
	while (!d->open)
		pthread_cond_wait(&d->change, &d->lock);
	pthread_mutex_unlock(&d->lock);
	return d->rc ? vv_err_restore(&d->error) : 0;
}

void vv_dock_leave(struct vv_dock *d)
{
	if (!d->len || d->leaving)
		return;
	d->leaving = true;
	d->task = (struct vv_task){ .run = run_close };
	vv_pool_submit(d->pool, &d->task);
}

void vv_dock_end(struct vv_dock *d)
{
	if (!d->len)
		return;
	if (d->leaving)
		vv_pool_wait(d->pool, &d->task);
	else
		close_all(d);
	pthread_cond_destroy(&d->change);
	pthread_mutex_destroy(&d->lock);
	*d = (struct vv_dock){ 0 };
}
