/* Images whose bytes are partly in the stores of other ranks. All ranks read together, in
 * rounds. Either one round reads everything, or the first round reads criu's part and many later
 * rounds read pages while the program runs. The next round includes the pages for which the
 * program waits. */
#ifndef VV_IMAGE_RESTORE_REMOTE_IMAGES_H
#define VV_IMAGE_RESTORE_REMOTE_IMAGES_H

#include "engine/files/unpack.h"
#include "image/restore/remote_buffer.h"

struct vv_remote_images {
	const struct vv_unpack *files;
	struct vv_unpack_reader from;
	struct vv_remote_buffer *image; /* of each file */
	uint64_t left;          /* bytes that are not read yet */
};

/* late: leaves out the images of pages. It always takes part in one round. VV_ENOMEM: the images
 * exceed the memory limit. */
int vv_remote_images_open(struct vv_remote_images *a, int rc, const struct vv_unpack *files, uint64_t memory, const struct vv_unpack_reader *from, bool late);
void vv_remote_images_close(struct vv_remote_images *a);
/* Takes part in one round: reads the requested bytes (image/restore/remote_buffer.h), and then the
 * next ones up to `most` bytes in all. */
int vv_remote_images_read(struct vv_remote_images *a, int rc, uint64_t most);
/* Returns whether there was a new request since the last call. */
bool vv_remote_images_is_asked(struct vv_remote_images *a);

#endif
