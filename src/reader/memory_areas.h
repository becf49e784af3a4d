/* The memory of a process as an image of it has it: areas, what each of them is, and the pieces of the file that hold their pages. */
#ifndef VV_READER_MEMORY_AREAS_H
#define VV_READER_MEMORY_AREAS_H

#include "base/map.h"
#include "core/format/segment.h"
#include "reader/reader.h"

struct vv_memory_areas_area {
	uint64_t from, to;
	const char *file; /* that it maps, without its folder: bytes of the image; NULL: none */
	size_t file_len;
	bool executable, writable;
	uint8_t segment; /* VV_SEGMENT_NONE: nobody said yet */
};

struct vv_memory_areas {
	struct vv_outline *out;
	struct vv_memory_areas_area *area; /* ascending, without overlap, once it is settled */
	size_t n, cap;
	struct vv_map by_name; /* variables */
};

void vv_memory_areas_init(struct vv_memory_areas *m, struct vv_outline *out);
void vv_memory_areas_fini(struct vv_memory_areas *m);
/* path: of the file that is mapped, or NULL. Areas of no bytes are left out. */
int vv_memory_areas_add(struct vv_memory_areas *m, const struct vv_memory_areas_area *a, const char *path, size_t len);
/* All areas are there: in order, and what can be told from the files they map is told. exe: an address in the executable, 0: not known. */
void vv_memory_areas_finish(struct vv_memory_areas *m, uint64_t exe);
/* The area with this address, if it maps no file and nobody said what it is. */
void vv_memory_areas_mark(struct vv_memory_areas *m, uint64_t at, enum vv_segment segment);
/* Where nobody said so: the heap is what comes next behind the executable. */
void vv_memory_areas_guess_heap(struct vv_memory_areas *m);
/* len bytes of memory lie at this offset in the file: pieces, one for each area that they are in. */
int vv_memory_areas_piece(struct vv_memory_areas *m, uint64_t address, uint64_t len, uint64_t at);

#endif
