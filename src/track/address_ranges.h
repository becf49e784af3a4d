/* A list of memory ranges, each clipped to one range of interest. */
#ifndef VV_TRACK_ADDRESS_RANGES_H
#define VV_TRACK_ADDRESS_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_address_ranges {
	uintptr_t lo, hi; /* the range of interest */
	size_t n, cap;
	struct vv_address_ranges_part {
		uintptr_t lo, hi;
	} *at; /* from malloc */
	bool failed; /* there was no memory for a range */
};

/* Adds a range. arg: the struct vv_address_ranges. */
void vv_address_ranges_note(void *arg, uintptr_t lo, uintptr_t hi);
/* Sorts the ranges and joins those that overlap or touch. */
void vv_address_ranges_tidy(struct vv_address_ranges *p);

#endif
