/* The pieces still to be read, and their destinations. */
#ifndef VV_ENGINE_READ_PENDING_H
#define VV_ENGINE_READ_PENDING_H

#include <stddef.h>
#include <stdint.h>

struct vv_pending_piece { /* of a layer, and its destination; layer 0: zeros */
	uint64_t layer;
	uint64_t pos;
	uint64_t len;
	uint8_t *to;
};

struct vv_pending_list {
	struct vv_pending_piece *v;
	size_t n, cap;
};

/* A piece that continues the last one, on both sides, extends it. */
int vv_pending_add(struct vv_pending_list *p, struct vv_pending_piece piece);
/* Sorts by layer; pieces of one layer keep their order. */
int vv_pending_sort(struct vv_pending_list *p);

#endif
