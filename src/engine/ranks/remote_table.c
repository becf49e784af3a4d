#include "engine/ranks/remote_table.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/format/distribution.h"
#include "engine/lineage/run_table.h"
#include "engine/ranks/exchange.h"
#include <inttypes.h>
#include <string.h>

/* ---- a table as bytes: the sections of a head without a parent ------------------------------- */

enum {
	SECTIONS = 5,
	MOST_ASKS = VV_MAX_RANKS * 4, /* bytes */
};

struct asking { /* for tables of an epoch */
	uint64_t epoch;
	uint32_t ranks;       /* of the epoch */
	const uint32_t *rank; /* the ranks whose tables are needed */
	size_t n;
	struct vv_run_table *out; /* their tables; epoch 0: not there yet */
	struct vv_err_state why;  /* a table is not in this storage node */
};

static int put_table(const struct vv_context *ctx, const struct vv_run_table *t, struct vv_buf *out)
{
	struct vv_head h = { .epoch = t->epoch, .rank = t->rank, .ranks = t->ranks, .payload = VV_MAX_PAYLOAD,
			     .digest_kind = t->digest_kind, .n_regions = t->n };
	struct vv_buf part[SECTIONS] = { 0 };
	int rc;

	memcpy(h.lineage, ctx->lineage.id, sizeof(h.lineage));
	h.region = vv_mem_new(t->n, sizeof(*h.region));
	if (!h.region)
		return VV_ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		h.region[i] = (struct vv_head_region){ .name = t->region[i].name, .shape = t->region[i].shape, .runs = t->region[i].runs, .part = t->region[i].part };
	vv_head_put_ident(&h, &part[0]);
	vv_head_put_regions(&h, &part[1]);
	rc = vv_head_put_sources_and_runs(&h, &part[2], &part[3]);
	if (vv_distribution_has_any(&h))
		vv_distribution_put(&h, &part[4]);
	for (int i = 0; i < SECTIONS; i++) {
		vv_wire_put_u64(out, part[i].n);
		vv_buf_add(out, part[i].p, part[i].n);
		out->failed |= part[i].failed;
		vv_buf_fini(&part[i]);
	}
	vv_mem_free(h.region);
	return rc ? rc : vv_buf_check(out);
}

/* The regions of the head become the table's. */
static int move_regions(struct vv_head *h, struct vv_run_table *t)
{
	int rc;

	t->region = vv_mem_new(h->n_regions, sizeof(*t->region));
	if (!t->region)
		return VV_ENOMEM;
	for (; t->n < h->n_regions; t->n++) {
		struct vv_head_region *r = &h->region[t->n];

		t->region[t->n] = (struct vv_run_table_region){ .name = r->name, .shape = r->shape, .runs = r->runs, .part = r->part };
		r->name = NULL;
		r->part = NULL;
		r->runs = (struct vv_runs){ 0 };
	}
	rc = vv_map_reserve(&t->by_name, t->n);
	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = vv_map_put(&t->by_name, t->region[i].name, i);
	return rc;
}

static int get_table(const struct vv_context *ctx, const struct asking *ask, uint32_t rank, const uint8_t *p, size_t n, struct vv_run_table *out)
{
	struct vv_wire w = vv_wire_over(p, n);
	struct vv_run_table t = { .epoch = ask->epoch, .rank = rank, .ranks = ask->ranks, .depth = VV_MAX_DEPTH, .layers = 1 };
	struct vv_head h = { 0 };
	const uint8_t *part[SECTIONS];
	size_t len[SECTIONS];
	int rc = 0;

	for (int i = 0; i < SECTIONS; i++) {
		len[i] = (size_t)vv_wire_u64(&w);
		part[i] = len[i] <= vv_wire_left(&w) ? vv_wire_bytes(&w, len[i]) : NULL;
		w.bad |= !part[i];
	}
	if (w.bad || vv_wire_left(&w))
		rc = vv_err_set(VV_EPEER, "malformed");
	if (rc == 0)
		rc = vv_head_get_ident(&h, part[0], len[0]);
	if (rc == 0 && (h.epoch != ask->epoch || h.rank != rank || h.ranks != ask->ranks ||
			memcmp(h.lineage, ctx->lineage.id, sizeof(h.lineage)) != 0))
		rc = vv_err_set(VV_EPEER, "of another layer");
	if (rc == 0)
		rc = vv_head_get_regions(&h, part[1], len[1]);
	if (rc == 0)
		rc = vv_head_get_runs(&h, part[2], len[2], part[3], len[3]);
	if (rc == 0 && len[4])
		rc = vv_distribution_get(&h, part[4], len[4]);
	t.digest_kind = h.digest_kind;
	if (rc == 0)
		rc = move_regions(&h, &t);
	vv_head_fini(&h);
	if (rc)
		vv_run_table_fini(&t);
	else
		*out = t;
	return rc;
}

