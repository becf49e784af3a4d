/* The pieces of the methods basic, list and run (docs/dedup.md, section 3). They are made from the
 * finds, one for each changed grain of a slice. */
#ifndef VV_CORE_DEDUP_GRAIN_PIECES_H
#define VV_CORE_DEDUP_GRAIN_PIECES_H

#include "core/dedup/grain.h"

struct vv_find { /* a grain that has changed */
	uint32_t at;   /* its number */
	/* distance to the nearest earlier changed grain of the slice with the same digest; 0: none,
	 * or zero */
	uint32_t back;
	uint64_t from; /* ZERO, NEW or COPY, as in vv_piece */
};

/* Takes n finds of one slice, ascending; `out` has room for n pieces. Returns the number of pieces,
 * which may be smaller. */
size_t vv_grain_pieces_list(const struct vv_find *f, size_t n, struct vv_piece *out);
size_t vv_grain_pieces_run(const struct vv_find *f, size_t n, struct vv_piece *out);

#endif
