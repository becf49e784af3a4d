#include "engine/read/unmap_later.h"
#include "base/err.h"
#include "base/mem.h"
#include "track/memory.h"
#include <sys/mman.h>

struct mapping {
	char *p;
	size_t n; /* whole pages */
};

struct unmap_later_aside {
	struct vv_task task;
	struct vv_pool *pool;
	size_t n;
	struct mapping mapping[VV_OPEN_LAYERS_LAYERS];
};

/* bytes: it keeps the thread and the address space busy for a fraction of a millisecond */
enum { STEP = 16 << 20 };

/* Unmaps the next step; is there another? */
static bool take_some(struct unmap_later_aside *a)
{
	size_t left = STEP;

	while (a->n && left) {
		struct mapping *m = &a->mapping[a->n - 1];
		size_t n = m->n < left ? m->n : left;

		munmap(m->p, n);
		m->p += n;
		m->n -= n;
		left -= n;
		a->n -= m->n == 0;
	}
	return a->n;
}

static void take_down(struct vv_task *t)
{
	struct unmap_later_aside *a = (struct unmap_later_aside *)t;

	if (take_some(a))
		vv_pool_leave(a->pool, &a->task);
	else
		vv_mem_free(a);
}

static void take_over(struct unmap_later_aside *a, struct vv_get *g)
{
	size_t page = vv_memory_page();

	if (!g->mapped)
		return;
	a->mapping[a->n++] = (struct mapping){ g->mapped, (g->mapped_len + page - 1) / page * page };
	g->mapped = NULL;
}

static void close_one(void *arg, size_t i)
{
	vv_open_layers_close(arg, i);
}

/* Without memory for a task it is done now, on all cores. */
void vv_unmap_later_close(struct vv_open_layers *w, struct vv_pool *pool)
{
	struct vv_err_state error;
	struct unmap_later_aside *a;

	vv_err_save(0, &error);
	a = vv_mem_new(1, sizeof(*a));
	for (size_t i = 0; a && i < w->n; i++)
		if (w->file[i])
			take_over(a, w->file[i]->get);
	vv_pool_each(pool, w->n, close_one, w);
	if (!a) {
		vv_err_restore(&error);
		return;
	}
	a->task.run = take_down;
	a->pool = pool;
	while (vv_pool_width(pool) == 1 && take_some(a))
		;
	vv_pool_leave(pool, &a->task);
}
