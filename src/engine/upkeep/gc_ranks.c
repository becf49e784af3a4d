#include "engine/upkeep/gc_ranks.h"
#include "base/mem.h"
#include "engine/ranks/layer_holders.h"
#include "engine/ranks/exchange.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS_MOST = 1 << 28 }; /* bytes */

struct places {
	struct vv_context *ctx;
	struct vv_group *g;
	uint64_t *live; /* epochs of any storage node */
	size_t n_live;
	uint64_t floor; /* layers of epochs up to this one stay */
	struct vv_layer_holders holders;
	struct vv_listing list; /* of this storage node, with the live epochs of all */
	struct vv_reachable reach;
};

/* ---- live epochs ----------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint32_t count_places(const struct vv_group *g)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < g->size; r++)
		n += g->storage_node[r] == r;
	return n;
}

/* all: the lists of all storage nodes, concatenated. An epoch is committed if any storage node has
 * its record; those that lack the record get it. */
static int spread_records(struct places *p, uint64_t *all, size_t n)
{
	uint32_t places = count_places(p->g);
	int rc = 0;

	qsort(all, n, sizeof(*all), by_number);
	for (size_t i = 0, end; rc == 0 && i < n; i = end) {
		for (end = i; end < n && all[end] == all[i];)
			end++;
		if (end - i < places)
			rc = vv_group_spread_commit(p->ctx, all[i]);
		all[p->n_live++] = all[i];
	}
	p->live = all;
	return rc;
}

static int find_live(struct places *p)
{
	struct vv_listing l = { 0 };
	struct vv_exchange m = { 0 };
	uint64_t *all = NULL;
	size_t n = 0;
	int rc = vv_group_leads_storage_node(p->g) ? vv_catalog_list(&p->ctx->lineage, 0, &l) : 0;

	rc = vv_exchange_gather(&m, p->g, rc, l.epoch, l.n_epochs * sizeof(*l.epoch), EPOCHS_MOST);
	if (rc == 0)
		all = vv_mem_new((size_t)(m.in_sum / sizeof(*all)), sizeof(*all));
	rc = rc ? rc : vv_group_agree(p->g, p->g->comm, all ? 0 : VV_ENOMEM);
	for (uint32_t r = 0; rc == 0 && r < p->g->size; r++) {
		size_t k = (size_t)(m.in_len[r] / sizeof(*all));

		if (k)
			memcpy(all + n, vv_exchange_from(&m, p->g, r), k * sizeof(*all));
		n += k;
	}
	vv_exchange_free(&m, p->g);
	vv_catalog_listing_fini(&l);
	if (rc == 0)
		return spread_records(p, all, n);
	vv_mem_free(all);
	return rc;
}

/* ---- needs ----------------------------------------------------------------------------------- */

/* Every layer of every live epoch must be visible on some storage node: otherwise its needs are
 * unknown. */
static int check_epoch(const struct places *p, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(&p->ctx->lineage, epoch, &c);

	for (uint32_t r = 0; rc == 0 && r < c.n_ranks; r++)
		if (vv_layer_holders_find(&p->holders, vv_run_layer(epoch, r)) == p->holders.n)
			rc = vv_err_set(VV_EDAMAGED, "no rank's store has the layer of rank %u in epoch %" PRIu64 ", so that what it needs is not "
					"known (drop the epoch in all stores if it is lost)", r, epoch);
	vv_commit_fini(&c);
	return rc;
}

/* Damage of an epoch up to the floor is no error: a restart has skipped it, and all its layers
 * stay. */
static int pardon(const struct places *p, uint64_t epoch, int rc)
{
	return rc == VV_EDAMAGED && epoch <= p->reach.floor ? 0 : rc;
}

/* Only the live epochs count as such for the parts that an epoch adds to its parent's. */
static int list_live(struct places *p)
{
	struct vv_listing *l = &p->list;
	int rc = vv_catalog_list(&p->ctx->lineage, 0, l);
	size_t n = 0;

	for (size_t i = 0; rc == 0 && i < l->n_epochs; i++)
		if (bsearch(&l->epoch[i], p->live, p->n_live, sizeof(*p->live), by_number))
			l->epoch[n++] = l->epoch[i];
	l->n_epochs = n;
	return rc;
}

