/* The rooms for transfers of stored bytes to a device, with everything needed to fill them. Memory
 * that a device copies from at full speed is slow to get and to give back. A thread gets it while
 * tables are read and the first rooms are in transit. It is given back while the program
 * continues. */
#ifndef VV_ENGINE_READ_DEVICE_BUFFERS_H
#define VV_ENGINE_READ_DEVICE_BUFFERS_H

#include "base/err.h"
#include "engine/read/device_batch.h"
#include "space/space.h"
#include <pthread.h>
#include <stdatomic.h>

enum { VV_DEVICE_BUFFERS_LEAST = 1 << 20 }; /* least bytes of a want */

struct vv_device_buffers_sizes { /* number and size */
	uint64_t stripe;  /* bytes of a region that go into a room */
	unsigned room;    /* bytes of a room, in percent of a stripe */
	unsigned fillers; /* number of threads that fill rooms at the same time */
	unsigned spare;   /* rooms in transit meanwhile */
};

extern const struct vv_device_buffers_sizes vv_device_buffers_default;

struct vv_device_buffers {
	const struct vv_space *space;
	int device;
	uint64_t len;   /* of all wants that it is made for; 0: not begun */
	uint64_t stripe, room; /* bytes */
	size_t rooms;
	size_t fillers; /* number of threads that fill them at the same time */
	struct vv_pool *pool;
	struct vv_cuda_inlet *inlet;
	struct vv_device_batch **batch; /* per filler; NULL: the filler has not begun */
	pthread_t thread;        /* the thread that opens it, if there is one */
	bool has_thread, leaving;
	atomic_bool enough;      /* no more rooms are needed */
	struct vv_task task;     /* the task that closes it */
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool open;               /* opening has ended, even if it failed */
	int rc;
	struct vv_err_state error;
};

/* Begins to open it, for wants of up to `len` bytes together; memory: permitted device memory. d
 * starts empty, and must not move. Nothing is begun where the space takes no rooms, or with too
 * little memory. */
void vv_device_buffers_begin(struct vv_device_buffers *d, struct vv_pool *pool, const struct vv_space *space, int device, uint64_t memory, uint64_t len);
/* For benchmarks: other sizes for buffers that are begun from now on; NULL: the default ones.
 * Buffers begun before are unchanged. */
void vv_device_buffers_set_sizes(const struct vv_device_buffers_sizes *w);
/* Can wants of that length together use it? */
bool vv_device_buffers_fit(const struct vv_device_buffers *d, const struct vv_space *space, int device, uint64_t len);
/* Waits until it is open: d->inlet is set. VV_ENOMEM: there was no memory. */
int vv_device_buffers_wait(struct vv_device_buffers *d);
/* Working memory for packing by filler i; NULL: no memory. */
struct vv_device_batch *vv_device_buffers_batch(struct vv_device_buffers *d, size_t i);
/* Begins to close it in the background; transfers in progress end first. */
void vv_device_buffers_begin_close(struct vv_device_buffers *d);
/* Waits until it is closed, and empty again. */
void vv_device_buffers_finish_close(struct vv_device_buffers *d);

/* The bytes of a region that go into one room, for wants of that length together. */
uint64_t vv_device_buffers_stripe(const struct vv_device_buffers *d, uint64_t len);

#endif
