#include "engine/ranks/parity_ranks.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/context.h"
#include "engine/ranks/exchange.h"
#include <stdlib.h>
#include <string.h>

/* ---- failure domains ------------------------------------------------------------------------- */

void vv_parity_ranks_fini(struct vv_parity_domains *d, const struct vv_group *g)
{
	vv_group_free(g, d->name);
	vv_mem_free(d->first);
	vv_mem_free(d->number);
	d->name = NULL;
	d->first = d->number = NULL;
}

struct named_domain {
	const char *name;
	uint32_t rank;
};

static int by_name(const void *a, const void *b)
{
	const struct named_domain *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* The names are bytes of other ranks: they end somewhere. */
static int number_domains(struct vv_parity_domains *d, uint32_t ranks)
{
	struct named_domain *v = vv_mem_new(ranks, sizeof(*v));

	if (!v)
		return VV_ENOMEM;
	for (uint32_t r = 0; r < ranks; r++) {
		d->name[r][VV_PARITY_DOMAIN - 1] = '\0';
		if (!d->name[r][0])
			memcpy(d->name[r], "?", 2);
		v[r] = (struct named_domain){ d->name[r], r };
	}
	qsort(v, ranks, sizeof(*v), by_name);
	for (uint32_t i = 0; i < ranks; i++)
		d->first[v[i].rank] = i && strcmp(v[i].name, v[i - 1].name) == 0 ? d->first[v[i - 1].rank] : v[i].rank;
	d->n = 0;
	for (uint32_t r = 0; r < ranks; r++)
		d->number[r] = d->first[r] == r ? d->n++ : d->number[d->first[r]];
	vv_mem_free(v);
	return 0;
}

int vv_parity_ranks_domains(struct vv_group *g, const char mine[VV_PARITY_DOMAIN], struct vv_parity_domains *d)
{
	int rc;

	d->name = vv_mem_new(g->size, sizeof(*d->name));
	d->first = vv_mem_new(g->size, sizeof(*d->first));
	d->number = vv_mem_new(g->size, sizeof(*d->number));
	rc = vv_group_agree(g, g->comm, d->name && d->first && d->number ? 0 : VV_ENOMEM);
	if (rc == 0)
		rc = vv_comm_allgather(g->comm, mine, d->name, VV_PARITY_DOMAIN);
	return rc ? rc : vv_group_agree(g, g->comm, number_domains(d, g->size));
}

/* ---- a new epoch ----------------------------------------------------------------------------- */

static void add_layer(struct vv_parity_head *h, const struct vv_parity_domains *d, const struct vv_commit *c, uint32_t rank)
{
	struct vv_parity_layer *l = &h->layer[h->n_layers];

	*l = (struct vv_parity_layer){ .rank = rank, .len = c->rank[rank].file_len, .head = c->rank[rank].head,
				       .storage_node = (uint32_t)c->rank[rank].storage_node, .domain = (uint32_t)h->n_layers };
	memcpy(l->domain_name, d->name[rank], sizeof(l->domain_name));
	for (size_t i = h->n_layers; i-- > 0;)
		if (d->first[h->layer[i].rank] == d->first[rank])
			l->domain = h->layer[i].domain;
	h->n_layers++;
}

/* The set of this rank: the ranks of the domains in it. */
static int describe(const struct vv_context *ctx, const struct vv_parity_domains *d, const struct vv_commit *c, struct vv_parity_head *h)
{
	size_t sets = vv_parity_plan_sets(d->n, d->k + d->m);

	*h = (struct vv_parity_head){ .epoch = c->epoch, .n_ranks = c->n_ranks, .rank = ctx->rank, .k = (uint8_t)d->k, .m = (uint8_t)d->m };
	memcpy(h->lineage, ctx->lineage.id, sizeof(h->lineage));
	h->layer = vv_mem_new(c->n_ranks, sizeof(*h->layer));
	if (!h->layer)
		return VV_ENOMEM;
	for (uint32_t r = 0; r < c->n_ranks; r++)
		if (d->number[r] % sets == d->number[ctx->rank] % sets)
			add_layer(h, d, c, r);
	return 0;
}

static void want_parity(struct vv_parity_job *j)
{
	for (size_t i = 0; i < j->head.n_layers; i++) {
		j->data[i].there = true;
		j->data[i].place = j->parity[i].to = j->head.layer[i].rank;
		j->parity[i].wanted = true;
	}
}

int vv_parity_ranks_protect(struct vv_context *ctx, struct vv_comm *c, const struct vv_parity_domains *d, uint64_t epoch, uint64_t since,
			    struct vv_parity_built *out)
{
	struct vv_parity_io io = { .group = ctx->group, .comm = c, .lineage = &ctx->lineage };
	struct vv_parity_head head = { 0 };
	struct vv_parity_job j = { 0 };
	struct vv_commit commit = { 0 };
	int rc = vv_group_agree(ctx->group, c, 0); /* every store has the record now */

	if (rc)
		return rc;
	rc = vv_catalog_commit(&ctx->lineage, epoch, &commit);
	if (rc == 0 && commit.n_ranks != ctx->ranks)
		rc = vv_err_set(VV_EDAMAGED, "the record of epoch %llu is of other ranks", (unsigned long long)epoch);
	if (rc == 0)
		rc = describe(ctx, d, &commit, &head);
	head.since = since;
	if (rc == 0)
		rc = vv_parity_job_init(&j, &head);
	vv_parity_head_fini(&head);
	vv_commit_fini(&commit);
	rc = vv_group_agree(ctx->group, c, rc);
	if (rc == 0) {
		want_parity(&j);
		rc = vv_parity_build_run(&io, &j, out);
	}
	vv_parity_job_fini(&j);
	return rc;
}

/* ---- lost objects ---------------------------------------------------------------------------- */

/* Names, as words: number of layers; layers; then layer and ranks of each parity object. */
static int put_names(const struct vv_lineage *lin, struct vv_buf *b)
{
	struct vv_listing l = { 0 };
	int rc = vv_catalog_list(lin, 0, &l);

	if (rc == 0)
		vv_wire_put_u64(b, l.n_layers);
	for (size_t i = 0; rc == 0 && i < l.n_layers; i++)
		vv_wire_put_u64(b, l.layer[i].layer);
	for (size_t i = 0; rc == 0 && i < l.n_parity; i++) {
		vv_wire_put_u64(b, l.parity[i].layer);
		vv_wire_put_u64(b, l.parity[i].ranks);
	}
	vv_catalog_listing_fini(&l);
	return rc ? rc : vv_buf_check(b);
}

static bool is_layer(uint64_t layer)
{
	return vv_run_epoch(layer) >= 1 && vv_run_epoch(layer) <= VV_MAX_EPOCH;
}

static int get_names(struct vv_parity_sets *s, const uint8_t *p, size_t n, uint32_t place)
{
	struct vv_listing l = { 0 };
	struct vv_wire w = vv_wire_over(p, n);
	int rc = 0;

	l.n_layers = (size_t)vv_wire_u64(&w);
	if (l.n_layers > vv_wire_left(&w) / 8 || (vv_wire_left(&w) - 8 * l.n_layers) % 16)
		return vv_err_set(VV_EPEER, "rank %u sends a list of layers that cannot be", place);
	l.n_parity = (vv_wire_left(&w) - 8 * l.n_layers) / 16;
	l.layer = vv_mem_new(l.n_layers, sizeof(*l.layer));
	l.parity = vv_mem_new(l.n_parity, sizeof(*l.parity));
	rc = l.layer && l.parity ? 0 : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < l.n_layers; i++) {
		l.layer[i].layer = vv_wire_u64(&w);
		w.bad |= !is_layer(l.layer[i].layer);
	}
	for (size_t i = 0; rc == 0 && i < l.n_parity; i++) {
		uint64_t layer = vv_wire_u64(&w), ranks = vv_wire_u64(&w);

		w.bad |= !is_layer(layer) || ranks > VV_MAX_RANKS || ranks <= vv_run_rank(layer);
		l.parity[i].layer = layer;
		l.parity[i].ranks = (uint32_t)ranks;
	}
	if (rc == 0 && w.bad)
		rc = vv_err_set(VV_EPEER, "rank %u sends a list of layers that cannot be", place);
	if (rc == 0)
		rc = vv_parity_sets_add(s, &l, place);
	vv_catalog_listing_fini(&l);
	return rc;
}

