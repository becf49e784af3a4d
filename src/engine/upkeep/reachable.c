#include "engine/upkeep/reachable.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/ranks/copies_lookup.h"
#include "engine/lineage/layer_file.h"
#include "engine/lineage/run_table.h"
#include <stdlib.h>
#include <string.h>

int vv_reachable_init(struct vv_reachable *r, const struct vv_lineage *lin, const struct vv_listing *l)
{
	*r = (struct vv_reachable){ .lin = lin, .v = vv_mem_new(l->n_layers, sizeof(*r->v)), .cap = l->n_layers };
	if (!r->v)
		return VV_ENOMEM;
	for (; r->n < l->n_layers; r->n++)
		r->v[r->n] = (struct vv_reachable_layer){ .layer = l->layer[r->n].layer, .size = l->layer[r->n].size,
						      .present = true };
	return 0;
}

void vv_reachable_fini(struct vv_reachable *r)
{
	for (size_t i = 0; i < r->n; i++)
		vv_payload_extents_fini(&r->v[i].need);
	vv_mem_free(r->v);
	*r = (struct vv_reachable){ 0 };
}

static size_t position(const struct vv_reachable *r, uint64_t layer)
{
	size_t i;

	VV_SEARCH(i, 0, r->n, r->v[i].layer < layer);
	return i;
}

static struct vv_reachable_layer *find(struct vv_reachable *r, uint64_t layer)
{
	size_t i = position(r, layer);

	return i < r->n && r->v[i].layer == layer ? &r->v[i] : NULL;
}

/* A layer that is referred to but not listed gets an entry too: it will be reported missing. */
static struct vv_reachable_layer *place(struct vv_reachable *r, uint64_t layer)
{
	size_t i = position(r, layer);

	if (i < r->n && r->v[i].layer == layer)
		return &r->v[i];
	if (vv_mem_room(&r->v, r->n, &r->cap, sizeof(*r->v)) < 0)
		return NULL;
	memmove(&r->v[i + 1], &r->v[i], (r->n - i) * sizeof(*r->v));
	r->v[i] = (struct vv_reachable_layer){ .layer = layer };
	r->n++;
	return &r->v[i];
}

static int by_pos(const void *a, const void *b)
{
	const struct vv_extent *x = a, *y = b;

	return (x->pos > y->pos) - (x->pos < y->pos);
}

static void sort_and_join(struct vv_reachable_layer *l)
{
	struct vv_extents *e = &l->need;
	size_t n = 0;

	if (e->n == l->n_sorted)
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
	e->n = l->n_sorted = n;
}

static int add_need(struct vv_reachable_layer *l, uint64_t pos, uint64_t len)
{
	if (vv_payload_extent_add(&l->need, pos, len, 1) < 0)
		return VV_ENOMEM;
	if (l->need.n > 2 * l->n_sorted + 4096)
		sort_and_join(l);
	return 0;
}

int vv_reachable_add_need(struct vv_reachable *r, uint64_t layer, uint64_t pos, uint64_t len)
{
	struct vv_reachable_layer *l = place(r, layer);

	return l ? add_need(l, pos, len) : VV_ENOMEM;
}

static bool is_needed(const struct vv_extents *need, const struct vv_blocks *b, const struct vv_block *k)
{
	bool any = false;

	for (size_t e = k->extent; !any && e < k->extent + k->n_extents; e++) {
		size_t i = vv_payload_extent_find(need, b->extent.v[e].pos);

		any = i < need->n && need->v[i].pos < b->extent.v[e].pos + b->extent.v[e].len;
	}
	return any;
}

