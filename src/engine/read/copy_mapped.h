/* The part of a restore that is copied from mapped layers: it lies in the page cache, or will when it is touched (engine/read/open_layers.h). Pages that were changed at random lie scattered over many layers; they
 * are copied out of the mapped files in the order of their destination, whose pages are then met one after another; what is near
 * there is mostly near in its layer, too. Block by block, as bytes from a disk are best read, it is the destination
 * that is scattered, and a copy costs twice as much. */
#ifndef VV_ENGINE_READ_COPY_MAPPED_H
#define VV_ENGINE_READ_COPY_MAPPED_H

#include "engine/read/restore.h"
#include "engine/read/pending.h"
#include "engine/read/open_layers.h"

/* The pieces of a want that begin in at..end (offsets in the region), and zeros there if `zeros`. What is not in the page cache,
 * is coded, or has no digests that fit, is left, in the order of the destination; `left` starts empty. *got: bytes of
 * layers that were copied or left; over all parts of a want that is all that it has in these layers. */
int vv_copy_mapped_read(const struct vv_open_layers *w, const struct vv_want *want, uint64_t at, uint64_t end, bool zeros,
		 struct vv_pending_list *left, uint64_t *got);

/* The part of a region, of n tables that lie one over the other, newest first; its runs are not looked at. All layers must be open (w->all). false: not all of it
 * was copied, for whatever reason; the part holds anything then. *got: bytes of layers that were copied, those that others came over included. */
bool vv_copy_mapped_replay(const struct vv_open_layers *w, const struct vv_runs *const *table, size_t n, const struct vv_want *part, uint64_t *got);

#endif
