#include "engine/aside.h"
#include "base/err.h"
#include "base/mem.h"
#include <sys/mman.h>

struct mapping {
	void *p;
	size_t n;
};

struct aside {
	struct vv_task task;
	size_t n;
	struct mapping mapping[VV_WARM_LAYERS];
};

static void take_down(struct vv_task *t)
{
	struct aside *a = (struct aside *)t;

	for (size_t i = 0; i < a->n; i++)
		munmap(a->mapping[i].p, a->mapping[i].n);
	vv_mem_free(a);
}

static void take_over(struct aside *a, struct vv_get *g)
{
	if (!g->mapped)
		return;
	a->mapping[a->n++] = (struct mapping){ g->mapped, g->mapped_len };
	g->mapped = NULL;
}

static void close_one(void *arg, size_t i)
{
	vv_warm_close(arg, i);
}

/* Without memory for that it is done now, on all cores. */
void vv_aside_close(struct vv_warm *w, struct vv_pool *pool)
{
	struct vv_err_state error;
	struct aside *a;

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
	vv_pool_leave(pool, &a->task);
}
