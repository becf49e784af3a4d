#include "gpu/cuda_inlet.h"
#include "base/held.h"
#include "base/mem.h"
#include <pthread.h>

static const char purpose[] = "bringing stored bytes to the device";

struct slot {
	struct vv_device_inlet_buffer room;
	uint8_t *stage; /* as large, on the device */
	cudaStream_t stream;
	bool sent; /* with content */
};

struct vv_cuda_inlet {
	int device;
	struct slot *slot;
	size_t n, size;
	uint8_t *stages;
	uint32_t *differs; /* per slot; host memory that the device writes */
	pthread_mutex_t lock;
	pthread_cond_t ready;
	size_t n_allocated; /* number of first slots with memory, or about to get it */
	size_t underway;  /* of these, those that will enter the queue */
	/* Free slots, from `first` on: the empty ones, then the sent ones in the order of
	 * sending. */
	size_t *queue;
	size_t first, queued;
	bool no_memory; /* an allocation of a room failed */
};

/* ---- open and close -------------------------------------------------------------------------- */

static int make(struct vv_cuda_inlet *i)
{
	int rc;

	i->slot = vv_mem_new(i->n, sizeof(*i->slot));
	i->queue = vv_mem_new(i->n, sizeof(*i->queue));
	if (!i->slot || !i->queue)
		return VV_ENOMEM;
	rc = vv_cuda_new(&i->stages, i->n, i->size, purpose);
	if (rc == 0)
		rc = vv_cuda_check(cudaHostAlloc((void **)&i->differs, i->n * sizeof(*i->differs), cudaHostAllocMapped), purpose);
	for (size_t k = 0; rc == 0 && k < i->n; k++) {
		i->slot[k].room = (struct vv_device_inlet_buffer){ .size = i->size, .number = k };
		i->slot[k].stage = i->stages + k * i->size;
		rc = vv_cuda_check(cudaStreamCreateWithFlags(&i->slot[k].stream, cudaStreamNonBlocking), purpose);
	}
	return rc;
}

static void give_back_one(void *arg, size_t k)
{
	struct vv_cuda_inlet *i = arg;

	vv_space_cuda()->give_back(i->device, i->slot[k].room.p, i->size);
}

/* Transfers in progress must not lose their memory. */
static void drop(struct vv_cuda_inlet *i, struct vv_pool *pool)
{
	struct vv_parallel_for loop = vv_pool_loop(pool);

	for (size_t k = 0; i->slot && k < i->n; k++)
		if (i->slot[k].stream) {
			vv_cuda_check(cudaStreamSynchronize(i->slot[k].stream), purpose);
			cudaStreamDestroy(i->slot[k].stream);
		}
	vv_parallel_for_each(&loop, i->n_allocated, give_back_one, i);
	if (i->differs)
		cudaFreeHost(i->differs);
	vv_cuda_free(i->stages);
	pthread_cond_destroy(&i->ready);
	pthread_mutex_destroy(&i->lock);
	vv_mem_free(i->slot);
	vv_mem_free(i->queue);
	vv_mem_free(i);
}

static int open_inlet(int device, size_t size, size_t rooms, struct vv_cuda_inlet **out)
{
	struct vv_cuda_inlet *i = vv_mem_new(1, sizeof(*i));
	struct vv_cuda_before before;
	int rc = i ? vv_cuda_enter(device, &before) : VV_ENOMEM;

	if (rc) {
		vv_mem_free(i);
		return rc;
	}
	*i = (struct vv_cuda_inlet){ .device = device, .n = rooms, .size = size, .lock = PTHREAD_MUTEX_INITIALIZER, .ready = PTHREAD_COND_INITIALIZER };
	rc = make(i);
	if (rc)
		drop(i, NULL);
	vv_cuda_leave(before);
	if (rc == 0)
		*out = i;
	return rc;
}

static void close_inlet(struct vv_cuda_inlet *i, struct vv_pool *pool)
{
	struct vv_err_state why;
	struct vv_cuda_before before;
	int rc;

	if (!i)
		return;
	vv_err_save(0, &why);
	rc = vv_cuda_enter(i->device, &before);
	drop(i, pool);
	if (rc == 0)
		vv_cuda_leave(before);
	vv_err_restore(&why);
}

/* ---- rooms ----------------------------------------------------------------------------------- */

/* Under the lock. The k-th free slot. */
static struct slot *in_queue(struct vv_cuda_inlet *i, size_t k)
{
	VV_HELD(&i->lock);
	return &i->slot[i->queue[(i->first + k) % i->n]];
}

/* Under the lock. */
static struct slot *pop(struct vv_cuda_inlet *i)
{
	struct slot *b = in_queue(i, 0);

	VV_HELD(&i->lock);
	i->first = (i->first + 1) % i->n;
	i->queued--;
	return b;
}