/* Called by the leader: marks the needs, on any storage node, of the layers of this one. */
static int mark(struct places *p)
{
	struct vv_listing *l = &p->list;
	int rc = list_live(p);

	if (rc == 0)
		rc = vv_reachable_init(&p->reach, &p->ctx->lineage, l);
	p->reach.floor = p->floor;
	for (size_t i = 0; rc == 0 && i < p->n_live; i++)
		rc = pardon(p, p->live[i], check_epoch(p, p->live[i]));
	for (size_t i = 0; rc == 0 && i < l->n_layers; i++) {
		uint64_t layer = l->layer[i].layer, epoch = vv_run_epoch(layer);

		if (bsearch(&epoch, p->live, p->n_live, sizeof(epoch), by_number))
			rc = pardon(p, epoch, vv_reachable_add_rank(&p->reach, l, epoch, vv_run_rank(layer)));
	}
	return rc ? rc : vv_reachable_sort(&p->reach);
}

/* One layer's needs as words: layer, count, then position and length of each. */
static size_t words_of(const struct vv_reachable_layer *l)
{
	return l->present || !l->need.n ? 0 : 2 + 2 * l->need.n;
}

static uint64_t *put_needs(const struct vv_reachable_layer *l, uint64_t *to)
{
	*to++ = l->layer;
	*to++ = l->need.n;
	for (size_t i = 0; i < l->need.n; i++) {
		*to++ = l->need.v[i].pos;
		*to++ = l->need.v[i].len;
	}
	return to;
}

/* Sends the needs to each storage node that has the layer. */
static int write_needs(struct places *p, struct vv_exchange *m)
{
	uint64_t *len = vv_mem_new(p->g->size, sizeof(*len)), **at = vv_mem_new(p->g->size, sizeof(*at)), sum = 0;
	const struct vv_reachable *r = &p->reach;
	int rc = len && at ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < r->n; i++)
		for (size_t h = vv_layer_holders_find(&p->holders, r->v[i].layer); h < p->holders.n && p->holders.v[h].layer == r->v[i].layer; h++)
			len[p->holders.v[h].storage_node] += words_of(&r->v[i]);
	for (uint32_t k = 0; rc == 0 && k < p->g->size; k++)
		sum += len[k];
	if (rc == 0)
		rc = vv_exchange_new(m, p->g->size, (size_t)sum * sizeof(uint64_t));
	for (uint64_t k = 0, off = 0; rc == 0 && k < p->g->size; off += len[k++]) {
		at[k] = (uint64_t *)m->out + off;
		m->out_len[k] = len[k] * sizeof(uint64_t);
	}
	for (size_t i = 0; rc == 0 && i < r->n; i++)
		for (size_t h = vv_layer_holders_find(&p->holders, r->v[i].layer);
		     words_of(&r->v[i]) && h < p->holders.n && p->holders.v[h].layer == r->v[i].layer; h++)
			at[p->holders.v[h].storage_node] = put_needs(&r->v[i], at[p->holders.v[h].storage_node]);
	vv_mem_free(len);
	vv_mem_free(at);
	return rc;
}

static int read_needs(struct places *p, const uint64_t *w, size_t n, uint32_t rank)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n;) {
		uint64_t layer = w[i], count = n - i < 2 ? UINT64_MAX : w[i + 1];

		if (count > (n - i - 2) / 2)
			return vv_err_set(VV_EPEER, "rank %u sends needs that cannot be", rank);
		for (i += 2; rc == 0 && count; count--, i += 2) {
			if (!layer || !w[i + 1] || w[i + 1] > VV_MAX_PAYLOAD || w[i] > VV_MAX_PAYLOAD - w[i + 1])
				return vv_err_set(VV_EPEER, "rank %u needs something that cannot be", rank);
			rc = vv_reachable_add_need(&p->reach, layer, w[i], w[i + 1]);
		}
	}
	return rc;
}

static int exchange(struct places *p, int rc)
{
	struct vv_exchange m = { 0 };

	rc = vv_exchange_send(&m, p->g, rc ? rc : write_needs(p, &m), sizeof(uint64_t));
	for (uint64_t r = 0, at = 0; rc == 0 && r < p->g->size; at += m.in_len[r++])
		rc = read_needs(p, (const uint64_t *)(m.in + at), (size_t)(m.in_len[r] / sizeof(uint64_t)), (uint32_t)r);
	vv_exchange_free(&m, p->g);
	return rc ? rc : vv_reachable_sort(&p->reach);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Layers on other storage nodes are not this one's to change. */
static void forget_others(struct vv_reachable *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->v[i].present)
			r->v[n++] = r->v[i];
		else
			vv_payload_extents_fini(&r->v[i].need);
	}
	r->n = n;
}

