#include "engine/ranks/rank_parts.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/lineage/layer_file.h"
#include "engine/ranks/exchange.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 28 }; /* bytes from a rank */

void vv_rank_parts_fini(struct vv_rank_parts *p)
{
	for (uint32_t r = 0; p->rank && r < p->ranks; r++) {
		vv_mem_free(p->rank[r].by_name);
		vv_head_fini(&p->rank[r].head);
	}
	vv_mem_free(p->rank);
	*p = (struct vv_rank_parts){ 0 };
}

/* ---- search ---------------------------------------------------------------------------------- */

static int compare_arrays(const char *a, const char *b)
{
	size_t n = vv_distribution_name_length(a), m = vv_distribution_name_length(b);
	int order = memcmp(a, b, n < m ? n : m);

	return order ? order : (n > m) - (n < m);
}

static int compare(const char *a, const char *b)
{
	int order = compare_arrays(a, b);

	return order ? order : strcmp(a, b);
}

static int by_name(const void *a, const void *b)
{
	const struct vv_head_region *const *x = a, *const *y = b;

	return compare((*x)->name, (*y)->name);
}

static int sort(struct vv_rank_regions *r)
{
	size_t n = r->head.n_regions;

	r->by_name = vv_mem_new(n, sizeof(struct vv_head_region *));
	if (!r->by_name)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++)
		r->by_name[i] = &r->head.region[i];
	if (n)
		qsort(r->by_name, n, sizeof(struct vv_head_region *), by_name);
	return 0;
}

const struct vv_head_region *vv_rank_parts_region(const struct vv_rank_regions *r, const char *name)
{
	size_t i;

	VV_SEARCH(i, 0, r->head.n_regions, compare(r->by_name[i]->name, name) < 0);
	return i < r->head.n_regions && strcmp(r->by_name[i]->name, name) == 0 ? r->by_name[i] : NULL;
}

size_t vv_rank_parts_array(const struct vv_rank_regions *r, const char *name, const struct vv_head_region *const **out)
{
	size_t i, end;

	VV_SEARCH(i, 0, r->head.n_regions, compare_arrays(r->by_name[i]->name, name) < 0);
	VV_SEARCH(end, i, r->head.n_regions, compare_arrays(r->by_name[end]->name, name) == 0);
	*out = r->by_name + i;
	return end - i;
}

/* ---- the regions of a rank as bytes ---------------------------------------------------------- */

static int put(const struct vv_head *h, uint32_t rank, struct vv_buf *out)
{
	struct vv_buf regions = { 0 }, parts = { 0 };

	vv_head_put_regions(h, &regions);
	if (vv_distribution_has_any(h))
		vv_distribution_put(h, &parts);
	vv_wire_put_u32(out, rank);
	vv_wire_put_u64(out, regions.n);
	vv_buf_add(out, regions.p, regions.n);
	vv_wire_put_u64(out, parts.n);
	vv_buf_add(out, parts.p, parts.n);
	out->failed |= regions.failed || parts.failed;
	vv_buf_fini(&regions);
	vv_buf_fini(&parts);
	return vv_buf_check(out);
}

static const uint8_t *get_bytes(struct vv_wire *w, size_t *n)
{
	*n = (size_t)vv_wire_u64(w);
	w->bad |= *n > vv_wire_left(w);
	return w->bad ? NULL : vv_wire_bytes(w, *n);
}

/* The first of several descriptions of a rank counts: they are all checked against one record. */
static int get(struct vv_wire *w, struct vv_rank_parts *out)
{
	uint32_t rank = vv_wire_u32(w);
	struct vv_head h = { .parent = 1 }; /* regions may continue others */
	size_t n_regions, n_parts;
	const uint8_t *regions = get_bytes(w, &n_regions), *parts = get_bytes(w, &n_parts);
	int rc;

	if (w->bad || rank >= out->ranks)
		return vv_err_set(VV_EPEER, "a rank sends a list of regions that is malformed");
	rc = vv_head_get_regions(&h, regions, n_regions);
	if (rc == 0 && n_parts)
		rc = vv_distribution_get(&h, parts, n_parts);
	h.ranks = out->ranks; /* it is there */
	if (rc || out->rank[rank].head.ranks) {
		vv_head_fini(&h);
		return rc;
	}
	out->rank[rank].head = h;
	return sort(&out->rank[rank]);
}

static int get_all(const uint8_t *p, size_t n, struct vv_rank_parts *out)
{
	struct vv_wire w = vv_wire_over(p, n);
	int rc = 0;

	while (rc == 0 && vv_wire_left(&w))
		rc = get(&w, out);
	return rc;
}

/* Sends this rank's descriptions to all. */
static int spread(struct vv_group *g, int rc, const struct vv_buf *mine, uint32_t ranks, struct vv_rank_parts *out)
{
	struct vv_exchange m = { 0 };

	*out = (struct vv_rank_parts){ ranks, vv_mem_new(ranks, sizeof(*out->rank)) };
	rc = rc ? rc : out->rank ? 0 : VV_ENOMEM;
	if (g)
		rc = vv_exchange_gather(&m, g, rc, mine->p, mine->n, MOST);
	for (uint32_t r = 0; g && rc == 0 && m.in && r < g->size; r++)
		rc = get_all(vv_exchange_from(&m, g, r), (size_t)m.in_len[r], out);
	if (!g && rc == 0)
		rc = get_all(mine->p, mine->n, out);
	if (g) {
		rc = vv_group_agree(g, g->comm, rc);
		vv_exchange_free(&m, g);
	}
	if (rc)
		vv_rank_parts_fini(out);
	return rc;
}

