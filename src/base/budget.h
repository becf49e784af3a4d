/* A memory budget for blocks in progress on many threads, independent of the number of threads and
 * blocks. A thread that asks for more waits until others return theirs. Returned buffers are kept
 * for later requests while the budget allows. */
#ifndef VV_BASE_BUDGET_H
#define VV_BASE_BUDGET_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct vv_budget_buffer {
	struct vv_budget_buffer *next;
	uint8_t *bytes;
	size_t size;
	size_t counted; /* memory that the holder allocates elsewhere: only counted */
};

struct vv_budget {
	pthread_mutex_t lock;
	pthread_cond_t back;
	size_t most, held;
	size_t out; /* buffers in use */
	struct vv_budget_buffer *idle;
};

void vv_budget_init(struct vv_budget *r, size_t most);
void vv_budget_fini(struct vv_budget *r); /* all buffers must be returned */

/* Returns at least `size` bytes, and counts `beside` more. If no other buffer is in use, any size
 * is granted. NULL, with the error set: out of memory. */
struct vv_budget_buffer *vv_budget_take(struct vv_budget *r, size_t size, size_t beside);
void vv_budget_give(struct vv_budget *r, struct vv_budget_buffer *room);

#endif
