/* A pool of objects that are expensive to make and soon needed again: as many as there are cores
 * are kept for the next caller. */
#ifndef VV_CODEC_CONTEXT_POOL_H
#define VV_CODEC_CONTEXT_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VV_CONTEXT_POOL_LEAST = 4, VV_CONTEXT_POOL_MOST = 32 }; /* kept */

struct vv_context_pool {
	pthread_mutex_t lock; /* PTHREAD_MUTEX_INITIALIZER */
	void *idle[VV_CONTEXT_POOL_MOST];
	size_t n;
};

/* NULL: the pool is empty. */
void *vv_context_pool_take(struct vv_context_pool *s);
/* false: the pool is full, and the caller keeps the object. */
bool vv_context_pool_keep(struct vv_context_pool *s, void *thing);

/* Memory for n bytes, of any content, until it is given back; NULL (with the error set) for lack of
 * memory. */
uint8_t *vv_context_pool_room(size_t n);
void vv_context_pool_room_back(uint8_t *room); /* NULL is fine */

#endif
