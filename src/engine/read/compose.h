/* The place of each byte of one array, composed from the runs of arrays that overlap it. For
 * example, a part of a global array is composed from the parts that other ranks have stored. */
#ifndef VV_ENGINE_READ_COMPOSE_H
#define VV_ENGINE_READ_COMPOSE_H

#include "core/format/distribution.h"
#include "engine/read/restore.h"

struct vv_compose_source { /* an array in C order, that is stored */
	struct vv_box memory;   /* its elements */
	struct vv_box provided; /* those that may be taken from it; no other source provides them */
	const struct vv_runs *runs;
	size_t near; /* run that was used last */
};

struct vv_composition {
	struct vv_box memory;    /* the elements of the destination, in C order */
	uint64_t element;        /* bytes */
	struct vv_compose_source *source;
	size_t n;
	unsigned step;           /* the dimension that is cut into slices, and those before it; */
	int64_t slice;           /* 0: the destination is one slice */
	int64_t next[VV_MAX_DIMS];
	bool done;
};

struct vv_composed { /* wants of host memory, and their runs */
	struct vv_runs runs;
	struct vv_want *want;
	size_t n, cap;
	uint64_t base; /* of the next destination in `runs` */
};

/* Begins a composition that has its boxes, element, source and n. Changes the boxes. */
int vv_compose_begin(struct vv_composition *c);
/* Adds the runs of the next slice of the destination, and its wants if it lies at `to` (NULL: there
 * is no memory). Sets c->done with the last slice. A slice has about 2^20 runs, where sources have
 * few. */
int vv_compose_slice(struct vv_composition *c, uint8_t *to, const char *name, struct vv_composed *out);
/* The wants may be read from here until the next slice is added. */
struct vv_want *vv_compose_wants(struct vv_composed *c);
void vv_compose_clear(struct vv_composed *c); /* keeps its memory */
void vv_compose_fini(struct vv_composed *c);

#endif
