#include "engine/reach.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/layerio.h"
#include "engine/table.h"
#include <stdlib.h>
#include <string.h>

int vv_reach_init(struct vv_reach *r, const struct vv_lineage *lin, const struct vv_listing *l)
{
	*r = (struct vv_reach){ .lin = lin, .v = vv_mem_new(l->n_layers, sizeof(*r->v)), .cap = l->n_layers };
	if (!r->v)
		return VV_ENOMEM;
	for (; r->n < l->n_layers; r->n++)
		r->v[r->n] = (struct vv_reach_layer){ .layer = l->layer[r->n].layer, .size = l->layer[r->n].size,
						      .present = true };
	return 0;
}

void vv_reach_fini(struct vv_reach *r)
{
	for (size_t i = 0; i < r->n; i++)
		vv_payload_extents_fini(&r->v[i].need);
	vv_mem_free(r->v);
	*r = (struct vv_reach){ 0 };
}

static size_t position(const struct vv_reach *r, uint64_t layer)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->v[mid].layer < layer)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct vv_reach_layer *vv_reach_find(struct vv_reach *r, uint64_t layer)
{
	size_t i = position(r, layer);

	return i < r->n && r->v[i].layer == layer ? &r->v[i] : NULL;
}

/* A layer that is referred to but not listed gets a place too: it will be missed. */
static struct vv_reach_layer *place(struct vv_reach *r, uint64_t layer)
{
	size_t i = position(r, layer);

	if (i < r->n && r->v[i].layer == layer)
		return &r->v[i];
	if (vv_mem_room(&r->v, r->n, &r->cap, sizeof(*r->v)) < 0)
		return NULL;
	memmove(&r->v[i + 1], &r->v[i], (r->n - i) * sizeof(*r->v));
	r->v[i] = (struct vv_reach_layer){ .layer = layer };
	r->n++;
	return &r->v[i];
}

static int by_pos(const void *a, const void *b)
{
	const struct vv_extent *x = a, *y = b;

	return (x->pos > y->pos) - (x->pos < y->pos);
}

static void settle(struct vv_reach_layer *l)
{
	struct vv_extents *e = &l->need;
	size_t n = 0;

	if (e->n == l->settled)
		return;
	qsort(e->v, e->n, sizeof(*e->v), by_pos);
	for (size_t i = 0; i < e->n; i++) {
		struct vv_extent *last = n ? &e->v[n - 1] : NULL;
		uint64_t end = e->v[i].pos + e->v[i].len;

		if (last && e->v[i].pos <= last->pos + last->len) {
			if (end > last->pos + last->len)
				last->len = end - last->pos;
		} else {
			e->v[n++] = e->v[i];
		}
	}
	e->n = l->settled = n;
}

int vv_reach_settle(struct vv_reach *r)
{
	for (size_t i = 0; i < r->n; i++)
		settle(&r->v[i]);
	return 0;
}

static int need(struct vv_reach *r, const struct vv_runs *runs)
{
	struct vv_reach_layer *l = NULL;

	for (size_t i = 0; i < runs->n; i++) {
		const struct vv_run *run = &runs->v[i];

		if (run->layer == 0)
			continue;
		if (!l || l->layer != run->layer)
			l = place(r, run->layer);
		if (!l || vv_payload_extent_add(&l->need, run->pos, run->len, 1) < 0)
			return VV_ENOMEM;
		if (l->need.n > 2 * l->settled + 4096)
			settle(l);
	}
	return 0;
}

static bool is_live(const struct vv_listing *live, uint64_t epoch)
{
	size_t lo = 0, hi = live->n_epochs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (live->epoch[mid] < epoch)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < live->n_epochs && live->epoch[lo] == epoch;
}

/* The heads of dead ancestors are needed as long as somebody alive inherits from them. */
static int mark_chain(struct vv_reach *r, const struct vv_listing *live, uint64_t epoch, uint32_t rank)
{
	while (epoch && !is_live(live, epoch)) {
		struct vv_reach_layer *l = place(r, vv_run_layer(epoch, rank));
		struct vv_layerio *f = NULL;
		int rc;

		if (!l)
			return VV_ENOMEM;
		if (l->chain)
			return 0;
		l->chain = true;
		rc = vv_layerio_open(r->lin, l->layer, 0, &f);
		if (rc)
			return rc;
		epoch = f->head.parent;
		vv_layerio_close(f);
	}
	return 0;
}

static int add_full(struct vv_reach *r, uint64_t epoch, uint32_t rank)
{
	struct vv_table t = { 0 };
	int rc = vv_table_load(r->lin, epoch, rank, &t);

	for (size_t i = 0; rc == 0 && i < t.n; i++)
		rc = need(r, &t.region[i].runs);
	vv_table_fini(&t);
	return rc;
}

static int add_rank(struct vv_reach *r, const struct vv_listing *live, uint64_t epoch, uint32_t rank)
{
	struct vv_reach_layer *l = place(r, vv_run_layer(epoch, rank));
	struct vv_layerio *f = NULL;
	uint64_t parent;
	int rc;

	if (!l)
		return VV_ENOMEM;
	l->chain = true;
	rc = vv_layerio_open(r->lin, l->layer, VV_LAYERIO_HEAD, &f);
	if (rc)
		return rc;
	parent = f->head.parent;
	if (parent && is_live(live, parent)) {
		for (size_t i = 0; rc == 0 && i < f->head.n_regions; i++)
			rc = need(r, &f->head.region[i].runs);
		parent = 0;
	} else {
		rc = add_full(r, epoch, rank);
	}
	vv_layerio_close(f);
	return rc ? rc : mark_chain(r, live, parent, rank);
}

int vv_reach_add_epoch(struct vv_reach *r, const struct vv_listing *live, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(r->lin, epoch, &c);

	for (uint32_t rank = 0; rc == 0 && rank < c.n_ranks; rank++)
		rc = add_rank(r, live, epoch, rank);
	vv_commit_fini(&c);
	return rc;
}
