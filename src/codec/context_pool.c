#include "codec/context_pool.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"

/* More than KEPT_ROOM is rare, and is released at once. Large memory comes from the kernel: an
 * allocator would keep it, in a heap for each thread. It consists of complete wide pages, so that
 * one allocation suits most later requests. */
enum { KEPT_ROOM = 8 << 20, LARGE = 512 << 10, WIDE = VV_MEM_WIDE, HEADER = 64 };

static struct vv_context_pool rooms = { .lock = PTHREAD_MUTEX_INITIALIZER };

void *vv_context_pool_take(struct vv_context_pool *s)
{
	void *c;

	pthread_mutex_lock(&s->lock);
	c = s->n ? s->idle[--s->n] : NULL;
	pthread_mutex_unlock(&s->lock);
	return c;
}

static size_t most_kept(void)
{
	size_t n = vv_pool_cores();

	return n < VV_CONTEXT_POOL_LEAST ? VV_CONTEXT_POOL_LEAST : n < VV_CONTEXT_POOL_MOST ? n : VV_CONTEXT_POOL_MOST;
}

bool vv_context_pool_keep(struct vv_context_pool *s, void *thing)
{
	size_t most = most_kept();
	bool kept;

	pthread_mutex_lock(&s->lock);
	kept = s->n < most;
	if (kept)
		s->idle[s->n++] = thing;
	pthread_mutex_unlock(&s->lock);
	return kept;
}

/* The size is stored in front of the memory. */
static size_t *size_of(uint8_t *room)
{
	return (size_t *)(void *)(room - HEADER);
}

static void drop(uint8_t *room)
{
	if (*size_of(room) >= LARGE)
		vv_mem_unmap(size_of(room), HEADER + *size_of(room));
	else
		vv_mem_free(size_of(room));
}

uint8_t *vv_context_pool_room(size_t n)
{
	uint8_t *room = vv_context_pool_take(&rooms), *p;

	if (room && *size_of(room) >= n)
		return room;
	if (room)
		drop(room);
	if (n > SIZE_MAX - HEADER - WIDE) {
		vv_err_set(VV_ENOMEM, "no room for a block of %zu bytes", n);
		return NULL;
	}
	if (n >= LARGE)
		n = (HEADER + n + WIDE - 1) / WIDE * WIDE - HEADER;
	p = n >= LARGE ? vv_mem_map_wide(HEADER + n) : vv_mem_grow(NULL, HEADER + n, 1);
	if (!p)
		return NULL;
	*size_of(p + HEADER) = n;
	return p + HEADER;
}

void vv_context_pool_room_back(uint8_t *room)
{
	if (room && (*size_of(room) > KEPT_ROOM || !vv_context_pool_keep(&rooms, room)))
		drop(room);
}
