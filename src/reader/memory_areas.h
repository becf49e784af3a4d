/* The memory of a process in an image: its areas, their segments, and the pieces of the file that
 * hold their pages. */
#ifndef VV_READER_MEMORY_AREAS_H
#define VV_READER_MEMORY_AREAS_H

#include "base/map.h"
#include "core/format/segment.h"
#include "reader/reader.h"

struct vv_memory_areas_area {
	uint64_t from, to;
	const char *file; /* name of the mapped file without its folder, in the image; NULL: none */
	size_t file_len;
	bool executable, writable;
	uint8_t segment; /* VV_SEGMENT_NONE: not known yet */
};

struct vv_memory_areas {
	struct vv_outline *out;
	/* ascending, without overlap, after vv_memory_areas_finish */
	struct vv_memory_areas_area *area;
	size_t n, cap;
	struct vv_map by_name; /* variables */
};

void vv_memory_areas_init(struct vv_memory_areas *m, struct vv_outline *out);
void vv_memory_areas_fini(struct vv_memory_areas *m);
/* path: of the mapped file, or NULL. Empty areas are left out. */
int vv_memory_areas_add(struct vv_memory_areas *m, const struct vv_memory_areas_area *a, const char *path, size_t len);
/* After the last area: sorts the areas, and derives segments from the mapped files. exe: an address
 * in the executable, 0: unknown. */
void vv_memory_areas_finish(struct vv_memory_areas *m, uint64_t exe);
/* Sets the segment of the area with this address, if it maps no file and has no segment. */
void vv_memory_areas_mark(struct vv_memory_areas *m, uint64_t at, enum vv_segment segment);
/* Marks the next area behind the executable as the heap, if it is writable, near, maps no file and
 * has no segment. */
void vv_memory_areas_guess_heap(struct vv_memory_areas *m);
/* Adds len bytes of memory at offset `at` of the file, as one piece for each area. */
int vv_memory_areas_piece(struct vv_memory_areas *m, uint64_t address, uint64_t len, uint64_t at);

#endif
