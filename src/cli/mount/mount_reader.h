/* An open file of a mounted store. */
#ifndef VV_CLI_MOUNT_MOUNT_READER_H
#define VV_CLI_MOUNT_MOUNT_READER_H

#include "cli/mount/mount_view.h"
#include "engine/read/export.h"

struct vv_mount_reader {
	struct vv_mount_view *view;
	const struct vv_mount_item *item;
	uint8_t header[VV_EXPORT_NPY]; /* of .npy */
	size_t header_len;
	pthread_mutex_t lock; /* of the members below */
	uint64_t next;	      /* the expected offset of a reader in order */
	uint64_t read_ahead_end; /* for vv_block_cache_read_ahead */
};

/* The view stays open as long as the reader. */
int vv_mount_reader_open(struct vv_mount_view *v, const struct vv_mount_item *item, struct vv_pool *pool,
			 struct vv_mount_reader **out);
void vv_mount_reader_close(struct vv_mount_reader *r);
/* Reads up to n bytes; *got is less only at the end. All bytes are checked. */
int vv_mount_reader_read(struct vv_mount_reader *r, uint64_t at, uint8_t *to, size_t n, size_t *got);

#endif
