/* What a stretch of a region needs of its layers, packed into a room for a space that checks and places by itself: every chunk that has
 * a part of it once, as it is stored, read in the order of the files. */
#ifndef VV_ENGINE_CRATE_H
#define VV_ENGINE_CRATE_H

#include "engine/read/restore.h"
#include "engine/read/open_layers.h"
#include "space/space.h"

struct vv_crate; /* what packing needs beside the room */

enum { VV_CRATE_MAX = 64 << 20 }; /* of a room */

/* For rooms of that size. */
int vv_crate_new(size_t room, struct vv_crate **out);
void vv_crate_free(struct vv_crate *c); /* NULL is fine */
/* The bytes at..end of a want's region. The layers have their digests. False: it is for the host, because something is coded, has no digests, cannot be read
 * or is too much for the room; that is no error yet. */
bool vv_crate_pack(struct vv_crate *c, const struct vv_warm *w, const struct vv_want *want, uint64_t at, uint64_t end, struct vv_inlet_room *r);

#endif
