#include "engine/read/layer_list.h"
#include "base/err.h"
#include "base/mem.h"

void vv_layer_list_fini(struct vv_layer_list *l)
{
	vv_mem_free(l->v);
	vv_mem_free(l->slot);
}

static size_t first_slot(const struct vv_layer_list *l, uint64_t layer)
{
	return (size_t)((layer * 0x9e3779b97f4a7c15u) >> 32) & l->mask;
}

static uint32_t *slot_of(const struct vv_layer_list *l, uint64_t layer)
{
	size_t i = first_slot(l, layer);

	while (l->slot[i] && l->v[l->slot[i] - 1].layer != layer)
		i = (i + 1) & l->mask;
	return &l->slot[i];
}

static int grow(struct vv_layer_list *l)
{
	size_t size = l->slot ? 2 * (l->mask + 1) : 256;
	uint32_t *slot = vv_mem_new(size, sizeof(*slot));

	if (!slot)
		return VV_ENOMEM;
	vv_mem_free(l->slot);
	l->slot = slot;
	l->mask = size - 1;
	for (size_t i = 0; i < l->n; i++)
		*slot_of(l, l->v[i].layer) = (uint32_t)(i + 1);
	return 0;
}

/* Returns its number, or VV_ENOMEM. */
static int64_t number(struct vv_layer_list *l, uint64_t layer)
{
	uint32_t *slot;

	if ((!l->slot || 2 * l->n > l->mask) && grow(l) < 0)
		return VV_ENOMEM;
	slot = slot_of(l, layer);
	if (!*slot) {
		if (vv_mem_room(&l->v, l->n, &l->cap, sizeof(*l->v)) < 0)
			return VV_ENOMEM;
		l->v[l->n] = (struct vv_layer_list_layer){ .layer = layer };
		*slot = (uint32_t)++l->n;
	}
	return *slot - 1;
}

int vv_layer_list_add(struct vv_layer_list *l, uint64_t layer)
{
	return number(l, layer) < 0 ? VV_ENOMEM : 0;
}

struct layer_list_part { /* of the runs of a want */
	const struct vv_want *want;
	size_t first, end;
};

struct task { /* some parts, and their layers */
	const struct layer_list_part *part;
	size_t n, runs;
	struct vv_layer_list found;
	int rc;
};

struct layer_list_search {
	struct layer_list_part *part;
	size_t n_parts, parts_cap;
	struct task *task;
	size_t n_tasks, tasks_cap;
};

enum { STEP = 16 << 10 };

/* The same for a layer that is mostly known. */
static inline int64_t number_of(struct vv_layer_list *l, uint64_t layer)
{
	uint32_t k = l->slot ? l->slot[first_slot(l, layer)] : 0;

	return k && l->v[k - 1].layer == layer ? k - 1 : number(l, layer);
}

/* Consecutive runs are mostly of one layer. */
static int look_at(const struct layer_list_part *p, struct vv_layer_list *found)
{
	const struct vv_want *w = p->want;
	uint64_t last = 0;
	int64_t k = 0;

	for (size_t i = p->first; i < p->end; i++) {
		const struct vv_run *r = &w->runs->v[i];
		uint64_t at = r->at > w->at ? r->at : w->at, end = w->at + w->len;

		if (!r->layer)
			continue;
		end = r->at + r->len < end ? r->at + r->len : end;
		if (r->layer != last)
			k = number_of(found, r->layer);
		if (k < 0)
			return VV_ENOMEM;
		last = r->layer;
		found->bytes += end - at;
		found->v[k].n_runs++;
		found->v[k].bytes += end - at;
	}
	return 0;
}

static void run_task(void *arg, size_t i)
{
	struct task *t = &((struct layer_list_search *)arg)->task[i];

	for (size_t k = 0; t->rc == 0 && k < t->n; k++)
		t->rc = look_at(&t->part[k], &t->found);
}

static int cut_want(const struct vv_want *w, struct layer_list_search *s)
{
	size_t end = vv_run_find(w->runs, w->at + w->len);

	end += end < w->runs->n && w->runs->v[end].at < w->at + w->len;
	for (size_t first = vv_run_find(w->runs, w->at); first < end; first += STEP) {
		if (vv_mem_room(&s->part, s->n_parts, &s->parts_cap, sizeof(*s->part)) < 0)
			return VV_ENOMEM;
		s->part[s->n_parts++] = (struct layer_list_part){ w, first, end - first < STEP ? end : first + STEP };
	}
	return 0;
}

/* Small parts share a task. */
static int make_tasks(struct layer_list_search *s)
{
	for (size_t i = 0; i < s->n_parts; i++) {
		struct task *last = s->n_tasks ? &s->task[s->n_tasks - 1] : NULL;

		if (!last || last->runs >= STEP) {
			if (vv_mem_room(&s->task, s->n_tasks, &s->tasks_cap, sizeof(*s->task)) < 0)
				return VV_ENOMEM;
			last = &s->task[s->n_tasks++];
			*last = (struct task){ .part = &s->part[i] };
		}
		last->n++;
		last->runs += s->part[i].end - s->part[i].first;
	}
	return 0;
}

static int add(struct vv_layer_list *out, const struct task *t)
{
	if (t->rc)
		return vv_err_set(VV_ENOMEM, "out of memory (layers of %zu runs)", t->runs);
	out->bytes += t->found.bytes;
	for (size_t i = 0; i < t->found.n; i++) {
		int64_t k = number(out, t->found.v[i].layer);

		if (k < 0)
			return VV_ENOMEM;
		out->v[k].n_runs += t->found.v[i].n_runs;
		out->v[k].bytes += t->found.v[i].bytes;
	}
	return 0;
}

int vv_layer_list_find(struct vv_layer_list *out, struct vv_pool *pool, const struct vv_want *w, size_t n)
{
	struct vv_parallel_for loop = vv_pool_loop(pool);
	struct layer_list_search s = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = cut_want(&w[i], &s);
	if (rc == 0)
		rc = make_tasks(&s);
	if (rc == 0)
		vv_parallel_for_each(&loop, s.n_tasks, run_task, &s);
	for (size_t i = 0; i < s.n_tasks; i++) {
		rc = rc ? rc : add(out, &s.task[i]);
		vv_layer_list_fini(&s.task[i].found);
	}
	vv_mem_free(s.part);
	vv_mem_free(s.task);
	return rc;
}
