/* The part of a restore that is copied from mapped layers: bytes that are cached, or become so when
 * touched (engine/read/open_layers.h).
 * Randomly changed pages are scattered over many layers. They are copied from the mapped files in
 * the order of their destination, so that its pages are used one after another. Neighbours there
 * are mostly neighbours in their layer, too. Block by block is best for reading a disk. But then
 * the destination is scattered, and a copy is twice as expensive. */
#ifndef VV_ENGINE_READ_COPY_MAPPED_H
#define VV_ENGINE_READ_COPY_MAPPED_H

#include "engine/read/restore.h"
#include "engine/read/pending.h"
#include "engine/read/open_layers.h"

/* Copies the pieces of a want that begin in at..end (offsets in the region), and zeros there if
 * `zeros`. Uncached and compressed bytes, and those without matching digests, are left, in the
 * order of the destination. The list `left` starts empty. Sets *got to the bytes of layers that
 * were copied or left. The sum over all parts of a want is all of its bytes in these layers. */
int vv_copy_mapped_read(const struct vv_open_layers *w, const struct vv_want *want, uint64_t at, uint64_t end, bool zeros,
		 struct vv_pending_list *left, uint64_t *got);

/* Fills the part of a region from n overlaid tables, newest first; the part's own runs are not
 * used. All layers must be open (w->all). Returns false if not all of it was copied, for whatever
 * reason; the part's content is then undefined. Sets *got to the bytes of layers that were copied,
 * including overwritten ones. */
bool vv_copy_mapped_replay(const struct vv_open_layers *w, const struct vv_runs *const *table, size_t n, const struct vv_want *part, uint64_t *got);

#endif
