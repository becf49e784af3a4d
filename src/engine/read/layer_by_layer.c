#include "engine/read/layer_by_layer.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/read/unmap_later.h"
#include "engine/read/layer_list.h"
#include "engine/read/newest_page.h"
#include "engine/read/copy_mapped.h"

enum {
	STRIPE = 4 << 20, /* of a region, at most: the unit of work of a thread */
	LEAST_STRIPE = 1 << 20,
	/* the same page by page: each table is searched once for all of it */
	PAGES_STRIPE = 16 << 20,
	/* bytes of a piece: its pages are needed for the neighbouring bytes, too */
	SMALL = 2048,
	SHARE = 3,        /* one part in so many may be copied in vain */
	/* Page by page: limit of the bytes over the oldest table, as a multiple of the wanted
	 * bytes. All of them are examined. */
	OFTEN = 2,
	MANY = 1024,      /* runs of a table, */
	EACH = 16,        /* of which one in so many is examined */
};

struct layer_by_layer_stripe {
	const struct vv_runs *const *table;
	size_t n_tables;
	struct vv_want part;
	uint64_t got;
};

/* OVER: each table's bytes over the older ones; BY_PAGE: each page from the newest table that has
 * it */
enum way { NEITHER, OVER, BY_PAGE };

struct layer_by_layer_replay {
	enum way way;
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	const struct vv_layer_list *layers;
	struct layer_by_layer_stripe *stripe;
	size_t n;
	atomic_bool failed;
	struct vv_open_layers warm;
};

/* The run tables of a want, newest first. */
static size_t tables_of(const struct vv_run_table *t, const struct vv_want *want, const struct vv_runs *const **out)
{
	const struct vv_run_table_region *r = &t->region[vv_run_table_find(t, want->name)];

	*out = r->unmerged ? r->unmerged->runs : &want->runs;
	return r->unmerged ? r->unmerged->n : 1;
}

/* ---- does it pay? ---------------------------------------------------------------------------- */

struct layer_by_layer_load { /* approximate load over the oldest tables */
	uint64_t bytes, pieces;
	bool odd; /* there are pieces that are not whole pages */
};

static bool is_odd(const struct vv_run *r, uint64_t end)
{
	return r->at % VV_NEWEST_PAGE_PAGE || (r->len % VV_NEWEST_PAGE_PAGE && r->at + r->len != end);
}

static void add_pieces(const struct vv_runs *const *table, size_t n_tables, uint64_t end, struct layer_by_layer_load *l)
{
	for (size_t k = 0; k + 1 < n_tables; k++) {
		size_t step = table[k]->n < MANY ? 1 : EACH;

		for (size_t i = 0; i < table[k]->n; i += step) {
			l->bytes += step * table[k]->v[i].len;
			l->odd |= is_odd(&table[k]->v[i], end);
		}
		l->pieces += table[k]->n;
	}
}

static enum way find_way(const struct vv_run_table *t, const struct vv_want *want, size_t n)
{
	struct layer_by_layer_load l = { 0 };
	uint64_t all = 0;

	for (size_t i = 0; i < n; i++) {
		const struct vv_runs *const *table;
		size_t n_tables = tables_of(t, &want[i], &table);

		all += want[i].len;
		add_pieces(table, n_tables, want[i].len, &l);
	}
	if (!l.pieces)
		return NEITHER;
	if (!l.odd && l.bytes <= OFTEN * all)
		return BY_PAGE;
	return l.bytes <= all / SHARE && l.bytes <= l.pieces * SMALL ? OVER : NEITHER;
}

bool vv_layer_by_layer_pays(const struct vv_run_table *t, const struct vv_want *want, size_t n)
{
	return find_way(t, want, n) != NEITHER;
}

/* ---- open layers ----------------------------------------------------------------------------- */

/* Digests are needed of all: windows cut blocks. */
static bool is_plain(const struct vv_open_layers *w, size_t i)
{
	const struct vv_layer_file *f = w->file[i];

	for (size_t k = 0; k < f->blocks.n; k++)
		if (f->blocks.v[k].codec)
			return false;
	return w->window[i] && f->digests.n;
}

/* Page by page, a layer may be missing or empty: gc keeps only the needs of live epochs, and older
 * tables name more. If it has bytes, some of them will be needed. */
static void open_one(void *arg, size_t i)
{
	enum { ALWAYS = 1 << 30 }; /* digests and extents are needed */
	struct layer_by_layer_replay *r = arg;
	bool ok;

	if (atomic_load(&r->failed))
		return;
	ok = vv_open_layers_open(&r->warm, i, r->lin, r->pool, r->layers->v[i].layer, ALWAYS, 0) == 0;
	vv_err_clear();
	if (r->way == BY_PAGE && (!ok || !r->warm.file[i]->blocks.n))
		vv_open_layers_close(&r->warm, i);
	else if (!ok || !is_plain(&r->warm, i))
		atomic_store(&r->failed, true);
}

/* ---- stripe by stripe ------------------------------------------------------------------------ */

/* Less than a page, at the end of a region, is a stripe of its own. */
static uint64_t stripe_len(const struct layer_by_layer_replay *r, uint64_t left, uint64_t most)
{
	if (left <= most && r->way == BY_PAGE && left > VV_NEWEST_PAGE_PAGE)
		return left - left % VV_NEWEST_PAGE_PAGE;
	return left < most ? left : most;
}

