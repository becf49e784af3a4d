// ctest: TIMEOUT 120 COST 2
/* Reading into a space that checks and places by itself, which is played by memory of the host's here: it does its work as late as it may, and minds everything
 * that a device would. */
#include "engine/read/device_load.h"
#include "base/err.h"
#include "base/mem.h"
#include "support/device_load_suite.h"
#include "vv_test.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MANY = 6 }; /* rooms: more than two threads need */

struct vv_cuda_inlet {
	struct vv_device_inlet_buffer *room;
	size_t n, *queue, first, queued;
	pthread_mutex_t lock;
};

static long fail_at;
static unsigned failing_room; /* there is no memory for each so-manyth room */

static void fail_next(long n)
{
	fail_at = n;
}

static bool is_closed;

static void fail_open(bool on)
{
	is_closed = on;
}

static void fail_rooms(unsigned n)
{
	failing_room = n;
}

static int open_inlet(int device, size_t size, size_t rooms, struct vv_cuda_inlet **out)
{
	struct vv_cuda_inlet *i = vv_mem_new(1, sizeof(*i));

	if (!i)
		return VV_ENOMEM;
	if (is_closed) {
		vv_mem_free(i);
		return vv_err_set(VV_EIO, "there is no room");
	}
	CHECK(device == 0 && rooms > 0 && size >= 4096);
	*i = (struct vv_cuda_inlet){ calloc(rooms, sizeof(struct vv_device_inlet_buffer)), rooms, calloc(rooms, sizeof(size_t)), 0, rooms, PTHREAD_MUTEX_INITIALIZER };
	for (size_t k = 0; k < rooms; k++) {
		i->room[k] = (struct vv_device_inlet_buffer){ .p = aligned_alloc(256, size), .size = size, .number = k };
		i->queue[k] = k;
	}
	*out = i;
	return 0;
}

/* What the device does with it. */
static bool land(const struct vv_device_inlet_buffer *r)
{
	const struct vv_device_inlet_check *c = vv_device_inlet_checks(r);
	const struct vv_device_inlet_move *m = vv_device_inlet_moves(r);
	uint64_t len = r->end - r->bytes, moved = 0;
	bool differs = false;

	CHECK(r->end <= r->size && r->bytes <= r->end && r->bytes % 16 == 0);
	CHECK((const uint8_t *)(c + r->n_checks) <= r->p + r->bytes && (const uint8_t *)(m + r->n_moves) <= (const uint8_t *)c);
	for (uint32_t i = 0; i < r->n_checks; i++) {
		struct vv_digest got;

		CHECK(c[i].at % VV_DEVICE_INLET_ALIGN == 0 && c[i].len && c[i].len % VV_DEVICE_INLET_UNIT == 0 && (uint64_t)c[i].at + c[i].len <= len);
		vv_digest_xxh3(r->p + r->bytes + c[i].at, c[i].len, &got);
		differs |= !vv_digest_equal(&got, &c[i].want);
	}
	for (uint32_t i = 0; i < r->n_moves; i++) {
		CHECK(m[i].len && m[i].len <= VV_DEVICE_INLET_MOVE && m[i].to == moved); /* one behind the other: every byte once */
		moved += m[i].len;
		if (m[i].from == VV_DEVICE_INLET_ZERO) {
			memset(r->to + m[i].to, 0, m[i].len);
			continue;
		}
		CHECK((uint64_t)m[i].from + m[i].len <= len);
		memcpy(r->to + m[i].to, r->p + r->bytes + m[i].from, m[i].len);
	}
	return differs;
}

static bool allocate_room(struct vv_cuda_inlet *i)
{
	(void)i;
	return false;
}

static int take(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer **out)
{
	static atomic_uint turn;
	struct vv_device_inlet_buffer *r;

	if (failing_room && atomic_fetch_add(&turn, 1) % failing_room == 0)
		return vv_err_set(VV_ENOMEM, "no memory for a room");
	pthread_mutex_lock(&i->lock);
	CHECK(i->queued);
	r = &i->room[i->queue[i->first]];
	i->first = (i->first + 1) % i->n;
	i->queued--;
	pthread_mutex_unlock(&i->lock);
	if (i->n > MANY) /* the threads meet with all rooms taken */
		usleep(300);
	r->differs = r->end && land(r);
	*out = r;
	return 0;
}

static int await(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer **out)
{
	size_t k = 0;

	pthread_mutex_lock(&i->lock);
	while (k < i->queued && !i->room[i->queue[(i->first + k) % i->n]].end)
		k++;
	*out = k < i->queued ? &i->room[i->queue[(i->first + k) % i->n]] : NULL;
	for (; k + 1 < i->queued; k++)
		i->queue[(i->first + k) % i->n] = i->queue[(i->first + k + 1) % i->n];
	i->queued -= *out != NULL;
	pthread_mutex_unlock(&i->lock);
	if (*out)
		(*out)->differs = land(*out);
	return 0;
}

static int send_room(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer *r)
{
	int rc = 0;

	pthread_mutex_lock(&i->lock);
	if (fail_at && --fail_at == 0)
		rc = vv_err_set(VV_EIO, "the device is gone");
	i->queue[(i->first + i->queued++) % i->n] = r->number;
	pthread_mutex_unlock(&i->lock);
	return rc;
}

static void close_inlet(struct vv_cuda_inlet *i, struct vv_pool *pool)
{
	(void)pool;
	if (!i)
		return;
	for (size_t k = 0; k < i->n; k++)
		free(i->room[k].p);
	free(i->room);
	free(i->queue);
	vv_mem_free(i);
}

static int copy(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return 0;
}

int main(void)
{
	static const struct vv_device_inlet_ops inlet = { open_inlet, close_inlet, allocate_room, take, await, send_room };
	static const struct vv_space space = { .name = "played", .copy_in = copy, .copy_out = copy, .inlet = &inlet };
	struct device_load_suite s = { &space, malloc, free, 12, fail_next, fail_open, fail_rooms };

	device_load_suite_run(&s);
	return 0;
}
