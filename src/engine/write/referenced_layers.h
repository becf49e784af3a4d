/* The layers that a restart from the newest epoch reads: the chain of its parents and all layers of
 * their runs. They may be removed during a session: by hand, or by a site that purges old files
 * from scratch space, oldest first. An epoch that refers to a removed layer would be reported
 * durable and could not be restored. So each layer is checked before the commit record is written:
 * does it exist, and is it as long as before? In an object store, where each check is a request,
 * none are made. */
#ifndef VV_ENGINE_WRITE_REFERENCED_LAYERS_H
#define VV_ENGINE_WRITE_REFERENCED_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct varve;
struct vv_layer_writer;

struct vv_referenced_layers_layer {
	uint64_t layer;
	uint64_t size; /* size at the last look; 0: not known yet */
	bool is_needed;    /* the newest epoch refers to it */
	bool is_needed_next;    /* the epoch in progress would refer to it */
};

struct vv_referenced_layers { /* starts empty */
	/* ascending; includes layers not needed now, for their sizes */
	struct vv_referenced_layers_layer *v;
	size_t n, cap;
	size_t next_check; /* where checking continues, if checking all takes too long */
	bool lost;   /* a layer is gone */
};

void vv_referenced_layers_fini(struct vv_referenced_layers *f);
/* The session continues an epoch that it has not written, and has its table. */
int vv_referenced_layers_load(struct varve *v);
/* Before the layer is finished: reads the eras of all epochs that it refers to, as far as they can
 * be read. */
int vv_referenced_layers_read_eras(struct vv_layer_writer *p);
/* The layer is stored. VV_EDAMAGED: a layer that it refers to is gone, or has become shorter. */
int vv_referenced_layers_check(struct vv_layer_writer *p);
/* The checked epoch is committed. */
void vv_referenced_layers_accept(struct vv_layer_writer *p);
/* After gc: removed layers were not needed, and layers may be shorter. */
void vv_referenced_layers_after_gc(struct varve *v);

#endif
