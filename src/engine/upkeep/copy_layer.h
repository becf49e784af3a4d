/* Copies one layer to another store. Every byte is checked on the way. */
#ifndef VV_ENGINE_UPKEEP_COPY_LAYER_H
#define VV_ENGINE_UPKEEP_COPY_LAYER_H

#include "core/format/digest.h"
#include "engine/upkeep/reachable.h"

struct vv_layer_file;

struct vv_layer_copy {
	const struct vv_lineage *from, *to;
	const struct vv_reachable_layer *layer; /* its needs are sorted */
	/* the digest of the head by the commit record; NULL: the epoch has no record */
	const struct vv_digest *head;
	bool exists; /* the destination lists a layer of this name */
	bool dry_run;
	/* Called with the bytes of each step; any thread. An error ends the copy. */
	int (*step)(void *arg, uint64_t bytes);
	void *arg;
};

/* *copied: the bytes of the new object; 0 if the destination has this layer, with all needed bytes.
 * VV_EDAMAGED names the damage of the source. VV_EMISMATCH: the destination has another layer of
 * this name. */
int vv_copy_layer_run(const struct vv_layer_copy *c, uint64_t *copied);
/* Has the layer all these bytes? Its table of blocks is loaded. */
bool vv_copy_layer_covers(const struct vv_layer_file *f, const struct vv_extents *need);

#endif
