/* Reads into memory that is not the host's: through buffers that are copied while the next ones are
 * filled. */
#ifndef VV_ENGINE_READ_DEVICE_RESTORE_H
#define VV_ENGINE_READ_DEVICE_RESTORE_H

#include "engine/read/device_buffers.h"
#include "engine/read/restore.h"
#include "engine/context.h"

/* The space of the memory at p, if it is not the host's; otherwise NULL. */
const struct vv_space *vv_device_restore_space(const void *p, size_t len, int *device);

/* These regions are about to be read: devices prepare for it. */
void vv_device_restore_expect(struct vv_context *ctx, struct vv_device_buffers *buffers, struct vv_region *const *region, size_t n);
/* The function vv_restore_read for wants in any memory: whole regions of the table, by name. The
 * table is complete, but need not be merged, and may not be afterwards. The buffers start empty, or
 * expect these wants; afterwards the caller closes them. */
int vv_device_restore_read(struct vv_context *ctx, struct vv_device_buffers *buffers, struct vv_run_table *t, const struct vv_want *want, size_t n);

/* Where many ranks read together, everything is read before any is copied. `host` gives host memory
 * to wants in other memory. */
struct vv_device_restore {
	struct vv_want *want; /* the caller's */
	size_t n;
	uint8_t **to;         /* their destinations; NULL: host memory */
};

int vv_device_restore_begin(struct vv_device_restore *b, struct vv_want *want, size_t n);
/* Copies, if rc is 0, and gives the memory back. */
int vv_device_restore_end(struct vv_device_restore *b, int rc);

#endif
