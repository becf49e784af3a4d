/* Packs the chunks of a stretch of a region into a room, for a space that checks and places them
 * itself. Every needed chunk is in it once, read in the order of the files. */
#ifndef VV_ENGINE_READ_DEVICE_BATCH_H
#define VV_ENGINE_READ_DEVICE_BATCH_H

#include "engine/read/restore.h"
#include "engine/read/decoded_blocks.h"
#include "engine/read/open_layers.h"
#include "space/space.h"

struct vv_device_batch; /* working memory of packing */

enum { VV_DEVICE_BATCH_MAX = 64 << 20 }; /* limit of a room in bytes */

/* For rooms of that size. */
int vv_device_batch_new(size_t room, struct vv_device_batch **out);
void vv_device_batch_free(struct vv_device_batch *c); /* NULL is fine */
/* Packs the bytes at..end of a want's region. The digests of the layers are loaded. False: the host
 * must read them. They are without digests, unreadable or too large for the room; that is no error
 * yet. */
bool vv_device_batch_pack(struct vv_device_batch *c, const struct vv_open_layers *w, struct vv_decoded_blocks *decoded, const struct vv_want *want,
			  uint64_t at, uint64_t end, struct vv_device_inlet_buffer *r);

#endif