/* ---- of an epoch ----------------------------------------------------------------------------- */

static int describe(struct vv_context *ctx, const struct vv_commit *c, uint32_t rank, struct vv_buf *out)
{
	struct vv_layer_file *f = NULL;
	int rc = vv_layer_file_open(&ctx->lineage, vv_run_layer(c->epoch, rank), VV_LAYER_FILE_HEAD | VV_LAYER_FILE_LAZY, &f);

	if (rc == 0)
		rc = vv_layer_file_check_head(f, &c->rank[rank].head);
	if (rc == 0)
		rc = put(&f->head, rank, out);
	vv_layer_file_close(f);
	return rc;
}

/* With stores of their own, the leader of each storage node describes all layers that it has. A
 * damaged one counts as absent: another store may have it. */
static int describe_here(struct vv_context *ctx, const struct vv_commit *c, struct vv_buf *out)
{
	struct vv_listing l = { 0 };
	int rc = vv_group_leads_storage_node(ctx->group) ? vv_catalog_list(&ctx->lineage, c->epoch, &l) : 0;

	for (uint32_t k = 0; rc == 0 && k < c->n_ranks; k++) {
		if (!vv_catalog_has_layer(&l, vv_run_layer(c->epoch, k)))
			continue;
		rc = describe(ctx, c, k, out);
		if (rc == VV_EDAMAGED) {
			vv_log_warn("%s", vv_err_last());
			vv_err_clear();
			rc = 0;
		}
	}
	vv_catalog_listing_fini(&l);
	return rc;
}

static int err_missing(const struct vv_lineage *lin, uint32_t rank, uint64_t epoch)
{
	return vv_err_set(VV_EDAMAGED, "no rank's store has the layer of rank %u in epoch %" PRIu64 " whole; start a rank where that store is, run 'varve rebuild %s %s STORE...' over the stores of all ranks, or restart from an older epoch",
			  rank, epoch, lin->name, lin->store->url);
}

static int check_complete(const struct vv_lineage *lin, const struct vv_rank_parts *p, uint64_t epoch)
{
	for (uint32_t r = 0; r < p->ranks; r++)
		if (!p->rank[r].head.ranks)
			return err_missing(lin, r, epoch);
	return 0;
}

/* Ranks 0, n, 2 n and so on, from this one on, of the n ranks of the session. They may have been
 * in stores of their own, which are not all here. */
static int describe_share(struct vv_context *ctx, const struct vv_commit *c, struct vv_buf *out)
{
	uint32_t first = ctx->group ? ctx->group->rank : 0, step = ctx->group ? ctx->group->size : 1;
	int rc = 0;

	for (uint32_t k = first; rc == 0 && k < c->n_ranks; k += step) {
		rc = describe(ctx, c, k, out);
		if (rc == VV_EDAMAGED && c->rank[k].storage_node)
			rc = err_missing(&ctx->lineage, k, c->epoch);
	}
	return rc;
}

int vv_rank_parts_of_epoch(struct vv_context *ctx, int rc, uint64_t epoch, uint32_t ranks, struct vv_rank_parts *out)
{
	struct vv_commit c = { 0 };
	struct vv_buf b = { 0 };

	if (rc == 0)
		rc = vv_catalog_commit(&ctx->lineage, epoch, &c);
	if (rc == 0)
		rc = (ctx->group && ctx->group->has_local_stores ? describe_here : describe_share)(ctx, &c, &b);
	rc = spread(ctx->group, rc, &b, ranks, out);
	if (rc == 0)
		rc = check_complete(&ctx->lineage, out, epoch);
	if (rc)
		vv_rank_parts_fini(out);
	vv_commit_fini(&c);
	vv_buf_fini(&b);
	return rc;
}

/* ---- of the session -------------------------------------------------------------------------- */

/* The names and distributions stay the session's. */
static int head_of(struct vv_region *const *region, size_t n, struct vv_head *h)
{
	h->region = vv_mem_new(n, sizeof(*h->region));
	if (!h->region)
		return VV_ENOMEM;
	for (; h->n_regions < n; h->n_regions++) {
		const struct vv_region *r = region[h->n_regions];

		h->region[h->n_regions] = (struct vv_head_region){ .name = r->name, .shape = r->shape, .part = r->part };
	}
	return 0;
}

int vv_rank_parts_declared(const struct vv_context *ctx, struct vv_region *const *region, size_t n, struct vv_rank_parts *out)
{
	struct vv_head h = { 0 };
	struct vv_buf b = { 0 };
	int rc = head_of(region, n, &h);

	if (rc == 0)
		rc = put(&h, ctx->rank, &b);
	vv_mem_free(h.region);
	rc = spread(ctx->group, rc, &b, ctx->ranks, out);
	vv_buf_fini(&b);
	return rc;
}
