/* The list of a program's objects at its first checkpoint: address and size of each. A restarted
 * program must have the same objects. */
#ifndef VV_PRELOAD_CENSUS_H
#define VV_PRELOAD_CENSUS_H

#include <stddef.h>
#include <stdint.h>

/* In the order of addresses. An object has its distance from the previous one, in grains, as a
 * varint (7 bits per byte, little end first), and its mark. */
struct vv_census {
	uint8_t *p;
	size_t n, cap;
	uint64_t objects;
	uint64_t last; /* address */
	int rc;
};

void vv_census_fini(struct vv_census *c);
/* `arg` is a census; its rc becomes VV_ENOMEM if memory is exhausted. */
void vv_census_add(void *arg, uintptr_t at, uint8_t mark);

struct vv_census_cursor {
	const uint8_t *p, *end;
	uint64_t at;
	uint8_t mark;
};

/* Reads the next object and returns 1; 0: the end; < 0: this is not a census. */
int vv_census_next(struct vv_census_cursor *c);
/* Returns 0 if they are equal; VV_EMISMATCH, with the differences. */
int vv_census_compare(const struct vv_census *now, const struct vv_census *then);

#endif
