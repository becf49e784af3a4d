/* Transfers stored bytes into a space that checks and places them itself. The bytes travel in rooms
 * of host memory: some are filled while others are in transit. */
#ifndef VV_SPACE_DEVICE_INLET_H
#define VV_SPACE_DEVICE_INLET_H

#include "base/pool.h"
#include "core/format/digest.h"

#define VV_DEVICE_INLET_ZERO UINT32_MAX
enum { VV_DEVICE_INLET_MOVE = 8 << 10, VV_DEVICE_INLET_ALIGN = 16, VV_DEVICE_INLET_UNIT = 512 };

struct vv_device_inlet_move { /* of at most VV_DEVICE_INLET_MOVE bytes */
	uint32_t from; /* offset in the bytes of the room, or VV_DEVICE_INLET_ZERO: zeros */
	uint32_t to;   /* offset from the room's `to` */
	uint32_t len;
};

/* The expected XXH3 digest of bytes of the room. at: a multiple of VV_DEVICE_INLET_ALIGN; len: a
 * multiple of VV_DEVICE_INLET_UNIT. */
struct vv_device_inlet_check {
	struct vv_digest want;
	uint32_t at, len;
};

/* Contains in this order: moves, checks, and from `bytes` on the bytes that they refer to. */
struct vv_device_inlet_buffer {
	uint8_t *p;
	size_t size;
	size_t number; /* index in the inlet's rooms */
	/* Set by the thread that takes the room: */
	uint8_t *to;
	uint32_t n_moves, n_checks;
	uint32_t bytes, end; /* end: of all content; 0: empty */
	size_t tag;
	/* When it is taken again: some bytes did not match the checks. They are in their places
	 * nevertheless. */
	bool differs;
};

static inline struct vv_device_inlet_move *vv_device_inlet_moves(const struct vv_device_inlet_buffer *r)
{
	return (struct vv_device_inlet_move *)r->p;
}

/* Valid once n_moves is known. */
static inline struct vv_device_inlet_check *vv_device_inlet_checks(const struct vv_device_inlet_buffer *r)
{
	return (struct vv_device_inlet_check *)(r->p + ((size_t)r->n_moves * sizeof(struct vv_device_inlet_move) + 7) / 8 * 8);
}

struct vv_cuda_inlet;

struct vv_device_inlet_ops {
	/* Makes rooms of that size, whole pages, and as much device memory. VV_ENOMEM: there is
	 * none. A room's own memory is slow to get: `allocate` gets it, or else `take`. */
	int (*open)(int device, size_t size, size_t rooms, struct vv_cuda_inlet **out);
	/* waits for transfers in progress; NULL is fine */
	void (*close)(struct vv_cuda_inlet *i, struct vv_pool *pool);
	/* Called by any thread: makes one more room ready. False: all are ready, or there is no
	 * memory. */
	bool (*allocate)(struct vv_cuda_inlet *i);
	/* Called by any thread. Returns an empty room, whose `end` is 0, or the first sent room
	 * once its bytes are in place. At most one room to a thread, and as many threads as rooms.
	 * VV_ENOMEM: there is no memory for another room. */
	int (*take)(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer **out);
	/* The same, of sent rooms only; NULL: no transfer is in progress. */
	int (*await)(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer **out);
	/* Gives the room back, and begins the transfer if the room is not empty. */
	int (*send)(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer *r);
};

#endif