/* The ranks of one storage node stay together. The store of the rank that has their lowest number
 * now gets their layers. */
static uint32_t choose_target(void *arg, uint64_t epoch, const struct vv_parity_layer *l)
{
	const struct vv_group *g = ((struct vv_context *)arg)->group;
	uint32_t lowest = l->storage_node ? l->storage_node - 1 : l->rank;

	(void)epoch;
	return g->storage_node[lowest % g->size];
}

/* The epoch may have no record any more. */
static int spread_record(void *arg, uint64_t epoch, bool rebuilt)
{
	int rc = rebuilt ? vv_group_spread_commit(arg, epoch) : 0;

	return rc == VV_EDAMAGED ? 0 : rc;
}

/* A session without redundancy has no names of domains: each storage node is one. */
static int begin_sets(struct vv_context *ctx, const struct vv_parity_domains *d, struct vv_parity_sets *s)
{
	struct vv_group *g = ctx->group;

	*s = (struct vv_parity_sets){ .io = { g, g->comm, &ctx->lineage }, .target = choose_target, .spread = spread_record,
				      .arg = ctx, .places = g->size, .domain = vv_mem_new(g->size, sizeof(*s->domain)) };
	for (uint32_t r = 0; s->domain && r < g->size; r++)
		s->domain[r] = g->storage_node[r] != r ? VV_PARITY_NO_PLACE : d->number ? d->number[r] : r;
	return s->domain ? 0 : VV_ENOMEM;
}

