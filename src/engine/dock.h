/* The rooms that stored bytes go to a device in, with all that is needed to fill them. Memory that a device copies from at full speed takes its time to
 * get: it is got once for all that is read, and while tables are being read. */
#ifndef VV_ENGINE_DOCK_H
#define VV_ENGINE_DOCK_H

#include "base/err.h"
#include "engine/crate.h"
#include "space/space.h"

enum { VV_DOCK_LEAST = 1 << 20 }; /* of a want */

struct vv_dock {
	const struct vv_space *space;
	int device;
	uint64_t len;   /* of the longest want that it is made for; 0: it is not begun */
	uint64_t room;  /* bytes */
	size_t rooms;
	struct vv_pool *pool;
	struct vv_inlet *inlet;
	struct vv_crate **crate; /* per room */
	struct vv_task task;
	enum { VV_DOCK_QUIET, VV_DOCK_OPENING, VV_DOCK_CLOSING } state;
	int rc;
	struct vv_err_state error;
};

/* Begins to open it, for wants of up to `len` bytes; memory: of the device, that may be used. d starts empty, and stays where it is. Nothing is begun where the
 * space takes no rooms, or where the memory is too little. */
void vv_dock_begin(struct vv_dock *d, struct vv_pool *pool, const struct vv_space *space, int device, uint64_t memory, uint64_t len);
/* Can wants of that length go through it? */
bool vv_dock_serves(const struct vv_dock *d, const struct vv_space *space, int device, uint64_t len);
/* It is open: d->inlet is there. VV_ENOMEM: there was no memory. */
int vv_dock_wait(struct vv_dock *d);
/* Begins to close it; what is under way arrives first. */
void vv_dock_leave(struct vv_dock *d);
/* It is closed, and empty again. */
void vv_dock_end(struct vv_dock *d);

/* What goes into a room of a want of that length at most, of the region: half of what there is space for. */
uint64_t vv_dock_stripe(const struct vv_dock *d, uint64_t len);

#endif
