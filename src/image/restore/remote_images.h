/* Images whose bytes lie in the stores of other ranks, too. All ranks read together, so it is done in rounds: everything in one, or first what criu needs,
 * and the pages in many, while the program already runs; those that it waits for come with the next. */
#ifndef VV_IMAGE_RESTORE_REMOTE_IMAGES_H
#define VV_IMAGE_RESTORE_REMOTE_IMAGES_H

#include "engine/files/unpack.h"
#include "image/restore/remote_buffer.h"

struct vv_remote_images {
	const struct vv_unpack *files;
	struct vv_unpack_reader from;
	struct vv_remote_buffer *image; /* of each file */
	uint64_t left;          /* bytes that were not read yet */
};

/* late: images of pages are left out. It reads once in any case. VV_ENOMEM: there may be no more than so much memory. */
int vv_remote_images_open(struct vv_remote_images *a, int rc, const struct vv_unpack *files, uint64_t memory, const struct vv_unpack_reader *from, bool late);
void vv_remote_images_close(struct vv_remote_images *a);
/* Reads once: what was asked for (image/restore/remote_buffer.h), and, as far as this is not as much as `most`, what comes next. */
int vv_remote_images_read(struct vv_remote_images *a, int rc, uint64_t most);
/* Something is asked for that was not when this was called last. */
bool vv_remote_images_is_asked(struct vv_remote_images *a);

#endif
