/* The way of stored bytes into a space that checks them and puts them in their places itself: in rooms of the host's memory, of which some are filled
 * while others are on their way. */
#ifndef VV_SPACE_DEVICE_INLET_H
#define VV_SPACE_DEVICE_INLET_H

#include "base/pool.h"
#include "core/format/digest.h"

#define VV_DEVICE_INLET_ZERO UINT32_MAX
enum { VV_DEVICE_INLET_MOVE = 8 << 10, VV_DEVICE_INLET_ALIGN = 16, VV_DEVICE_INLET_UNIT = 512 };

struct vv_device_inlet_move { /* of at most VV_DEVICE_INLET_MOVE bytes */
	uint32_t from; /* in the bytes of the room, or VV_DEVICE_INLET_ZERO: they are zeros */
	uint32_t to;   /* from the room's `to` on */
	uint32_t len;
};

struct vv_device_inlet_check { /* at: a multiple of VV_DEVICE_INLET_ALIGN, len: of VV_DEVICE_INLET_UNIT; what XXH3 must make of these bytes of the room */
	struct vv_digest want;
	uint32_t at, len;
};

struct vv_device_inlet_buffer { /* has, one behind the other: moves, checks, and from `bytes` on the bytes that they speak of */
	uint8_t *p;
	size_t size;
	size_t number; /* of the inlet's rooms */
	/* Whoever takes it says: */
	uint8_t *to;
	uint32_t n_moves, n_checks;
	uint32_t bytes, end; /* end: of all that is in it; 0: nothing is */
	size_t tag;
	bool differs; /* when it is taken again: some bytes were not what the checks said; they are in their places nevertheless */
};

static inline struct vv_device_inlet_move *vv_device_inlet_moves(const struct vv_device_inlet_buffer *r)
{
	return (struct vv_device_inlet_move *)r->p;
}

/* Once n_moves is known. */
static inline struct vv_device_inlet_check *vv_device_inlet_checks(const struct vv_device_inlet_buffer *r)
{
	return (struct vv_device_inlet_check *)(r->p + ((size_t)r->n_moves * sizeof(struct vv_device_inlet_move) + 7) / 8 * 8);
}

struct vv_cuda_inlet;

struct vv_device_inlet_ops {
	/* Rooms of that size, whole pages, and as much memory of the device. VV_ENOMEM: it is not there. The rooms' own memory takes its time to get: it
	 * comes when one is furnished, or taken before it was. */
	int (*open)(int device, size_t size, size_t rooms, struct vv_cuda_inlet **out);
	void (*close)(struct vv_cuda_inlet *i, struct vv_pool *pool); /* what is under way arrives first; NULL is fine */
	/* By any thread: one room more is ready. False: all are, or there is no memory. */
	bool (*allocate)(struct vv_cuda_inlet *i);
	/* By any thread: an empty room, whose `end` is 0, or the one that was sent first, as soon as its bytes are in place. As many threads as there are rooms
	 * may each have one. VV_ENOMEM: there is no memory for another one. */
	int (*take)(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer **out);
	/* The same, of those that were sent; NULL: nothing is under way any more. */
	int (*await)(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer **out);
	/* It goes back, and if there is something in it, on its way. */
	int (*send)(struct vv_cuda_inlet *i, struct vv_device_inlet_buffer *r);
};

#endif