/* ---- the exchange ---------------------------------------------------------------------------- */

/* Adds the table of the rank if this storage node has it; a damaged one counts as absent. A table
 * is preceded by the rank and its length. */
static int offer(const struct vv_context *ctx, const struct vv_listing *l, uint64_t epoch, uint32_t rank, struct vv_buf *out)
{
	struct vv_run_table t = { 0 };
	struct vv_buf b = { 0 };
	int rc;

	if (!vv_catalog_has_layer(l, vv_run_layer(epoch, rank)))
		return 0;
	rc = vv_run_table_load(&ctx->lineage, epoch, rank, NULL, &t);
	if (rc == VV_EDAMAGED || rc == VV_ENOENT) {
		vv_log_warn("the layer of rank %u is asked for, but %s", rank, vv_err_last());
		vv_err_clear();
		return 0;
	}
	if (rc == 0)
		rc = put_table(ctx, &t, &b);
	if (rc == 0) {
		vv_wire_put_u32(out, rank);
		vv_wire_put_u64(out, b.n);
		vv_buf_add(out, b.p, b.n);
		rc = vv_buf_check(out);
	}
	vv_buf_fini(&b);
	vv_run_table_fini(&t);
	return rc;
}

/* The leader of every storage node answers ranks of other storage nodes. */
static int answer(const struct vv_context *ctx, uint64_t epoch, const struct vv_exchange *asks, struct vv_exchange *m)
{
	const struct vv_group *g = ctx->group;
	struct vv_listing l = { 0 };
	struct vv_buf b = { 0 };
	int rc = vv_exchange_new(m, g->size, 0);

	if (rc == 0 && vv_group_leads_storage_node(g))
		rc = vv_catalog_list(&ctx->lineage, epoch, &l);
	for (uint32_t r = 0; rc == 0 && vv_group_leads_storage_node(g) && r < g->size; r++) {
		struct vv_wire w = vv_wire_over(asks->in_len[r] ? vv_exchange_from(asks, g, r) : NULL, (size_t)asks->in_len[r]);
		size_t before = b.n;

		while (rc == 0 && vv_wire_left(&w) >= sizeof(uint32_t) && g->storage_node[r] != g->rank)
			rc = offer(ctx, &l, epoch, vv_wire_u32(&w), &b);
		m->out_len[r] = b.n - before;
	}
	vv_catalog_listing_fini(&l);
	if (rc) {
		vv_buf_fini(&b);
		return rc;
	}
	if (b.n) {
		vv_mem_free(m->out);
		m->out = b.p; /* both are heap memory of the same kind */
	}
	return 0;
}

/* Takes the tables that one rank has sent, unless another one has sent them before. */
static int take(const struct vv_context *ctx, const struct asking *ask, uint32_t who, const uint8_t *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);
	int rc = 0;

	while (rc != VV_ENOMEM && vv_wire_left(&w)) {
		uint32_t rank = vv_wire_u32(&w);
		uint64_t len = vv_wire_u64(&w);
		const uint8_t *bytes = len <= vv_wire_left(&w) ? vv_wire_bytes(&w, (size_t)len) : NULL;
		size_t i = 0;

		if (w.bad || !bytes)
			return vv_err_set(VV_EPEER, "rank %u sends tables that are malformed", who);
		while (i < ask->n && ask->rank[i] != rank)
			i++;
		if (i == ask->n || ask->out[i].epoch)
			continue;
		rc = get_table(ctx, ask, rank, bytes, (size_t)len, &ask->out[i]);
		if (rc == 0)
			vv_log_info("the layer of rank %u in epoch %" PRIu64 " is in the store of rank %u", rank, ask->epoch, who);
		else if (rc != VV_ENOMEM)
			vv_log_warn("the table that rank %u sent: %s", who, vv_err_last());
	}
	return rc == VV_ENOMEM ? rc : 0;
}

