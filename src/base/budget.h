/* Memory for blocks that are under way on many threads: so much in all, however many threads and blocks there are. Who asks for more waits until
 * others give theirs back. What was given back is kept for those who come next, as long as there is enough. */
#ifndef VV_BASE_BUDGET_H
#define VV_BASE_BUDGET_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct vv_budget_buffer {
	struct vv_budget_buffer *next;
	uint8_t *bytes;
	size_t size;
	size_t counted; /* that whoever has it takes elsewhere: only counted */
};

struct vv_budget {
	pthread_mutex_t lock;
	pthread_cond_t back;
	size_t most, held;
	size_t out; /* rooms in use */
	struct vv_budget_buffer *idle;
};

void vv_budget_init(struct vv_budget *r, size_t most);
void vv_budget_fini(struct vv_budget *r); /* all are back */

/* At least `size` bytes, and `beside` more are counted. If no other is in use it is given, however large. NULL, with the error set: no memory. */
struct vv_budget_buffer *vv_budget_take(struct vv_budget *r, size_t size, size_t beside);
void vv_budget_give(struct vv_budget *r, struct vv_budget_buffer *room);

#endif
