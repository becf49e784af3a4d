/* What a program had allocated when it came to its first checkpoint: where each object lay, and how large it was. A program that is
 * started again must have the same. */
#ifndef VV_PRELOAD_CENSUS_H
#define VV_PRELOAD_CENSUS_H

#include <stddef.h>
#include <stdint.h>

/* In the order of addresses; of each object the distance from the one before, in grains, as bytes of 7 bits (little end first), and its mark. */
struct vv_census {
	uint8_t *p;
	size_t n, cap;
	uint64_t objects;
	uint64_t last; /* address */
	int rc;
};

void vv_census_fini(struct vv_census *c);
/* `arg` is a census; rc tells if memory did not suffice. */
void vv_census_add(void *arg, uintptr_t at, uint8_t mark);

struct vv_census_cursor {
	const uint8_t *p, *end;
	uint64_t at;
	uint8_t mark;
};

/* The next object: 1; 0 at the end; < 0 if this is no census. */
int vv_census_next(struct vv_census_cursor *c);
/* 0 if they are the same; VV_EMISMATCH, saying what is not. */
int vv_census_compare(const struct vv_census *now, const struct vv_census *then);

#endif
