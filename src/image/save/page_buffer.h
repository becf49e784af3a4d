/* Memory for pages, and which bytes of a file of pages lie where in it. */
#ifndef VV_IMAGE_ROOM_H
#define VV_IMAGE_ROOM_H

#include <stddef.h>
#include <stdint.h>

struct vv_room_gap { /* that is free */
	size_t from, n;
};

struct vv_room {
	uint8_t *pages;
	size_t cap;
	struct vv_room_gap *gap; /* one at least; the last is used first */
	size_t n_gaps, gaps_cap;
};

struct vv_room_stretch { /* of a file */
	uint64_t at;
	size_t from, n;
};

struct vv_room_file {
	struct vv_room_stretch *stretch; /* ascending, one behind the other */
	size_t n, cap;
};

/* So many bytes, of which `expected` are there before they are touched. */
int vv_room_open(struct vv_room *r, size_t bytes, size_t expected);
void vv_room_close(struct vv_room *r); /* what is empty is fine */
/* All is free but the first bytes. */
void vv_room_reset(struct vv_room *r, size_t used);
/* So much is free again. */
int vv_room_give(struct vv_room *r, size_t from, size_t n);
/* Where there is some left; n = 0: nowhere. */
const struct vv_room_gap *vv_room_find(struct vv_room *r);
/* The first n bytes of what was found. */
void vv_room_take(struct vv_room *r, size_t n);

/* The next n bytes of a file, which has `at` bytes so far, are in there. */
int vv_room_add(struct vv_room_file *f, uint64_t at, size_t from, size_t n);
void vv_room_file_fini(struct vv_room_file *f);

#endif
