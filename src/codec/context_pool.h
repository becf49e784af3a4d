/* Things that are dear to make and soon needed again: a few are kept, and handed to whoever comes next. One per thread would be many on a
 * large machine, of which few code at the same time. */
#ifndef VV_CODEC_CONTEXT_POOL_H
#define VV_CODEC_CONTEXT_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VV_CONTEXT_POOL_KEPT = 4 };

struct vv_context_pool {
	pthread_mutex_t lock; /* PTHREAD_MUTEX_INITIALIZER */
	void *idle[VV_CONTEXT_POOL_KEPT];
	size_t n;
};

/* NULL: there is none. */
void *vv_context_pool_take(struct vv_context_pool *s);
/* false: there are enough. */
bool vv_context_pool_keep(struct vv_context_pool *s, void *thing);

/* Room for n bytes, of any content, until it is given back; NULL (with the error set) for want of memory. */
uint8_t *vv_context_pool_room(size_t n);
void vv_context_pool_room_back(uint8_t *room); /* NULL is fine */

#endif
