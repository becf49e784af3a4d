/* Every rank learns the regions of all ranks, as stored and as declared. For each of its regions it
 * finds the stored regions that overlap it, and composes the region's runs from theirs
 * (read/compose.c). Then the bytes are read as in any other restart. */
#include "engine/session/redistribute.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/test_point.h"
#include "engine/lineage/run_table.h"
#include "engine/ranks/group.h"
#include "engine/ranks/part_sources.h"
#include "engine/ranks/remote_read.h"
#include "engine/ranks/remote_table.h"
#include "engine/read/compose.h"
#include "engine/read/device_restore.h"
#include "engine/threads.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NO_RANK UINT32_MAX

enum { ROUND = 1 << 19 }; /* runs after which a round ends */

struct region_plan {
	const struct vv_region *region;
	struct vv_part_sources from;
	struct vv_composition c;
};

struct redistribution {
	struct varve *v;
	uint64_t epoch;
	struct vv_rank_parts old, now;
	struct region_plan *plan; /* of each region */
	uint32_t *rank;           /* ranks whose tables are needed, ascending, and their tables */
	struct vv_run_table *table;
	size_t n_tables;
	uint64_t need, span;      /* bytes that are needed, and those from the first to the last of them */
};

bool vv_redistribute_has_moved(const struct varve *v, const struct vv_run_table *t)
{
	for (size_t i = 0; i < v->n_regions; i++) {
		const struct vv_region *r = v->region[i];
		size_t k = vv_run_table_find(t, r->name);

		/* An array may be in other regions than before: T instead of T#0. A region that was
		 * plain in the epoch, or is now, is treated as plain. */
		if (r->part && (k == t->n || (t->region[k].part && !vv_distribution_same(&r->shape, r->part, &t->region[k].shape, t->region[k].part))))
			return true;
	}
	return false;
}

static int agree(const struct varve *v, int rc)
{
	return v->ctx.group ? vv_group_agree(v->ctx.group, v->ctx.group->comm, rc) : rc;
}

/* ---- the stored regions that a region is filled from ----------------------------------------- */

static int refuse_plain(const struct redistribution *d, const struct vv_region *r)
{
	return vv_err_set(VV_EMISMATCH, "epoch %" PRIu64 " of lineage '%s' was written by %u rank(s), this job has %u, and region '%s' belongs to a single rank; run it with %u "
			  "ranks. A program that declares its regions by varve_protect_slab, varve_protect_shared or varve_protect_list restarts on any number of ranks",
			  d->epoch, d->v->ctx.lineage.name, d->old.ranks, d->v->ctx.ranks, r->name, d->old.ranks);
}

static int plan_region(struct redistribution *d, struct region_plan *p)
{
	const struct vv_region *r = p->region;
	struct vv_part_wanted w = { r->name, d->v->ctx.lineage.name, d->epoch, &d->old, d->v->ctx.rank, r->shape, r->part };
	uint64_t first, declared;

	if (!r->part && d->old.ranks != d->v->ctx.ranks)
		return refuse_plain(d, r);
	if (!r->part)
		return vv_part_sources_whole(&w, d->v->ctx.rank, &p->from);
	if (r->part->kind == VV_DISTRIBUTION_SHARED)
		return vv_part_sources_whole(&w, d->v->ctx.rank % d->old.ranks, &p->from);
	if (r->part->kind == VV_DISTRIBUTION_SLAB)
		return vv_part_sources_slab(&w, &p->from);
	vv_part_sources_count_items(&d->now, r->name, d->v->ctx.rank, &first, &declared);
	return vv_part_sources_list(&w, first, declared, &p->from);
}

/* ---- their tables ---------------------------------------------------------------------------- */

static int list_ranks(struct redistribution *d)
{
	bool *needed = vv_mem_new(d->old.ranks, sizeof(*needed));

	d->rank = vv_mem_new(d->old.ranks, sizeof(*d->rank));
	if (!needed || !d->rank) {
		vv_mem_free(needed);
		return VV_ENOMEM;
	}
	for (size_t i = 0; i < d->v->n_regions; i++)
		for (size_t k = 0; k < d->plan[i].from.n; k++)
			needed[d->plan[i].from.v[k].rank] = true;
	for (uint32_t r = 0; r < d->old.ranks; r++)
		if (needed[r])
			d->rank[d->n_tables++] = r;
	vv_mem_free(needed);
	d->table = vv_mem_new(d->n_tables, sizeof(*d->table));
	return d->table ? 0 : VV_ENOMEM;
}

static const struct vv_run_table *table_of(const struct redistribution *d, uint32_t rank)
{
	size_t i;

	VV_SEARCH(i, 0, d->n_tables, d->rank[i] < rank);
	return &d->table[i];
}

