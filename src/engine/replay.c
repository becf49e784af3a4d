#include "engine/replay.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/aside.h"
#include "engine/layerset.h"
#include "engine/walk.h"

enum {
	STRIPE = 4 << 20, /* of a region, at most: what a thread does at a time */
	LEAST_STRIPE = 1 << 20,
	SMALL = 2048,     /* bytes of a piece: pages that it lies in are needed for what is around it, too */
	SHARE = 3,        /* one part in so many may be copied in vain */
	MANY = 1024,      /* runs of a table, */
	EACH = 16,        /* of which one in so many is looked at */
};

struct stripe {
	const struct vv_runs *const *table;
	size_t n_tables;
	struct vv_want part;
	uint64_t got;
};

struct replay {
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	const struct vv_layerset *layers;
	struct stripe *stripe;
	size_t n;
	atomic_bool failed;
	struct vv_warm warm;
};

/* What says where a want's bytes are, newest first. */
static size_t tables_of(const struct vv_table *t, const struct vv_want *want, const struct vv_runs *const **out)
{
	const struct vv_table_region *r = &t->region[vv_table_find(t, want->name)];

	*out = r->strand ? r->strand->runs : &want->runs;
	return r->strand ? r->strand->n : 1;
}

/* ---- does it pay? ------------------------------------------------------------------------------------------------------------------ */

/* Adds up, about, what lies over the oldest table; false as soon as it is too much. */
static bool add_pieces(const struct vv_runs *const *table, size_t n_tables, uint64_t most, uint64_t *bytes, uint64_t *pieces)
{
	for (size_t k = 0; k + 1 < n_tables; k++) {
		size_t step = table[k]->n < MANY ? 1 : EACH;

		for (size_t i = 0; i < table[k]->n; i += step)
			*bytes += step * table[k]->v[i].len;
		*pieces += table[k]->n;
		if (*bytes > most)
			return false;
	}
	return true;
}

bool vv_replay_pays(const struct vv_table *t, const struct vv_want *want, size_t n)
{
	uint64_t all = 0, bytes = 0, pieces = 0;
	bool few = true;

	for (size_t i = 0; i < n; i++)
		all += want[i].len;
	for (size_t i = 0; few && i < n; i++) {
		const struct vv_runs *const *table;
		size_t n_tables = tables_of(t, &want[i], &table);

		few = add_pieces(table, n_tables, all / SHARE, &bytes, &pieces);
	}
	return few && pieces && bytes <= pieces * SMALL;
}

/* ---- what is open ------------------------------------------------------------------------------------------------------------------ */

/* Digests are needed of all: windows cut blocks. */
static bool is_plain(const struct vv_warm *w, size_t i)
{
	const struct vv_layerio *f = w->file[i];

	for (size_t k = 0; k < f->blocks.n; k++)
		if (f->blocks.v[k].codec)
			return false;
	return w->window[i] && f->digests.n;
}

static void open_one(void *arg, size_t i)
{
	enum { ALWAYS = 1 << 30 }; /* digests and lanes are needed */
	struct replay *r = arg;
	bool ok;

	if (atomic_load(&r->failed))
		return;
	ok = vv_warm_open(&r->warm, i, r->lin, r->pool, r->layers->v[i].layer, ALWAYS, 0) == 0 && is_plain(&r->warm, i);
	vv_err_clear();
	if (!ok)
		atomic_store(&r->failed, true);
}

/* ---- stripe by stripe -------------------------------------------------------------------------------------------------------------- */

static int cut_stripes(struct replay *r, struct vv_pool *pool, const struct vv_table *t, const struct vv_want *want, size_t n)
{
	uint64_t all = 0, most = STRIPE;
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		all += want[i].len;
	while (most > LEAST_STRIPE && all / most < 8 * vv_pool_width(pool))
		most /= 2;
	for (size_t i = 0; i < n; i++)
		count += (size_t)((want[i].len + most - 1) / most);
	r->stripe = vv_mem_new(count, sizeof(*r->stripe));
	if (!r->stripe)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (uint64_t at = 0, len; at < want[i].len; at += len) {
			struct stripe *s = &r->stripe[r->n++];

			len = want[i].len - at < most ? want[i].len - at : most;
			s->n_tables = tables_of(t, &want[i], &s->table);
			s->part = (struct vv_want){ NULL, at, len, want[i].to + at, want[i].name };
		}
	return 0;
}

static void fill_one(void *arg, size_t i)
{
	struct replay *r = arg;
	struct stripe *s = &r->stripe[i];

	if (!atomic_load(&r->failed) && !vv_walk_replay(&r->warm, s->table, s->n_tables, &s->part, &s->got))
		atomic_store(&r->failed, true);
}

static bool fill(struct replay *r, struct vv_pool *pool)
{
	uint64_t got = 0;

	vv_warm_number(&r->warm);
	r->warm.all = true;
	vv_pool_each(pool, r->n, fill_one, r);
	for (size_t i = 0; i < r->n; i++)
		got += r->stripe[i].got;
	return !atomic_load(&r->failed) && got == r->layers->bytes;
}

/* ---- all of it --------------------------------------------------------------------------------------------------------------------- */

/* The layers that any of the tables names. */
static int find_layers(struct vv_pool *pool, const struct vv_table *t, const struct vv_want *want, size_t n, struct vv_layerset *out)
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
	rc = vv_layerset_find(out, pool, all, count);
	vv_mem_free(all);
	return rc;
}

bool vv_replay_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_table *t, const struct vv_want *want, size_t n)
{
	struct replay *r = vv_mem_new(1, sizeof(*r));
	struct vv_layerset layers = { 0 };
	bool ok = r && find_layers(pool, t, want, n, &layers) == 0 && layers.n <= VV_WARM_LAYERS && cut_stripes(r, pool, t, want, n) == 0;

	if (ok) {
		r->lin = lin;
		r->pool = pool;
		r->layers = &layers;
		r->warm.n = layers.n;
		vv_pool_each(pool, layers.n, open_one, r);
		ok = !atomic_load(&r->failed) && fill(r, pool) && vv_warm_check(&r->warm) == 0;
		vv_aside_close(&r->warm, pool);
	}
	vv_err_clear();
	vv_layerset_fini(&layers);
	if (r)
		vv_mem_free(r->stripe);
	vv_mem_free(r);
	return ok;
}
