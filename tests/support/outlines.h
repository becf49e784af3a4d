/* What readers say of bytes in memory, and whether it is sound, however the bytes were damaged. */
#ifndef VV_TEST_OUTLINES_H
#define VV_TEST_OUTLINES_H

#include "reader/reader.h"

/* Bytes as a file. */
struct outlines_bytes {
	const uint8_t *p;
	size_t n;
	uint64_t reads, fail_at; /* fail_at: the read with this number fails, from 1 on; 0: none does */
};
struct vv_reader_file outlines_file(struct outlines_bytes *b, const char *name);

/* The outline, which is sound and of this format. */
struct vv_outline outlines_get(const void *p, size_t n, const char *name, const char *format);
/* The variable of this name; ends the program if there is none. Its number into *number unless that is NULL. */
const struct vv_variable *outlines_find(const struct vv_outline *o, const char *name, uint32_t *number);
/* Its pieces: how many; the first of them. */
size_t outlines_pieces(const struct vv_outline *o, uint32_t variable, const struct vv_outline_piece **first);

/* Pieces ascend, are disjoint and inside; variables are such as the header promises. */
void outlines_check(const struct vv_outline *o, uint64_t len);
/* Cuts the bytes short everywhere, changes each of the first `head`, and many at random; fails reads and allocations. All of it must end, soundly. */
void outlines_damage(const void *p, size_t n, size_t head, const char *name);

#endif