/* Bytes of the source that are needed, and bytes from the first to the last of them. */
static void measure(struct redistribution *d, const struct region_plan *p, const struct vv_part_source *s)
{
	struct vv_box both;
	uint64_t first = 0, last = 0;

	if (!vv_distribution_intersect(&s->provided, &p->from.memory, &both))
		return;
	for (unsigned i = 0; i < both.ndim; i++) {
		uint64_t len = (uint64_t)(s->memory.end[i] - s->memory.start[i]);

		first = first * len + (uint64_t)(both.start[i] - s->memory.start[i]);
		last = last * len + (uint64_t)(both.end[i] - 1 - s->memory.start[i]);
	}
	d->need += vv_distribution_volume(&both) * p->from.element / (p->region->part && p->region->part->kind == VV_DISTRIBUTION_SHARED ? d->v->ctx.ranks : 1);
	d->span += (last - first + 1) * p->from.element;
}

static int begin_composition(struct redistribution *d, struct region_plan *p)
{
	p->c = (struct vv_composition){ .memory = p->from.memory, .element = p->from.element, .n = p->from.n };
	p->c.source = vv_mem_new(p->from.n, sizeof(*p->c.source));
	if (!p->c.source)
		return VV_ENOMEM;
	for (size_t i = 0; i < p->from.n; i++) {
		const struct vv_part_source *s = &p->from.v[i];
		const struct vv_run_table *t = table_of(d, s->rank);
		size_t k = vv_run_table_find(t, s->region->name);

		if (k == t->n || t->region[k].shape.len != s->region->shape.len)
			return vv_err_set(VV_EDAMAGED, "the layer of rank %u in epoch %" PRIu64 " is not the same in all stores", s->rank, d->epoch);
		measure(d, p, s);
		p->c.source[i] = (struct vv_compose_source){ s->memory, s->provided, &t->region[k].runs, 0 };
	}
	return vv_compose_begin(&p->c);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Composes the next wants, up to a limit. to: the memory of each region. */
static int compose_round(struct redistribution *d, const struct vv_want *to, size_t *next, struct vv_composed *out)
{
	int rc = 0;

	vv_compose_clear(out);
	while (rc == 0 && *next < d->v->n_regions && out->runs.n < ROUND) {
		struct region_plan *p = &d->plan[*next];

		if (p->c.done || !p->c.n)
			++*next;
		else
			rc = vv_compose_slice(&p->c, to[*next].to, p->region->name, out);
	}
	return rc;
}

static bool is_one_host(const struct vv_group *g)
{
	for (uint32_t r = 0; r < g->size; r++)
		if (g->host[r] != g->host[0])
			return false;
	return true;
}

/* Where ranks of several hosts need parts of the same blocks, each block is read by one rank, which
 * sends the others their bytes. The ranks of one host share the page cache, where a block that
 * another rank has read is read faster. */
static int choose_reader(struct redistribution *d, int rc, bool *once)
{
	struct vv_group *g = d->v->ctx.group;
	uint64_t sum[2] = { d->need, d->span };

	rc = vv_group_sum(g, g->comm, rc, sum, 2);
	*once = rc == 0 && !g->has_local_stores && !is_one_host(g) && sum[1] / 11 > sum[0] / 10;
	return rc;
}

static int read_round(struct redistribution *d, int rc, struct vv_composed *o, bool once, bool *more)
{
	struct vv_context *ctx = &d->v->ctx;
	uint64_t left = o->n;
	bool *copied;

	if (!ctx->group) {
		*more = o->n > 0;
		return rc || !o->n ? rc : vv_restore_read(&ctx->lineage, ctx->pool, vv_compose_wants(o), o->n);
	}
	rc = vv_group_sum(ctx->group, ctx->group->comm, rc, &left, 1);
	*more = left > 0;
	if (rc || !left)
		return rc;
	copied = vv_mem_new(o->n, sizeof(*copied));
	rc = (once ? vv_remote_read_once : vv_remote_read_read)(ctx, copied ? 0 : VV_ENOMEM, vv_compose_wants(o), o->n, copied);
	vv_mem_free(copied);
	return rc;
}

static int read_all(struct redistribution *d, int rc, const struct vv_want *to)
{
	struct vv_composed o = { 0 };
	bool more = true, once = false;
	size_t next = 0;

	for (size_t i = 0; rc == 0 && i < d->v->n_regions; i++)
		rc = begin_composition(d, &d->plan[i]);
	if (d->v->ctx.group)
		rc = choose_reader(d, rc, &once);
	/* Other ranks read parts of this rank's layers, too: all by the page cache. */
	d->v->ctx.lineage.rank = NO_RANK;
	vv_test_point("composed");
	while (rc == 0 && more)
		rc = read_round(d, compose_round(d, to, &next, &o), &o, once, &more);
	d->v->ctx.lineage.rank = d->v->ctx.rank;
	vv_test_point("filled");
	vv_compose_fini(&o);
	return rc;
}

/* Memory of devices is filled in the host's. Bytes that no rank has stay as they were. */
static int fetch_from_devices(const struct vv_device_restore *b)
{
	int rc = 0, device;

	for (size_t i = 0; rc == 0 && i < b->n; i++)
		if (b->to[i])
			rc = vv_device_restore_space(b->to[i], (size_t)b->want[i].len, &device)->copy_out(b->want[i].to, b->to[i], (size_t)b->want[i].len);
	return rc;
}

static int fill(struct redistribution *d, int rc)
{
	struct vv_want *to = vv_mem_new(d->v->n_regions, sizeof(*to));
	struct vv_device_restore host_copies = { 0 };
	struct vv_make_writable writable = { 0 };

	rc = rc ? rc : to ? vv_threads_start(&d->v->ctx) : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < d->v->n_regions; i++)
		to[i] = (struct vv_want){ .len = d->v->region[i]->shape.len, .to = d->v->region[i]->p, .name = d->v->region[i]->name };
	if (rc == 0)
		rc = vv_device_restore_begin(&host_copies, to, d->v->n_regions);
	if (rc == 0)
		rc = fetch_from_devices(&host_copies);
	if (rc == 0)
		rc = vv_restore_make_writable(to, d->v->n_regions, &writable);
	rc = vv_device_restore_end(&host_copies, read_all(d, rc, to));
	rc = agree(d->v, vv_restore_protect_again(&writable, rc));
	vv_mem_free(to);
	return rc;
}

