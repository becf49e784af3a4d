/* Things that are dear to make and soon needed again: a few are kept, and handed to whoever comes next. One per thread would be many on a
 * large machine, of which few code at the same time. */
#ifndef VV_CODEC_SHELF_H
#define VV_CODEC_SHELF_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VV_SHELF_KEPT = 4 };

struct vv_shelf {
	pthread_mutex_t lock; /* PTHREAD_MUTEX_INITIALIZER */
	void *idle[VV_SHELF_KEPT];
	size_t n;
};

/* NULL: there is none. */
void *vv_shelf_take(struct vv_shelf *s);
/* false: there are enough. */
bool vv_shelf_keep(struct vv_shelf *s, void *thing);

/* Room for n bytes, of any content, until it is given back; NULL (with the error set) for want of memory. */
uint8_t *vv_shelf_room(size_t n);
void vv_shelf_room_back(uint8_t *room); /* NULL is fine */

#endif
