/* A file of pages of a process that was copied before its freeze (image/save/precopy.h). CRIU's
 * pages are discarded unread. The file consists of the copy and of pages that are read from the
 * frozen process. */
#ifndef VV_IMAGE_SAVE_PRECOPIED_FILE_H
#define VV_IMAGE_SAVE_PRECOPIED_FILE_H

#include "base/buf.h"
#include "image/criu/pagemap_image.h"
#include "image/save/precopy.h"
#include "image/save/page_buffer.h"

struct vv_precopied_file {
	const struct vv_precopy_process *process; /* NULL: it was not copied */
	struct vv_page_buffer_file file;
	struct vv_pagemap_image list; /* its pages */
	size_t entry;            /* position of the placement */
	uint64_t placed;
	uint64_t held, late; /* bytes with a valid copy; other bytes */
};

/* The pagemap must be complete, and len bytes of pages were discarded. *full: the buffer has no
 * room for the rest yet. */
int vv_precopied_file_fetch(struct vv_precopied_file *a, struct vv_page_buffer *room, const struct vv_buf *pagemap, uint64_t len, struct vv_pool *pool, bool *full);
/* Compares the unchanged pages of the copy with criu's pages; VV_EMISMATCH: they differ. Both are
 * in the buffer from their first byte on. */
int vv_precopied_file_compare(const struct vv_precopied_file *a, const struct vv_page_buffer *room, const struct vv_page_buffer_file *from_criu);
void vv_precopied_file_fini(struct vv_precopied_file *a);

#endif