/* Adds the rest of a needed block, and its bases. */
static int add_block(struct vv_reachable *r, uint64_t layer, const struct vv_blocks *b, size_t k)
{
	size_t n = 0;
	const struct vv_delta_base *base = vv_delta_bases_of(&b->bases, k, &n);
	int rc = 0;

	for (size_t e = b->v[k].extent; rc == 0 && e < b->v[k].extent + b->v[k].n_extents; e++)
		rc = vv_reachable_add_need(r, layer, b->extent.v[e].pos, b->extent.v[e].len);
	for (size_t i = 0; rc == 0 && i < n; i++)
		if (base[i].epoch)
			rc = vv_reachable_add_need(r, vv_run_layer(base[i].epoch, vv_run_rank(layer)), base[i].pos, base[i].len);
	return rc;
}

static int add_deltas(struct vv_reachable *r, const struct vv_reachable_layer *l)
{
	struct vv_extents need = l->need; /* while adding, r->v and its lists may move */
	struct vv_layer_file *f = NULL;
	uint64_t layer = l->layer;
	int rc = vv_layer_file_open(r->lin, layer, VV_LAYER_FILE_BLOCKS, &f);
	bool *needed = rc ? NULL : vv_mem_new(f->blocks.bases.n_blocks, sizeof(*needed));

	if (rc == 0 && !needed)
		rc = VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < f->blocks.bases.n_blocks; i++)
		needed[i] = is_needed(&need, &f->blocks, &f->blocks.v[f->blocks.bases.block[i].block]);
	for (size_t i = 0; rc == 0 && i < f->blocks.bases.n_blocks; i++)
		if (needed[i])
			rc = add_block(r, layer, &f->blocks, f->blocks.bases.block[i].block);
	vv_mem_free(needed);
	vv_layer_file_close(f);
	return rc;
}

static int look_for_deltas(struct vv_reachable *r, struct vv_reachable_layer *l)
{
	struct vv_layer_file *f = NULL;
	uint64_t layer = l->layer;
	int rc;

	if (!l->present || l->no_deltas || !l->need.n)
		return 0;
	rc = vv_layer_file_open(r->lin, l->layer, 0, &f);
	if (rc == 0)
		l->no_deltas = !vv_layer_find(&f->frame, VV_SECTION_BASES);
	vv_layer_file_close(f);
	if (rc == 0 && !l->no_deltas)
		rc = add_deltas(r, l);
	if (rc == 0 || rc == VV_ENOMEM || (!r->tolerant && vv_run_epoch(layer) > r->floor))
		return rc;
	find(r, layer)->unread = true;
	vv_err_clear();
	return 0;
}

/* Bases lie in older layers, so the newest layers come first. Missing layers may get entries
 * meanwhile. */
int vv_reachable_sort(struct vv_reachable *r)
{
	uint64_t layer;
	int rc = 0;

	for (size_t i = 0; i < r->n; i++)
		sort_and_join(&r->v[i]);
	for (size_t i = r->n; rc == 0 && i-- > 0; i = position(r, layer)) {
		layer = r->v[i].layer;
		sort_and_join(&r->v[i]);
		rc = look_for_deltas(r, &r->v[i]);
		sort_and_join(find(r, layer));
	}
	return rc;
}

/* Adds the copies that one layer records for its needs. */
static int note_copies(const struct vv_lineage *lin, const struct vv_reachable_layer *l, struct vv_copies_lookup *out)
{
	struct vv_layer_file *f = NULL;
	struct vv_copies_section c = { 0 };
	int rc = vv_layer_file_open(lin, l->layer, 0, &f);

	if (rc == 0)
		rc = vv_copies_lookup_read(f, &c);
	for (size_t i = 0; rc == 0 && i < c.n; i++) {
		uint64_t pos = c.v[i].pos, end = pos + c.v[i].len;

		for (size_t k = vv_payload_extent_find(&l->need, pos); rc == 0 && k < l->need.n && l->need.v[k].pos < end; k++) {
			const struct vv_extent *x = &l->need.v[k];
			uint64_t from = x->pos > pos ? x->pos : pos, to = x->pos + x->len < end ? x->pos + x->len : end;

			rc = vv_copies_lookup_add(out, &(struct vv_other_copy){ .layer = vv_run_layer(vv_run_epoch(l->layer), c.v[i].rank),
									    .at = c.v[i].at + (from - pos), .len = to - from });
		}
	}
	vv_layer_file_close(f);
	vv_copies_section_fini(&c);
	return rc == VV_ENOMEM ? rc : 0;
}