/* Under the lock. */
static void push(struct vv_cuda_inlet *i, const struct slot *b)
{
	VV_HELD(&i->lock);
	if (!b->sent)
		i->first = (i->first + i->n - 1) % i->n;
	i->queue[(i->first + (b->sent ? i->queued : 0)) % i->n] = b->room.number;
	i->queued++;
}

/* Under the lock. */
static bool has_new(struct vv_cuda_inlet *i)
{
	VV_HELD(&i->lock);
	return i->n_allocated < i->n && !i->no_memory;
}

/* The caller does not hold the lock. */
static bool rent(struct vv_cuda_inlet *i, struct slot *b)
{
	b->room.p = vv_space_cuda()->rent(i->device, i->size);
	return b->room.p;
}

static bool allocate_room(struct vv_cuda_inlet *i)
{
	struct slot *b = NULL;
	bool done;

	pthread_mutex_lock(&i->lock);
	if (has_new(i)) {
		b = &i->slot[i->n_allocated++];
		i->underway++;
	}
	pthread_mutex_unlock(&i->lock);
	done = b && rent(i, b);
	if (!b)
		return false;
	vv_err_clear();
	pthread_mutex_lock(&i->lock);
	if (done)
		push(i, b);
	i->no_memory |= !done;
	i->underway--;
	pthread_cond_broadcast(&i->ready);
	pthread_mutex_unlock(&i->lock);
	return done;
}

static int arrive(struct vv_cuda_inlet *i, struct slot *b, struct vv_device_inlet_buffer **out)
{
	struct vv_cuda_before before;
	int rc = vv_cuda_enter(i->device, &before);

	if (rc)
		return rc;
	rc = vv_cuda_check(cudaStreamSynchronize(b->stream), purpose);
	vv_cuda_leave(before);
	b->room.differs = b->room.end && i->differs[b->room.number];
	*out = &b->room;
	return rc;
}

/* Reports that there is no room: no memory for one, now or earlier, or more requests than rooms. */
static int refuse(struct vv_cuda_inlet *i, bool no_memory)
{
	pthread_mutex_lock(&i->lock);
	i->no_memory |= no_memory;
	no_memory = i->no_memory;
	pthread_mutex_unlock(&i->lock);
	return no_memory ? vv_err_set(VV_ENOMEM, "%s: no memory for another room", purpose) : vv_err_set(VV_EINVAL, "%s: all %zu rooms are taken", purpose, i->n);
}

/* Prefers a new room to waiting. */
static int take(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer **out)
{
	struct slot *b = NULL;
	bool new;

	pthread_mutex_lock(&i->lock);
	while (!i->queued && !has_new(i) && i->underway)
		pthread_cond_wait(&i->ready, &i->lock);
	new = has_new(i) && (!i->queued || in_queue(i, 0)->sent);
	if (new)
		b = &i->slot[i->n_allocated++];
	else if (i->queued)
		b = pop(i);
	pthread_mutex_unlock(&i->lock);
	if (b && !new)
		return arrive(i, b, out);
	if (!b || !rent(i, b))
		return refuse(i, b);
	*out = &b->room;
	return 0;
}

static int await(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer **out)
{
	struct slot *b = NULL;
	size_t empty = 0;

	pthread_mutex_lock(&i->lock);
	while (empty < i->queued && !in_queue(i, empty)->sent)
		empty++;
	if (empty < i->queued) {
		b = in_queue(i, empty);
		for (size_t k = empty; k > 0; k--)
			i->queue[(i->first + k) % i->n] = i->queue[(i->first + k - 1) % i->n];
		pop(i);
	}
	pthread_mutex_unlock(&i->lock);
	*out = NULL;
	return b ? arrive(i, b, out) : 0;
}

static int begin(struct vv_cuda_inlet *i, struct slot *b)
{
	const struct vv_device_inlet_buffer *r = &b->room;
	struct vv_gpu_landing l = {
		.bytes = b->stage + r->bytes,
		.move = (const struct vv_device_inlet_move *)b->stage,
		.check = (const struct vv_device_inlet_check *)(b->stage + ((uint8_t *)vv_device_inlet_checks(r) - r->p)),
		.n_moves = r->n_moves,
		.n_checks = r->n_checks,
		.to = r->to,
		.differs = &i->differs[r->number],
	};
	int rc = vv_cuda_check(cudaMemcpyAsync(b->stage, r->p, r->end, cudaMemcpyHostToDevice, b->stream), purpose);

	*l.differs = 0;
	return rc ? rc : vv_land_run(&l, b->stream);
}

static int send(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer *r)
{
	struct slot *b = &i->slot[r->number];
	struct vv_cuda_before before;
	int rc = r->end ? vv_cuda_enter(i->device, &before) : 0;

	if (rc == 0 && r->end) {
		rc = begin(i, b);
		vv_cuda_leave(before);
	}
	pthread_mutex_lock(&i->lock);
	b->sent = r->end;
	push(i, b);
	pthread_mutex_unlock(&i->lock);
	return rc;
}

const struct vv_device_inlet_ops vv_inlet_cuda = { open_inlet, close_inlet, allocate_room, take, await, send };
