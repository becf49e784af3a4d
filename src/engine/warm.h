/* The part of a restore that lies in the page cache. Pages that were changed at random lie scattered over many layers; they
 * are copied out of the mapped files in the order of their destination, whose pages are then met one after another; what is near
 * there is mostly near in its layer, too. Block by block, as bytes from a disk are best read, it is the destination
 * that is scattered, and a copy costs twice as much. */
#ifndef VV_ENGINE_WARM_H
#define VV_ENGINE_WARM_H

#include "engine/layerio.h"
#include "engine/restore.h"
#include "engine/stretch.h"
#include <stdatomic.h>

enum { VV_WARM_LAYERS = 128, VV_WARM_SLOTS = 4 * VV_WARM_LAYERS };

struct vv_warm { /* layers that are open together */
	size_t n;
	uint64_t layer[VV_WARM_LAYERS];
	struct vv_layerio *file[VV_WARM_LAYERS];
	atomic_uchar *window[VV_WARM_LAYERS]; /* what is known of each stretch of the file; NULL: it is not mapped */
	atomic_uchar *chunk[VV_WARM_LAYERS];  /* and of each chunk that has a digest; NULL: there are none */
	struct vv_warm_lane *lane[VV_WARM_LAYERS]; /* all of a layer that many runs refer to; NULL: they are looked for one by one */
	size_t n_lanes[VV_WARM_LAYERS];
	bool all;                             /* of the layers that hold what is wanted */
	uint8_t slot[VV_WARM_SLOTS];          /* by layer: 1 + its number */
};

_Static_assert(VV_WARM_LAYERS < UINT8_MAX, "numbers fit the slots");

/* The file becomes the warm's. What is opened is closed by fini. */
int vv_warm_open(struct vv_warm *w, size_t i, const struct vv_lineage *lin, uint64_t layer, size_t n_runs);
void vv_warm_close(struct vv_warm *w, size_t i);
/* Once all are open: layers are found by their number. */
void vv_warm_number(struct vv_warm *w);
/* Number of the layer, or w->n if it is not open. */
size_t vv_warm_find(const struct vv_warm *w, uint64_t layer);

/* The pieces of a want that begin in at..end (offsets in the region), and zeros there if `zeros`. What is not in the page cache,
 * is coded, or has no digests that fit, is left, in the order of the destination; `left` starts empty. *got: bytes of
 * layers that were copied or left; over all parts of a want that is all that it has in these layers. */
int vv_warm_read(const struct vv_warm *w, const struct vv_want *want, uint64_t at, uint64_t end, bool zeros,
		 struct vv_stretches *left, uint64_t *got);

/* The part of a region, of n tables that lie one over the other, newest first; its runs are not looked at. All layers must be open (w->all). false: not all of it
 * was copied, for whatever reason; the part holds anything then. *got: bytes of layers that were copied, those that others came over included. */
bool vv_warm_replay(const struct vv_warm *w, const struct vv_runs *const *table, size_t n, const struct vv_want *part, uint64_t *got);

#endif