/* The epochs of needed layers, of all storage nodes: their parity stays everywhere. */
static int share_needed(struct places *p, uint64_t **all)
{
	struct vv_exchange m = { 0 };
	struct vv_buf b = { 0 };
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < p->reach.n; i++)
		if (p->reach.v[i].chain || p->reach.v[i].need.n)
			vv_buf_add(&b, &(uint64_t){ vv_run_epoch(p->reach.v[i].layer) }, sizeof(uint64_t));
	rc = vv_exchange_gather(&m, p->g, vv_buf_check(&b), b.p, b.n, EPOCHS_MOST);
	if (rc == 0) {
		*all = vv_mem_new((size_t)(m.in_sum / sizeof(**all)), sizeof(**all));
		rc = *all ? 0 : VV_ENOMEM;
	}
	for (uint32_t r = 0; rc == 0 && r < p->g->size; r++) {
		if (m.in_len[r])
			memcpy(*all + n, vv_exchange_from(&m, p->g, r), (size_t)m.in_len[r]);
		n += (size_t)(m.in_len[r] / sizeof(**all));
	}
	if (rc == 0)
		qsort(*all, n, sizeof(**all), by_number);
	p->reach.others = *all;
	p->reach.n_others = n;
	vv_exchange_free(&m, p->g);
	vv_buf_fini(&b);
	return vv_group_agree(p->g, p->g->comm, rc); /* from here on no rank stops */
}

static int sweep(struct places *p, struct vv_gc_report *out)
{
	if (!vv_group_leads_storage_node(p->g))
		return 0;
	forget_others(&p->reach);
	vv_gc_keep_sets(&p->reach, &p->list);
	return vv_gc_sweep(&p->ctx->lineage, &p->list, &p->reach, VV_GC_CHEAP, NULL, out);
}

/* Finds the needs of the live epochs on all storage nodes. */
static int find_needs(struct places *p)
{
	int rc = vv_layer_holders_exchange(p->g, 0, &p->ctx->lineage, 0, &p->holders);

	if (rc)
		return rc;
	p->reach.lin = &p->ctx->lineage;
	rc = exchange(p, vv_group_leads_storage_node(p->g) ? mark(p) : 0);
	rc = vv_group_agree(p->g, p->g->comm, rc);
	if (rc)
		return rc;
	if (vv_group_leads_storage_node(p->g))
		rc = vv_reachable_add_copies(&p->reach, true);
	rc = exchange(p, rc ? rc : vv_reachable_sort(&p->reach));
	return vv_group_agree(p->g, p->g->comm, rc);
}

static void forget(struct places *p)
{
	vv_layer_holders_fini(&p->holders);
	vv_catalog_listing_fini(&p->list);
	vv_reachable_fini(&p->reach);
}

int vv_gc_ranks_gc(struct vv_context *ctx, uint64_t floor, struct vv_gc_report *out)
{
	struct places p = { .ctx = ctx, .g = ctx->group, .floor = floor };
	uint64_t *needed = NULL;
	int rc = find_live(&p);

	*out = (struct vv_gc_report){ .since = out->since };
	if (rc == 0)
		rc = find_needs(&p);
	if (rc == 0)
		rc = share_needed(&p, &needed);
	if (rc == 0)
		rc = vv_group_agree(p.g, p.g->comm, sweep(&p, out));
	vv_mem_free(needed);
	vv_mem_free(p.live);
	forget(&p);
	return rc;
}

int vv_gc_ranks_needs(struct vv_context *ctx, uint64_t epoch, struct vv_reachable *out)
{
	struct vv_group side = *ctx->group;
	struct places p = { .ctx = ctx, .g = &side, .live = &epoch, .n_live = 1 };
	int rc;

	side.comm = side.side; /* the program may be in a collective call */
	rc = find_needs(&p);
	*out = (struct vv_reachable){ 0 };
	if (rc == 0) {
		forget_others(&p.reach);
		*out = p.reach;
		p.reach = (struct vv_reachable){ 0 };
	}
	forget(&p);
	return rc;
}
