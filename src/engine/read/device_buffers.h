/* The rooms that stored bytes go to a device in, with all that is needed to fill them. Memory that a device copies from at full speed takes its time to
 * get, and to give back: a thread of its own gets it while tables are being read and the first rooms are on their way, and it is given back while the
 * program goes on. */
#ifndef VV_ENGINE_READ_DEVICE_BUFFERS_H
#define VV_ENGINE_READ_DEVICE_BUFFERS_H

#include "base/err.h"
#include "engine/read/device_batch.h"
#include "space/space.h"
#include <pthread.h>
#include <stdatomic.h>

enum { VV_DEVICE_BUFFERS_LEAST = 1 << 20 }; /* of a want */

struct vv_device_buffers_sizes { /* how many, and how large */
	uint64_t stripe;  /* bytes of a region that go into a room */
	unsigned room;    /* bytes of a room, for a hundred of a stripe */
	unsigned fillers; /* threads that fill rooms at a time */
	unsigned spare;   /* rooms on their way meanwhile */
};

extern const struct vv_device_buffers_sizes vv_device_buffers_default;

struct vv_device_buffers {
	const struct vv_space *space;
	int device;
	uint64_t len;   /* of the longest want that it is made for; 0: it is not begun */
	uint64_t stripe, room; /* bytes */
	size_t rooms;
	size_t fillers; /* threads that fill them at a time */
	struct vv_pool *pool;
	struct vv_cuda_inlet *inlet;
	struct vv_device_batch **batch; /* per filler; NULL: it has not begun */
	pthread_t thread;        /* that opens it, if there is one */
	bool has_thread, leaving;
	atomic_bool enough;      /* no more rooms are wanted of it */
	struct vv_task task;     /* that closes it */
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool open;               /* or it could not be */
	int rc;
	struct vv_err_state error;
};

/* Begins to open it, for wants of up to `len` bytes; memory: of the device, that may be used. d starts empty, and stays where it is. Nothing is begun where the
 * space takes no rooms, or where the memory is too little. */
void vv_device_buffers_begin(struct vv_device_buffers *d, struct vv_pool *pool, const struct vv_space *space, int device, uint64_t memory, uint64_t len);
/* Benchmarks: other ways than the usual, for buffers that are begun from now on; NULL: the usual. What is begun without them is as it was. */
void vv_device_buffers_set_sizes(const struct vv_device_buffers_sizes *w);
/* Can wants of that length go through it? */
bool vv_device_buffers_fit(const struct vv_device_buffers *d, const struct vv_space *space, int device, uint64_t len);
/* It is open: d->inlet is there. VV_ENOMEM: there was no memory. */
int vv_device_buffers_wait(struct vv_device_buffers *d);
/* What filler i packs with; NULL: no memory. */
struct vv_device_batch *vv_device_buffers_batch(struct vv_device_buffers *d, size_t i);
/* Begins to close it; what is under way arrives first. */
void vv_device_buffers_begin_close(struct vv_device_buffers *d);
/* It is closed, and empty again. */
void vv_device_buffers_finish_close(struct vv_device_buffers *d);

/* What goes into a room of a want of that length at most, of the region. */
uint64_t vv_device_buffers_stripe(const struct vv_device_buffers *d, uint64_t len);

#endif
