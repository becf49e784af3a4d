/* Stretches of memory, noted one by one, of which only what lies in one stretch is of interest. */
#ifndef VV_TRACK_ADDRESS_RANGES_H
#define VV_TRACK_ADDRESS_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_address_ranges {
	uintptr_t lo, hi; /* of interest */
	size_t n, cap;
	struct vv_address_ranges_part {
		uintptr_t lo, hi;
	} *at; /* from malloc */
	bool failed; /* there was no memory for one of them */
};

/* arg: the pieces. */
void vv_address_ranges_note(void *arg, uintptr_t lo, uintptr_t hi);
/* Sorted, disjoint, not even touching. */
void vv_address_ranges_tidy(struct vv_address_ranges *p);

#endif