static int gather_names(struct vv_context *ctx, const struct vv_parity_domains *d, struct vv_parity_sets *s)
{
	enum { MOST = 1 << 30 };
	struct vv_group *g = ctx->group;
	struct vv_exchange m = { 0 };
	struct vv_buf b = { 0 };
	int rc = begin_sets(ctx, d, s);

	if (rc == 0 && vv_group_leads_storage_node(g))
		rc = put_names(&ctx->lineage, &b);
	rc = vv_exchange_gather(&m, g, rc, b.p, b.n, MOST);
	for (uint32_t r = 0; rc == 0 && r < g->size; r++)
		rc = m.in_len[r] ? get_names(s, vv_exchange_from(&m, g, r), (size_t)m.in_len[r], r) : 0;
	vv_parity_sets_sort(s);
	vv_buf_fini(&b);
	vv_exchange_free(&m, g);
	return vv_group_agree(g, g->comm, rc);
}

int vv_parity_ranks_rebuild(struct vv_context *ctx, const struct vv_parity_domains *d, uint64_t last, bool scan,
			    struct vv_parity_report *out)
{
	struct vv_parity_sets s;
	int rc = gather_names(ctx, d, &s);

	if (rc == 0)
		rc = vv_parity_rebuild_run(&s, last, scan, out);
	vv_parity_sets_fini(&s);
	return rc;
}

/* The sets of the epoch have all of its layers, the same `since`, and bear the losses that a new
 * epoch bears. Otherwise the result is 0. */
static int ask_sets(const struct vv_parity_sets *s, const struct vv_parity_domains *d, uint64_t epoch, uint64_t *since)
{
	struct vv_parity_job *j = NULL;
	size_t missing = 0, n = 0, layers = 0;
	uint32_t ranks = vv_parity_sets_epoch(s, epoch, &missing);
	int rc = ranks && !missing ? vv_parity_sets_load(s, epoch, &j, &n) : 0;

	*since = n ? j[0].head.since : 0;
	for (size_t i = 0; i < n; i++) {
		unsigned most = d->m < j[i].head.m ? d->m : j[i].head.m;

		if (j[i].head.since == *since && vv_parity_job_survives(&j[i], s->domain) >= (int)most)
			layers += j[i].head.n_layers;
		vv_parity_job_fini(&j[i]);
	}
	vv_mem_free(j);
	*since = ranks && layers == ranks ? *since : 0;
	return rc;
}

static uint64_t newest_complete(const struct vv_parity_sets *s)
{
	uint64_t newest = 0;
	size_t missing = 0;

	for (uint64_t e = vv_parity_sets_next(s, 0); e; e = vv_parity_sets_next(s, e))
		if (vv_parity_sets_epoch(s, e, &missing) && !missing)
			newest = e;
	return newest;
}

int vv_parity_ranks_ask(struct vv_context *ctx, const struct vv_parity_domains *d, uint64_t epoch, struct vv_parity_answer *out)
{
	struct vv_parity_sets s;
	int rc = gather_names(ctx, d, &s);

	*out = (struct vv_parity_answer){ .since = 1 };
	if (rc == 0 && epoch)
		rc = ask_sets(&s, d, epoch, &out->since);
	if (rc == 0 && out->since && vv_parity_sets_is_partial(&s, out->since))
		out->since = 0;
	if (rc == 0)
		out->complete = newest_complete(&s);
	vv_parity_sets_fini(&s);
	return rc;
}
