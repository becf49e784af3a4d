/* What the newest epoch stands on: the layers that a restart from it reads, the chain of its parents and whatever their runs name. Somebody may remove them under a
 * session that runs: by hand, or as a site purges old files from its scratch space, where the oldest layers go first. An epoch that refers to what is gone would be
 * called durable and could not be restored. So each of them is looked for before the commit record is written: is it there, and as long as it was? In a store of objects, where that is a request each, nothing is looked for. */
#ifndef VV_ENGINE_WRITE_REFERENCED_LAYERS_H
#define VV_ENGINE_WRITE_REFERENCED_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct varve;
struct vv_layer_writer;

struct vv_referenced_layers_layer {
	uint64_t layer;
	uint64_t size; /* that it had; 0: not known yet */
	bool is_needed;    /* the newest epoch stands on it */
	bool is_needed_next;    /* the epoch under way would */
};

struct vv_referenced_layers { /* starts empty */
	struct vv_referenced_layers_layer *v; /* ascending; also layers that hold nothing now, because of their sizes */
	size_t n, cap;
	size_t next_check; /* where looking goes on, if it takes too long to look at all */
	bool lost;   /* something is gone */
};

void vv_referenced_layers_fini(struct vv_referenced_layers *f);
/* The session continues an epoch that it has not laid down, and has its table. */
int vv_referenced_layers_load(struct varve *v);
/* Before the layer is finished: what era each epoch belongs to that it refers to, as far as that can be learned. */
int vv_referenced_layers_read_eras(struct vv_layer_writer *p);
/* The layer is stored. VV_EDAMAGED: something that it refers to is gone, or has become shorter. */
int vv_referenced_layers_check(struct vv_layer_writer *p);
/* The epoch, which was checked, counts. */
void vv_referenced_layers_accept(struct vv_layer_writer *p);
/* gc has been at work: what it has removed was not needed, and layers may be shorter. */
void vv_referenced_layers_after_gc(struct varve *v);

#endif