/* A copy that is already removed, or no longer recorded, keeps nothing. */
int vv_reachable_add_copies(struct vv_reachable *r, bool elsewhere)
{
	struct vv_copies_lookup a = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->n; i++)
		if (r->v[i].present && r->v[i].need.n)
			rc = note_copies(r->lin, &r->v[i], &a);
	for (size_t i = 0; rc == 0 && i < a.n; i++)
		if (elsewhere || (find(r, a.v[i].layer) && find(r, a.v[i].layer)->present))
			rc = vv_reachable_add_need(r, a.v[i].layer, a.v[i].at, a.v[i].len);
	vv_copies_lookup_fini(&a);
	return rc;
}

static int need(struct vv_reachable *r, const struct vv_runs *runs)
{
	struct vv_reachable_layer *l = NULL;

	for (size_t i = 0; i < runs->n; i++) {
		const struct vv_run *run = &runs->v[i];

		if (run->layer == 0)
			continue;
		if (!l || l->layer != run->layer)
			l = place(r, run->layer);
		if (!l || add_need(l, run->pos, run->len) < 0)
			return VV_ENOMEM;
	}
	return 0;
}

/* The heads of dead ancestors are needed while a live epoch inherits from them. */
static int mark_chain(struct vv_reachable *r, const struct vv_listing *live, uint64_t epoch, uint32_t rank)
{
	while (epoch && !vv_catalog_has_epoch(live, epoch)) {
		struct vv_reachable_layer *l = place(r, vv_run_layer(epoch, rank));
		struct vv_layer_file *f = NULL;
		int rc;

		if (!l)
			return VV_ENOMEM;
		if (l->chain)
			return 0;
		l->chain = true;
		rc = vv_layer_file_open(r->lin, l->layer, 0, &f);
		if (rc)
			return rc;
		epoch = f->head.parent;
		vv_layer_file_close(f);
	}
	return 0;
}

static int add_full(struct vv_reachable *r, uint64_t epoch, uint32_t rank)
{
	struct vv_run_table_how how = { .commit = r->commit && r->commit->epoch == epoch ? r->commit : NULL };
	struct vv_run_table t = { 0 };
	int rc = vv_run_table_load(r->lin, epoch, rank, &how, &t);

	for (size_t i = 0; rc == 0 && i < t.n; i++)
		rc = need(r, &t.region[i].runs);
	vv_run_table_fini(&t);
	return rc;
}

int vv_reachable_add_rank(struct vv_reachable *r, const struct vv_listing *live, uint64_t epoch, uint32_t rank)
{
	struct vv_reachable_layer *l = place(r, vv_run_layer(epoch, rank));
	struct vv_layer_file *f = NULL;
	uint64_t parent;
	int rc;

	if (!l)
		return VV_ENOMEM;
	l->chain = true;
	rc = vv_layer_file_open(r->lin, l->layer, VV_LAYER_FILE_HEAD, &f);
	if (rc)
		return rc;
	parent = f->head.parent;
	if (parent && vv_catalog_has_epoch(live, parent)) {
		for (size_t i = 0; rc == 0 && i < f->head.n_regions; i++)
			rc = need(r, &f->head.region[i].runs);
		parent = 0;
	} else {
		rc = add_full(r, epoch, rank);
	}
	vv_layer_file_close(f);
	return rc ? rc : mark_chain(r, live, parent, rank);
}

int vv_reachable_add_epoch(struct vv_reachable *r, const struct vv_listing *live, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(r->lin, epoch, &c);

	for (uint32_t rank = 0; rc == 0 && rank < c.n_ranks; rank++)
		rc = vv_reachable_add_rank(r, live, epoch, rank);
	vv_commit_fini(&c);
	return rc;
}