static void fini(struct redistribution *d)
{
	for (size_t i = 0; d->plan && i < d->v->n_regions; i++) {
		vv_part_sources_fini(&d->plan[i].from);
		vv_mem_free(d->plan[i].c.source);
	}
	for (size_t i = 0; d->table && i < d->n_tables; i++)
		vv_run_table_fini(&d->table[i]);
	vv_mem_free(d->plan);
	vv_mem_free(d->table);
	vv_mem_free(d->rank);
	vv_rank_parts_fini(&d->old);
	vv_rank_parts_fini(&d->now);
}

static int plan_all(struct redistribution *d)
{
	int rc = 0;

	d->plan = vv_mem_new(d->v->n_regions, sizeof(*d->plan));
	if (!d->plan)
		return VV_ENOMEM;
	for (size_t i = 0; i < d->v->n_regions; i++)
		d->plan[i].region = d->v->region[i];
	for (size_t i = 0; rc == 0 && i < d->v->n_regions; i++)
		rc = plan_region(d, &d->plan[i]);
	return rc ? rc : list_ranks(d);
}

int vv_redistribute_read(struct varve *v, uint64_t epoch, uint32_t ranks)
{
	struct redistribution d = { .v = v, .epoch = epoch };
	int rc = vv_rank_parts_of_epoch(&v->ctx, 0, epoch, ranks, &d.old);

	if (rc == 0)
		rc = vv_rank_parts_declared(&v->ctx, v->region, v->n_regions, &d.now);
	if (rc == 0)
		rc = agree(v, plan_all(&d));
	if (rc == 0)
		rc = vv_remote_table_many(&v->ctx, 0, epoch, ranks, d.rank, d.n_tables, d.table);
	if (rc == 0)
		rc = fill(&d, 0);
	if (rc == 0 && v->ctx.rank == 0)
		vv_log_info("epoch %" PRIu64 " of '%s', of %u rank(s), is redistributed to %u", epoch, v->ctx.lineage.name, ranks, v->ctx.ranks);
	fini(&d);
	return rc;
}

int vv_redistribute_list(struct varve *v, uint64_t epoch, uint32_t ranks, const char *name, uint64_t *share, uint64_t *total)
{
	const struct vv_head_region *mine;
	struct vv_rank_parts p = { 0 };
	uint64_t before, n;
	int rc = vv_rank_parts_of_epoch(&v->ctx, 0, epoch, ranks, &p);

	if (rc)
		return rc;
	if (!vv_part_sources_count_items(&p, name, 0, &before, &n))
		rc = vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has no list '%s'", epoch, v->ctx.lineage.name, name);
	mine = rc == 0 && ranks == v->ctx.ranks ? vv_rank_parts_region(&p.rank[v->ctx.rank], name) : NULL;
	if (rc == 0 && share && ranks == v->ctx.ranks)
		*share = mine && mine->part && mine->part->kind == VV_DISTRIBUTION_LIST ? mine->shape.len / mine->part->item : 0;
	else if (rc == 0 && share)
		*share = n / v->ctx.ranks + (v->ctx.rank < n % v->ctx.ranks);
	if (rc == 0 && total)
		*total = n;
	vv_rank_parts_fini(&p);
	return rc;
}
