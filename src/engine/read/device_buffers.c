#include "engine/read/device_buffers.h"
#include "base/mem.h"
#include "track/thread.h"
#include <stddef.h>

enum { LEAST_STRIPE = 256 << 10 };

/* More filling threads with more memory take memory bandwidth from the link: decision 18. */
const struct vv_device_buffers_sizes vv_device_buffers_default = { .stripe = 8 << 20, .room = 125, .fillers = 14, .spare = 4 };

static struct vv_device_buffers_sizes ways;
static bool trying;

void vv_device_buffers_set_sizes(const struct vv_device_buffers_sizes *w)
{
	trying = w;
	if (w)
		ways = *w;
}

/* Small enough that every filler has work. */
static uint64_t stripe_for(size_t fillers, uint64_t most, uint64_t len)
{
	while (most > LEAST_STRIPE && 2 * most * fillers > len)
		most /= 2;
	return most;
}

static uint64_t room_for(const struct vv_device_buffers_sizes *w, uint64_t stripe)
{
	enum { PAGE = 4096 };

	return (stripe / 100 * w->room + PAGE - 1) / PAGE * PAGE;
}

uint64_t vv_device_buffers_stripe(const struct vv_device_buffers *d, uint64_t len)
{
	return stripe_for(d->fillers, d->stripe, len);
}

struct vv_device_batch *vv_device_buffers_batch(struct vv_device_buffers *d, size_t i)
{
	if (!d->batch[i] && vv_device_batch_new((size_t)d->room, &d->batch[i]) < 0)
		return NULL;
	return d->batch[i];
}

static void drop(struct vv_device_buffers *d)
{
	if (d->inlet)
		d->space->inlet->close(d->inlet, d->pool);
	for (size_t i = 0; d->batch && i < d->fillers; i++)
		vv_device_batch_free(d->batch[i]);
	vv_mem_free(d->batch);
	d->inlet = NULL;
	d->batch = NULL;
}

/* The calling thread may have an error set: it is kept. */
static void run_open(struct vv_device_buffers *d)
{
	struct vv_err_state before;
	int rc;

	vv_err_save(0, &before);
	d->batch = vv_mem_new(d->fillers, sizeof(struct vv_device_batch *));
	rc = d->batch ? 0 : VV_ENOMEM;
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

static void *open_in_thread(void *arg)
{
	struct vv_device_buffers *d = arg;

	run_open(d);
	while (d->rc == 0 && !atomic_load(&d->enough) && d->space->inlet->allocate(d->inlet))
		;
	return NULL;
}

static void close_all(struct vv_device_buffers *d)
{
	atomic_store(&d->enough, true);
	if (d->has_thread)
		pthread_join(d->thread, NULL);
	d->has_thread = false;
	drop(d);
}

static void run_close(struct vv_task *t)
{
	close_all((struct vv_device_buffers *)((char *)t - offsetof(struct vv_device_buffers, task)));
}

/* All rooms together use the permitted memory. */
void vv_device_buffers_begin(struct vv_device_buffers *d, struct vv_pool *pool, const struct vv_space *space, int device, uint64_t memory, uint64_t len)
{
	const struct vv_device_buffers_sizes *w = trying ? &ways : &vv_device_buffers_default;
	size_t fillers = vv_pool_width(pool) < w->fillers ? vv_pool_width(pool) : w->fillers, rooms = fillers + w->spare, stripes;
	uint64_t stripe = stripe_for(fillers, w->stripe, len);

	while (stripe > LEAST_STRIPE && room_for(w, stripe) * rooms > memory)
		stripe /= 2;
	stripes = (size_t)((len + stripe - 1) / stripe);
	rooms = rooms < stripes ? rooms : stripes;
	if (!space->inlet || len < VV_DEVICE_BUFFERS_LEAST || room_for(w, stripe) * rooms > memory)
		return;
	*d = (struct vv_device_buffers){ .space = space, .device = device, .len = len, .stripe = stripe, .room = room_for(w, stripe), .rooms = rooms, .fillers = fillers, .pool = pool };
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->change, NULL);
	d->has_thread = vv_thread_start(&d->thread, open_in_thread, d) == 0;
	if (!d->has_thread)
		run_open(d);
}

bool vv_device_buffers_fit(const struct vv_device_buffers *d, const struct vv_space *space, int device, uint64_t len)
{
	return d->len >= len && d->space == space && d->device == device;
}

int vv_device_buffers_wait(struct vv_device_buffers *d)
{
	pthread_mutex_lock(&d->lock);
	while (!d->open)
		pthread_cond_wait(&d->change, &d->lock);
	pthread_mutex_unlock(&d->lock);
	return d->rc ? vv_err_restore(&d->error) : 0;
}

void vv_device_buffers_begin_close(struct vv_device_buffers *d)
{
	if (!d->len || d->leaving)
		return;
	d->leaving = true;
	d->task = (struct vv_task){ .run = run_close };
	vv_pool_submit(d->pool, &d->task);
}

void vv_device_buffers_finish_close(struct vv_device_buffers *d)
{
	if (!d->len)
		return;
	if (d->leaving)
		vv_pool_wait(d->pool, &d->task);
	else
		close_all(d);
	pthread_cond_destroy(&d->change);
	pthread_mutex_destroy(&d->lock);
	*d = (struct vv_device_buffers){ 0 };
}
