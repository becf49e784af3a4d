/* What is still to be read, and where it goes. */
#ifndef VV_ENGINE_READ_PENDING_H
#define VV_ENGINE_READ_PENDING_H

#include <stddef.h>
#include <stdint.h>

struct vv_pending_piece { /* of a layer, and where it goes; layer 0: zeros */
	uint64_t layer;
	uint64_t pos;
	uint64_t len;
	uint8_t *to;
};

struct vv_pending_list {
	struct vv_pending_piece *v;
	size_t n, cap;
};

/* One that goes on where the last one ends, on both sides, makes that longer. */
int vv_pending_add(struct vv_pending_list *p, struct vv_pending_piece piece);
/* By layer; those of one layer stay in their order. */
int vv_pending_sort(struct vv_pending_list *p);

#endif
