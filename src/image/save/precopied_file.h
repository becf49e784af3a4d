/* A file of pages, of a process that was copied before it was frozen (image/save/precopy.h): what criu hands over is thrown away unread, and put together from the
 * copy and from the process itself, as long as that stands still. */
#ifndef VV_IMAGE_SAVE_PRECOPIED_FILE_H
#define VV_IMAGE_SAVE_PRECOPIED_FILE_H

#include "base/buf.h"
#include "image/criu/pagemap_image.h"
#include "image/save/precopy.h"
#include "image/save/page_buffer.h"

struct vv_precopied_file {
	const struct vv_precopy_process *process; /* NULL: it was not */
	struct vv_page_buffer_file file;
	struct vv_pagemap_image list; /* which pages it has, */
	size_t entry;            /* and how far they were placed: */
	uint64_t placed;
	uint64_t held, late; /* bytes of them whose copy held; others */
};

/* All of the pagemap that tells of it has come, and len bytes of pages were thrown away. *full: the rest has no room yet. */
int vv_precopied_file_fetch(struct vv_precopied_file *a, struct vv_page_buffer *room, const struct vv_buf *pagemap, uint64_t len, struct vv_pool *pool, bool *full);
/* Is what holds of the copy the same as what criu handed over? Else VV_EMISMATCH. Both are in the room from their first byte on. */
int vv_precopied_file_compare(const struct vv_precopied_file *a, const struct vv_page_buffer *room, const struct vv_page_buffer_file *from_criu);
void vv_precopied_file_fini(struct vv_precopied_file *a);

#endif
