/* Stretches of memory, noted one by one, of which only what lies in one stretch is of interest. */
#ifndef VV_TRACK_PIECES_H
#define VV_TRACK_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_pieces {
	uintptr_t lo, hi; /* of interest */
	size_t n, cap;
	struct vv_pieces_part {
		uintptr_t lo, hi;
	} *at; /* from malloc */
	bool failed; /* there was no memory for one of them */
};

/* arg: the pieces. */
void vv_pieces_note(void *arg, uintptr_t lo, uintptr_t hi);
/* Sorted, disjoint, not even touching. */
void vv_pieces_tidy(struct vv_pieces *p);

#endif
