/* An image in memory that is filled step by step from the stores of other ranks. One thread fetches
 * bytes; another thread uses the present ones and requests the others. */
#ifndef VV_IMAGE_RESTORE_REMOTE_BUFFER_H
#define VV_IMAGE_RESTORE_REMOTE_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_remote_buffer {
	uint8_t *bytes;
	uint64_t len;
	size_t pages, page; /* number and size */
	atomic_uchar *state; /* of each page */
	atomic_bool asked;   /* there was a request since vv_remote_buffer_take_request */
};

/* Creates an empty buffer. VV_ENOMEM. */
int vv_remote_buffer_init(struct vv_remote_buffer *h, uint64_t len);
/* Accepts an empty struct. */
void vv_remote_buffer_fini(struct vv_remote_buffer *h);

/* Returns the number of contiguous present bytes from `at` on. */
uint64_t vv_remote_buffer_has(const struct vv_remote_buffer *h, uint64_t at);
/* Returns the first present byte in at..end; end: there is none. */
uint64_t vv_remote_buffer_find(const struct vv_remote_buffer *h, uint64_t at, uint64_t end);
/* Requests bytes, which are fetched before others. Present bytes stay present. */
void vv_remote_buffer_request(struct vv_remote_buffer *h, uint64_t at, uint64_t len);
/* Returns whether there was a request since the last call. */
bool vv_remote_buffer_take_request(struct vv_remote_buffer *h);

/* Finds the next range to fetch from `at` on, of about `most` bytes at most. `asked` selects
 * requested or other pages. Returns its length; 0: there is none. */
uint64_t vv_remote_buffer_next(const struct vv_remote_buffer *h, uint64_t at, uint64_t most, bool asked, uint64_t *from);
/* Marks a range as present. */
void vv_remote_buffer_put(struct vv_remote_buffer *h, uint64_t at, uint64_t len);

#endif
