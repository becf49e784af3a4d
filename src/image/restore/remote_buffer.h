/* An image in memory whose bytes come bit by bit, from the stores of other ranks: one thread fetches, another one uses what is there, and asks for what it
 * waits for. */
#ifndef VV_IMAGE_RESTORE_REMOTE_BUFFER_H
#define VV_IMAGE_RESTORE_REMOTE_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_remote_buffer {
	uint8_t *bytes;
	uint64_t len;
	size_t pages, page; /* how many, and how large */
	atomic_uchar *state; /* of each page */
	atomic_bool asked;   /* something new was, since vv_remote_buffer_take_request */
};

/* Nothing is there. VV_ENOMEM. */
int vv_remote_buffer_init(struct vv_remote_buffer *h, uint64_t len);
/* What is empty is fine. */
void vv_remote_buffer_fini(struct vv_remote_buffer *h);

/* How many bytes are there from `at` on, without a gap. */
uint64_t vv_remote_buffer_has(const struct vv_remote_buffer *h, uint64_t at);
/* The first byte at or behind `at`, and before `end`, that is there; end: none is. */
uint64_t vv_remote_buffer_find(const struct vv_remote_buffer *h, uint64_t at, uint64_t end);
/* These come before others. What is there stays so. */
void vv_remote_buffer_request(struct vv_remote_buffer *h, uint64_t at, uint64_t len);
/* Was something asked for since this was called last? */
bool vv_remote_buffer_take_request(struct vv_remote_buffer *h);

/* What to fetch next of what lies at or behind `at`: a stretch of about so many bytes at most, that was asked for, or was not; 0: there is none. */
uint64_t vv_remote_buffer_next(const struct vv_remote_buffer *h, uint64_t at, uint64_t most, bool asked, uint64_t *from);
/* It is there now. */
void vv_remote_buffer_put(struct vv_remote_buffer *h, uint64_t at, uint64_t len);

#endif
