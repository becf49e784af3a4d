#include "gpu/inlet.h"
#include "base/mem.h"
#include <pthread.h>

static const char purpose[] = "bringing stored bytes to the device";

struct berth {
	struct vv_inlet_room room;
	uint8_t *stage; /* as large, on the device */
	cudaStream_t stream;
};

struct vv_inlet {
	int device;
	struct berth *berth;
	size_t n, size;
	uint8_t *stages;
	uint32_t *differs; /* per berth; memory of the host that the device writes to */
	pthread_mutex_t lock;
	size_t *queue; /* berths that nobody has, the one that was sent first at `first` */
	size_t first, queued;
};

/* ---- open and close --------------------------------------------------------------------------------------------------------------- */

/* Memory takes its time to get: all at once. */
static void rent_one(void *arg, size_t k)
{
	struct vv_inlet *i = arg;

	i->berth[k].room.p = vv_space_cuda()->rent(i->size);
}

static void give_back_one(void *arg, size_t k)
{
	struct vv_inlet *i = arg;

	vv_space_cuda()->give_back(i->berth[k].room.p, i->size);
}

static int make_berths(struct vv_inlet *i, struct vv_pool *pool)
{
	int rc = 0;

	vv_pool_each(pool, i->n, rent_one, i);
	for (size_t k = 0; rc == 0 && k < i->n; k++) {
		struct berth *b = &i->berth[k];

		b->room.size = i->size;
		b->room.number = k;
		b->stage = i->stages + k * i->size;
		i->queue[k] = k;
		rc = b->room.p ? vv_cuda_check(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking), purpose) : VV_ENOMEM;
	}
	i->queued = i->n;
	return rc;
}

static int make(struct vv_inlet *i, struct vv_pool *pool)
{
	int rc;

	i->berth = vv_mem_new(i->n, sizeof(*i->berth));
	i->queue = vv_mem_new(i->n, sizeof(*i->queue));
	if (!i->berth || !i->queue)
		return VV_ENOMEM;
	rc = vv_cuda_new(&i->stages, i->n, i->size, purpose);
	if (rc == 0)
		rc = vv_cuda_check(cudaHostAlloc((void **)&i->differs, i->n * sizeof(*i->differs), cudaHostAllocMapped), purpose);
	return rc ? rc : make_berths(i, pool);
}

/* What is under way must not lose its memory. */
static void drop(struct vv_inlet *i, struct vv_pool *pool)
{
	for (size_t k = 0; i->berth && k < i->n; k++)
		if (i->berth[k].stream) {
			vv_cuda_check(cudaStreamSynchronize(i->berth[k].stream), purpose);
			cudaStreamDestroy(i->berth[k].stream);
		}
	if (i->berth)
		vv_pool_each(pool, i->n, give_back_one, i);
	if (i->differs)
		cudaFreeHost(i->differs);
	vv_cuda_free(i->stages);
	pthread_mutex_destroy(&i->lock);
	vv_mem_free(i->berth);
	vv_mem_free(i->queue);
	vv_mem_free(i);
}

static int open_inlet(int device, size_t size, size_t rooms, struct vv_pool *pool, struct vv_inlet **out)
{
	struct vv_inlet *i = vv_mem_new(1, sizeof(*i));
	int before, rc = i ? vv_cuda_enter(device, &before) : VV_ENOMEM;

	if (rc) {
		vv_mem_free(i);
		return rc;
	}
	*i = (struct vv_inlet){ .device = device, .n = rooms, .size = size, .lock = PTHREAD_MUTEX_INITIALIZER };
	rc = make(i, pool);
	if (rc)
		drop(i, pool);
	vv_cuda_leave(before);
	if (rc == 0)
		*out = i;
	return rc;
}

static void close_inlet(struct vv_inlet *i, struct vv_pool *pool)
{
	struct vv_err_state why;
	int before, rc;

	if (!i)
		return;
	vv_err_save(0, &why);
	rc = vv_cuda_enter(i->device, &before);
	drop(i, pool);
	if (rc == 0)
		vv_cuda_leave(before);
	vv_err_restore(&why);
}

/* ---- rooms ------------------------------------------------------------------------------------------------------------------------ */

static int take(struct vv_inlet *i, struct vv_inlet_room **out)
{
	struct berth *b = NULL;
	int rc;

	pthread_mutex_lock(&i->lock);
	if (i->queued) {
		b = &i->berth[i->queue[i->first]];
		i->first = (i->first + 1) % i->n;
		i->queued--;
	}
	pthread_mutex_unlock(&i->lock);
	if (!b)
		return vv_err_set(VV_EINVAL, "%s: all %zu rooms are taken", purpose, i->n);
	rc = vv_cuda_check(cudaStreamSynchronize(b->stream), purpose);
	b->room.differs = b->room.end && i->differs[b->room.number];
	*out = &b->room;
	return rc;
}

static int begin(struct vv_inlet *i, struct berth *b)
{
	const struct vv_inlet_room *r = &b->room;
	struct vv_gpu_landing l = {
		.bytes = b->stage + r->bytes,
		.move = (const struct vv_inlet_move *)b->stage,
		.check = (const struct vv_inlet_check *)(b->stage + ((uint8_t *)vv_inlet_checks(r) - r->p)),
		.n_moves = r->n_moves,
		.n_checks = r->n_checks,
		.to = r->to,
		.differs = &i->differs[r->number],
	};
	int rc = vv_cuda_check(cudaMemcpyAsync(b->stage, r->p, r->end, cudaMemcpyHostToDevice, b->stream), purpose);

	*l.differs = 0;
	if (rc == 0)
		rc = vv_land_check(&l, b->stream);
	return rc ? rc : vv_land_place(&l, b->stream);
}

static int send(struct vv_inlet *i, struct vv_inlet_room *r)
{
	struct berth *b = &i->berth[r->number];
	int before, rc = r->end ? vv_cuda_enter(i->device, &before) : 0;

	if (rc == 0 && r->end) {
		rc = begin(i, b);
		vv_cuda_leave(before);
	}
	pthread_mutex_lock(&i->lock);
	i->queue[(i->first + i->queued++) % i->n] = r->number;
	pthread_mutex_unlock(&i->lock);
	return rc;
}

const struct vv_inlet_ops vv_inlet_cuda = { open_inlet, close_inlet, take, send };