static int take_all(const struct vv_context *ctx, const struct asking *ask, const struct vv_exchange *m)
{
	const uint8_t *p = m->in;
	int rc = 0;

	for (uint32_t r = 0; rc == 0 && r < ctx->ranks; p += m->in_len[r++])
		rc = take(ctx, ask, r, p, (size_t)m->in_len[r]);
	for (size_t i = 0; rc == 0 && i < ask->n; i++)
		if (!ask->out[i].epoch)
			rc = vv_err_set(ask->why.code, "no rank's store has the layer of rank %u in epoch %" PRIu64 " whole (here: %s); start the rank where "
					"its layer is, or restart from an older epoch", ask->rank[i], ask->epoch, ask->why.message);
	return rc;
}

/* Called if any rank lacks a table. */
static int ask_all(struct vv_context *ctx, struct asking *ask)
{
	struct vv_exchange asks = { 0 }, tables = { 0 };
	struct vv_buf mine = { 0 };
	int rc;

	for (size_t i = 0; i < ask->n; i++)
		if (!ask->out[i].epoch)
			vv_wire_put_u32(&mine, ask->rank[i]);
	rc = vv_exchange_gather(&asks, ctx->group, vv_buf_check(&mine), mine.p, mine.n, MOST_ASKS);
	if (rc == 0)
		rc = vv_exchange_send(&tables, ctx->group, answer(ctx, ask->epoch, &asks, &tables), 1);
	if (rc == 0)
		rc = vv_group_agree(ctx->group, ctx->group->comm, take_all(ctx, ask, &tables));
	vv_exchange_free(&asks, ctx->group);
	vv_exchange_free(&tables, ctx->group);
	vv_buf_fini(&mine);
	return rc;
}

static int load_here(struct vv_context *ctx, struct asking *ask, bool elsewhere, uint64_t *miss)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ask->n; i++) {
		rc = vv_run_table_load(&ctx->lineage, ask->epoch, ask->rank[i], NULL, &ask->out[i]);
		if ((rc != VV_EDAMAGED && rc != VV_EIO && rc != VV_EDENIED) || !elsewhere)
			continue;
		/* Other errors only say that a layer is on another node. */
		if (ask->why.code != VV_EIO && ask->why.code != VV_EDENIED)
			vv_err_save(rc, &ask->why);
		++*miss;
		rc = 0;
	}
	return rc;
}

int vv_remote_table_many(struct vv_context *ctx, int rc, uint64_t epoch, uint32_t ranks, const uint32_t *rank, size_t n, struct vv_run_table *out)
{
	struct asking ask = { .epoch = epoch, .ranks = ranks, .rank = rank, .n = n, .out = out };
	uint64_t miss = 0;

	for (size_t i = 0; i < n; i++)
		out[i] = (struct vv_run_table){ 0 };
	if (rc == 0)
		rc = load_here(ctx, &ask, ctx->group && ctx->group->has_local_stores, &miss);
	if (ctx->group)
		rc = vv_group_sum(ctx->group, ctx->group->comm, rc, &miss, 1);
	if (rc == 0 && miss)
		rc = ask_all(ctx, &ask);
	for (size_t i = 0; rc && i < n; i++)
		vv_run_table_fini(&out[i]);
	return rc;
}

int vv_remote_table_table(struct vv_context *ctx, int rc, uint64_t epoch, struct vv_run_table *out)
{
	struct vv_run_table t = { 0 };

	rc = vv_remote_table_many(ctx, rc, epoch, ctx->ranks, &ctx->rank, 1, &t);
	if (rc == 0)
		*out = t;
	return rc;
}
