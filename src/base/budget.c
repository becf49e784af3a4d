#include "base/budget.h"
#include "base/mem.h"

enum {
	GRAIN = 64 << 10,
	/* fits a block of 1 MiB, the usual size, and its stored form, so that most later requests
	 * can reuse it */
	LEAST = 42 * GRAIN,
};

void vv_budget_init(struct vv_budget *r, size_t most)
{
	*r = (struct vv_budget){ .lock = PTHREAD_MUTEX_INITIALIZER, .back = PTHREAD_COND_INITIALIZER, .most = most };
}

static void drop(struct vv_budget_buffer *room)
{
	vv_mem_unmap(room->bytes, room->size);
	vv_mem_free(room);
}

/* Takes a buffer off the idle list and out of the count. */
static struct vv_budget_buffer *unlist(struct vv_budget *r, struct vv_budget_buffer **at)
{
	struct vv_budget_buffer *room = *at;

	*at = room->next;
	r->held -= room->size;
	return room;
}

void vv_budget_fini(struct vv_budget *r)
{
	while (r->idle)
		drop(unlist(r, &r->idle));
	pthread_cond_destroy(&r->back);
	pthread_mutex_destroy(&r->lock);
}

static struct vv_budget_buffer *make(size_t size)
{
	struct vv_budget_buffer *room = vv_mem_new(1, sizeof(*room));

	if (!room)
		return NULL;
	room->size = size;
	room->bytes = vv_mem_map_wide(size);
	if (room->bytes)
		return room;
	vv_mem_free(room);
	return NULL;
}

/* Takes an idle buffer that fits and is at most twice as large out of the count. */
static struct vv_budget_buffer *find(struct vv_budget *r, size_t size)
{
	for (struct vv_budget_buffer **at = &r->idle; *at; at = &(*at)->next)
		if ((*at)->size >= size && (*at)->size <= 2 * size)
			return unlist(r, at);
	return NULL;
}

struct vv_budget_buffer *vv_budget_take(struct vv_budget *r, size_t size, size_t beside)
{
	struct vv_budget_buffer *room;
	size_t all;

	/* slightly larger, so that it fits later requests */
	size = (size + size / 16 + GRAIN) / GRAIN * GRAIN;
	size = size < LEAST ? LEAST : size;
	pthread_mutex_lock(&r->lock);
	for (;;) {
		room = find(r, size);
		/* an unsuitable buffer is freed, so that there are no more than are used at a
		 * time */
		if (!room && r->idle)
			drop(unlist(r, &r->idle));
		all = (room ? room->size : size) + beside;
		while (r->idle && r->held + all > r->most)
			drop(unlist(r, &r->idle));
		if (r->out == 0 || r->held + all <= r->most)
			break;
		if (room) {
			room->next = r->idle;
			r->idle = room;
			r->held += room->size;
		}
		pthread_cond_wait(&r->back, &r->lock);
	}
	r->held += all;
	r->out++;
	pthread_mutex_unlock(&r->lock);
	if (!room)
		room = make(size);
	if (room) {
		room->counted = beside;
		return room;
	}
	pthread_mutex_lock(&r->lock);
	r->held -= all;
	r->out--;
	pthread_cond_broadcast(&r->back);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

void vv_budget_give(struct vv_budget *r, struct vv_budget_buffer *room)
{
	pthread_mutex_lock(&r->lock);
	r->held -= room->counted;
	r->out--;
	room->next = r->idle;
	r->idle = room;
	if (r->held > r->most) /* a buffer above the budget */
		drop(unlist(r, &r->idle));
	pthread_cond_broadcast(&r->back);
	pthread_mutex_unlock(&r->lock);
}
