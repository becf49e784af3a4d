#include "engine/abreast.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/restore.h"
#include "engine/sparse.h"
#include <pthread.h>
#include <string.h>

enum {
	ALL = 64 << 20,     /* memory of the windows */
	LARGEST = 32 << 20, /* window */
	LEAST = 512 << 10,
	STRIPE = 4 << 20,   /* handed over at a time */
};

_Static_assert((size_t)LEAST * VV_ABREAST_MOST <= ALL, "each has a window");

struct one {
	const struct vv_runs *runs;
	uint64_t len, at; /* of the region; of its window */
	size_t n;         /* in the window */
	uint8_t *window;
	bool gone;        /* given up */
	struct vv_err_state error; /* of the window */
};

struct group {
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	const struct vv_abreast *to;
	struct one *one;
	size_t n, stripes;
	size_t window; /* bytes of each */
	pthread_mutex_t lock;
};

/* The next window of each; how many have one. */
static size_t advance(struct group *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		struct one *o = &g->one[i];

		o->at += o->n;
		o->n = 0;
		if (o->gone)
			continue;
		while (o->at < o->len && vv_sparse_zeros_end(o->runs, o->at) > o->at)
			o->at = vv_sparse_zeros_end(o->runs, o->at);
		o->n = o->len - o->at < g->window ? (size_t)(o->len - o->at) : g->window;
		o->error = (struct vv_err_state){ 0 };
		n += o->n > 0;
	}
	return n;
}

static struct vv_want want_of(const struct one *o)
{
	return (struct vv_want){ o->runs, o->at, o->n, o->window, NULL };
}

/* Together; and where that fails each by itself, to see whose fault it is. */
static int read_windows(struct group *g)
{
	struct vv_want want[VV_ABREAST_MOST];
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < g->n; i++)
		if (g->one[i].n)
			want[n++] = want_of(&g->one[i]);
	rc = vv_restore_read(g->lin, g->pool, want, n);
	if (rc == 0 || rc == VV_ENOMEM)
		return rc;
	for (size_t i = 0; i < g->n; i++) {
		struct one *o = &g->one[i];

		if (!o->n)
			continue;
		want[0] = want_of(o);
		rc = vv_restore_read(g->lin, g->pool, want, 1);
		if (rc)
			vv_err_save(rc, &o->error);
	}
	return 0;
}

static void hand_over(struct group *g, size_t i, size_t from)
{
	struct one *o = &g->one[i];
	size_t n = o->n - from < STRIPE ? o->n - from : STRIPE;
	int rc = g->to->there(g->to->arg, i, o->at + from, o->window + from, n);

	if (rc == 0)
		return;
	pthread_mutex_lock(&g->lock);
	if (!o->error.code)
		vv_err_save(rc, &o->error);
	pthread_mutex_unlock(&g->lock);
}

static void hand_over_one(void *arg, size_t k)
{
	struct group *g = arg;
	size_t i = k / g->stripes, from = k % g->stripes * STRIPE;

	if (from < g->one[i].n && !g->one[i].error.code)
		hand_over(g, i, from);
}

/* Until it is well, or is given up itself. */
static void settle(struct group *g, size_t i)
{
	struct one *o = &g->one[i];

	while (!o->gone && o->error.code) {
		size_t victim = g->to->lost(g->to->arg, i, vv_err_restore(&o->error));

		g->one[victim].gone = true;
		if (victim == i)
			return;
		g->one[victim].error.code = 0;
		o->error.code = 0;
		for (size_t from = 0; from < o->n && !o->error.code; from += STRIPE)
			hand_over(g, i, from);
	}
}

static int run(struct group *g)
{
	int rc = 0;

	g->stripes = (g->window + STRIPE - 1) / STRIPE;
	while (rc == 0 && advance(g)) {
		rc = read_windows(g);
		if (rc)
			break;
		/* those that could not be read first: what becomes of the others does not depend on them */
		for (size_t i = 0; i < g->n; i++)
			settle(g, i);
		for (size_t i = 0; i < g->n; i++)
			g->one[i].n = g->one[i].gone ? 0 : g->one[i].n;
		vv_pool_each(g->pool, g->n * g->stripes, hand_over_one, g);
		for (size_t i = 0; i < g->n; i++)
			settle(g, i);
	}
	return rc;
}

static size_t window_of(const uint64_t *len, size_t n)
{
	uint64_t longest = 1;
	size_t share = ALL / n < LARGEST ? ALL / n : LARGEST;

	for (size_t i = 0; i < n; i++)
		longest = len[i] > longest ? len[i] : longest;
	share &= ~(size_t)4095;
	return longest < share ? (size_t)longest : share;
}

int vv_abreast_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_runs *const *runs, const uint64_t *len, size_t n,
		    const struct vv_abreast *to)
{
	struct group g = { .lin = lin, .pool = pool, .to = to, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER };
	uint8_t *memory = NULL;
	int rc;

	if (n == 0)
		return 0;
	g.window = window_of(len, n);
	g.one = vv_mem_new(n, sizeof(*g.one));
	memory = g.one ? vv_mem_map(n * g.window) : NULL;
	rc = memory ? 0 : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		g.one[i] = (struct one){ .runs = runs[i], .len = len[i], .window = memory + i * g.window };
	if (rc == 0)
		rc = run(&g);
	vv_mem_unmap(memory, n * g.window);
	vv_mem_free(g.one);
	return rc;
}
