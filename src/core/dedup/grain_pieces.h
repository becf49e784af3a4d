/* The pieces of the methods basic, list and run (docs/dedup.md, section 3), from what was found out about each grain of a slice that has
 * changed. */
#ifndef VV_CORE_DEDUP_GRAIN_PIECES_H
#define VV_CORE_DEDUP_GRAIN_PIECES_H

#include "core/dedup/grain.h"

struct vv_find { /* a grain that has changed */
	uint32_t at;   /* its number */
	uint32_t back; /* so many before it is the nearest of the slice that has changed and has the same digest; 0: none, or zero */
	uint64_t from; /* ZERO, NEW or COPY, as in vv_piece */
};

/* Of n finds of one slice, ascending; room for n pieces, of which there may be fewer: returns how many. */
size_t vv_grain_pieces_list(const struct vv_find *f, size_t n, struct vv_piece *out);
size_t vv_grain_pieces_run(const struct vv_find *f, size_t n, struct vv_piece *out);

#endif