static int cut_stripes(struct layer_by_layer_replay *r, struct vv_pool *pool, const struct vv_run_table *t, const struct vv_want *want, size_t n)
{
	uint64_t all = 0, most = r->way == BY_PAGE ? PAGES_STRIPE : STRIPE;
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		all += want[i].len;
	while (most > LEAST_STRIPE && all / most < 8 * vv_pool_width(pool))
		most /= 2;
	for (size_t i = 0; i < n; i++)
		count += (size_t)((want[i].len + most - 1) / most) + 1;
	r->stripe = vv_mem_new(count, sizeof(*r->stripe));
	if (!r->stripe)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (uint64_t at = 0, len; at < want[i].len; at += len) {
			struct layer_by_layer_stripe *s = &r->stripe[r->n++];

			len = stripe_len(r, want[i].len - at, most);
			s->n_tables = tables_of(t, &want[i], &s->table);
			s->part = (struct vv_want){ NULL, at, len, want[i].to + at, want[i].name };
		}
	return 0;
}

/* Less than a page, from the newest table that has any of it: all of it, or the normal reader must
 * read it. */
static bool fill_rest(struct layer_by_layer_replay *r, struct layer_by_layer_stripe *s)
{
	uint64_t at = s->part.at, end = at + s->part.len;

	for (size_t i = 0; i < s->n_tables; i++) {
		const struct vv_runs *runs = s->table[i];
		size_t k = vv_run_find(runs, at), layer;

		if (k == runs->n || runs->v[k].at >= end)
			continue;
		if (runs->v[k].at > at || runs->v[k].at + runs->v[k].len < end)
			return false;
		layer = vv_open_layers_find(&r->warm, runs->v[k].layer);
		if (runs->v[k].layer && (layer == r->warm.n || !r->warm.file[layer]))
			return false;
		return vv_copy_mapped_replay(&r->warm, &s->table[i], 1, &s->part, &s->got) && (!runs->v[k].layer || s->got == s->part.len);
	}
	return false;
}

static void fill_one(void *arg, size_t i)
{
	struct layer_by_layer_replay *r = arg;
	struct layer_by_layer_stripe *s = &r->stripe[i];
	bool ok;

	if (atomic_load(&r->failed))
		return;
	if (r->way != BY_PAGE)
		ok = vv_copy_mapped_replay(&r->warm, s->table, s->n_tables, &s->part, &s->got);
	else
		ok = s->part.len % VV_NEWEST_PAGE_PAGE ? fill_rest(r, s) : vv_newest_page_copy(&r->warm, s->table, s->n_tables, &s->part);
	if (!ok)
		atomic_store(&r->failed, true);
}

/* Page by page, each page has been found; otherwise the bytes of all tables must have been
 * copied. */
static bool fill(struct layer_by_layer_replay *r, struct vv_pool *pool)
{
	uint64_t got = 0;

	vv_open_layers_build_index(&r->warm);
	r->warm.all = true;
	vv_pool_each(pool, r->n, fill_one, r);
	for (size_t i = 0; i < r->n; i++)
		got += r->stripe[i].got;
	return !atomic_load(&r->failed) && (r->way == BY_PAGE || got == r->layers->bytes);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The layers of the tables, each table by itself. */
static int find_all(struct vv_pool *pool, const struct vv_run_table *t, const struct vv_want *want, size_t n, struct vv_layer_list *out)
{
	struct vv_want *all;
	size_t count = 0, k = 0;
	int rc;

	for (size_t i = 0; i < n; i++) {
		const struct vv_runs *const *table;

		count += tables_of(t, &want[i], &table);
	}
	all = vv_mem_new(count, sizeof(*all));
	if (!all)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct vv_runs *const *table;
		size_t n_tables = tables_of(t, &want[i], &table);

		for (size_t x = 0; x < n_tables; x++)
			all[k++] = (struct vv_want){ table[x], 0, want[i].len, NULL, NULL };
	}
	rc = vv_layer_list_find(out, pool, all, count);
	vv_mem_free(all);
	return rc;
}

/* Only the names of the layers: each table has a list of those. A region of one table has its
 * runs. */
static int find_named(struct vv_pool *pool, const struct vv_run_table *t, const struct vv_want *want, size_t n, struct vv_layer_list *out)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct vv_run_table_unmerged *s = t->region[vv_run_table_find(t, want[i].name)].unmerged;

		if (!s)
			rc = vv_layer_list_find(out, pool, &want[i], 1);
		for (size_t x = 0; rc == 0 && s && x < s->n; x++) {
			const uint64_t *layer;
			size_t named = vv_run_table_sources(s, x, &layer);

			for (size_t k = 0; rc == 0 && k < named && out->n <= VV_OPEN_LAYERS_LAYERS; k++)
				rc = vv_layer_list_add(out, layer[k]);
		}
	}
	return rc;
}

bool vv_layer_by_layer_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_run_table *t, const struct vv_want *want, size_t n)
{
	struct layer_by_layer_replay *r = vv_mem_new(1, sizeof(*r));
	struct vv_layer_list layers = { 0 };
	bool ok = r;

	if (ok) {
		r->way = find_way(t, want, n);
		ok = (r->way == BY_PAGE ? find_named : find_all)(pool, t, want, n, &layers) == 0 && layers.n <= VV_OPEN_LAYERS_LAYERS &&
		     cut_stripes(r, pool, t, want, n) == 0;
	}
	if (ok) {
		r->lin = lin;
		r->pool = pool;
		r->layers = &layers;
		r->warm.n = layers.n;
		vv_pool_each(pool, layers.n, open_one, r);
		ok = !atomic_load(&r->failed) && fill(r, pool) && vv_open_layers_check(&r->warm) == 0;
		vv_unmap_later_close(&r->warm, pool);
	}
	vv_err_clear();
	vv_layer_list_fini(&layers);
	if (r)
		vv_mem_free(r->stripe);
	vv_mem_free(r);
	return ok;
}
