#include "engine/ranks/copies_lookup.h"
#include "engine/read/salvage.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/lineage/layer_file.h"
#include "engine/ranks/exchange.h"
#include <stdlib.h>
#include <string.h>

enum { HOMES_MOST = 1 << 28 }; /* limit of a rank's list in bytes */

int vv_copies_lookup_read(struct vv_layer_file *f, struct vv_copies_section *out)
{
	const struct vv_section *s = vv_layer_find(&f->frame, VV_SECTION_COPIES);
	struct vv_section_bytes b = { 0 };
	struct vv_copies_section c = { 0 };
	int rc;

	if (!s)
		return 0;
	rc = vv_layer_file_section(f, s, &b);
	if (rc == 0)
		rc = vv_copies_section_get(&c, b.p, b.n, f->head.rank, f->head.ranks, f->head.payload);
	vv_mem_free(b.own);
	if (rc) {
		vv_copies_section_fini(&c);
		return vv_layer_file_name_in_error(f, rc);
	}
	*out = c;
	return 0;
}

void vv_copies_lookup_fini(struct vv_copies_lookup *a)
{
	vv_mem_free(a->v);
	*a = (struct vv_copies_lookup){ 0 };
}

int vv_copies_lookup_add(struct vv_copies_lookup *a, const struct vv_other_copy *x)
{
	if (vv_mem_room(&a->v, a->n, &a->cap, sizeof(*a->v)) < 0)
		return VV_ENOMEM;
	a->v[a->n++] = *x;
	return 0;
}

static int by_home(const void *a, const void *b)
{
	const struct vv_other_copy *x = a, *y = b;

	if (x->home != y->home)
		return x->home < y->home ? -1 : 1;
	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return (x->pos > y->pos) - (x->pos < y->pos);
}

static void sort_copies(struct vv_copies_lookup *a)
{
	if (a->n)
		qsort(a->v, a->n, sizeof(*a->v), by_home);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool among(const uint64_t *home, size_t n, uint64_t layer)
{
	return n && bsearch(&layer, home, n, sizeof(*home), by_number);
}

/* Reads the entries of one layer for these layers. An unreadable layer has none; one that cannot be
 * reached may have some. */
static int ask_layer(const struct vv_lineage *lin, uint64_t layer, const uint64_t *home, size_t n, struct vv_copies_lookup *out,
		     struct vv_warned *warned)
{
	struct vv_layer_file *f = NULL;
	struct vv_copies_section c = { 0 };
	int rc = vv_layer_file_open(lin, layer, 0, &f);

	if (rc == 0)
		rc = vv_copies_lookup_read(f, &c);
	for (size_t i = 0; rc == 0 && i < c.n; i++) {
		uint64_t other = vv_run_layer(vv_run_epoch(layer), c.v[i].rank);

		if (among(home, n, other))
			rc = vv_copies_lookup_add(out, &(struct vv_other_copy){ .home = other, .pos = c.v[i].at, .len = c.v[i].len,
									    .layer = layer, .at = c.v[i].pos });
	}
	vv_layer_file_close(f);
	vv_copies_section_fini(&c);
	vv_salvage_note_outage(warned, rc);
	return rc == VV_ENOMEM ? rc : 0;
}

/* Collects the entries of this store's layers for the layers home[0..n-1] (ascending). */
static int collect(const struct vv_lineage *lin, const uint64_t *home, size_t n, struct vv_copies_lookup *out, struct vv_warned *warned)
{
	struct vv_listing l = { 0 };
	size_t k = 0;
	int rc = n ? vv_catalog_list(lin, vv_run_epoch(home[0]), &l) : 0;

	for (size_t i = 0; rc == 0 && i < l.n_layers; i++) {
		while (k < n && vv_run_epoch(home[k]) < vv_run_epoch(l.layer[i].layer))
			k++;
		if (k < n && vv_run_epoch(home[k]) == vv_run_epoch(l.layer[i].layer))
			rc = ask_layer(lin, l.layer[i].layer, home, n, out, warned);
	}
	vv_catalog_listing_fini(&l);
	return rc;
}

/* The first entry from lo on that comes after (home, layer, pos). */
static size_t after(const struct vv_copies_lookup *a, size_t lo, const struct vv_other_copy *x)
{
	size_t i;

	VV_SEARCH(i, lo, a->n, by_home(&a->v[i], x) <= 0);
	return i;
}

const struct vv_other_copy *vv_copies_lookup_find(const struct vv_copies_lookup *a, uint64_t home, uint64_t pos, unsigned k)
{
	size_t i = after(a, 0, &(struct vv_other_copy){ .home = home });

	while (i < a->n && a->v[i].home == home) {
		uint64_t layer = a->v[i].layer;
		size_t end = after(a, i, &(struct vv_other_copy){ .home = home, .layer = layer, .pos = pos });

		if (end > i && a->v[end - 1].layer == layer && pos - a->v[end - 1].pos < a->v[end - 1].len && k-- == 0)
			return &a->v[end - 1];
		i = after(a, end, &(struct vv_other_copy){ .home = home, .layer = layer, .pos = UINT64_MAX });
	}
	return NULL;
}

/* ---- all ranks ------------------------------------------------------------------------------- */

static size_t distinct(uint64_t *v, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(v, n, sizeof(*v), by_number);
	for (size_t i = 0; i < n; i++)
		if (!kept || v[kept - 1] != v[i])
			v[kept++] = v[i];
	return kept;
}

/* The layers with missing bytes on any rank. */
static int gather_homes(struct vv_group *g, int rc, uint64_t *mine, size_t n_mine, uint64_t **out, size_t *n)
{
	struct vv_exchange m = { 0 };
	uint64_t *all = NULL;
	size_t count = 0;

	n_mine = rc ? 0 : distinct(mine, n_mine);
	rc = vv_exchange_gather(&m, g, rc, mine, n_mine * sizeof(*mine), HOMES_MOST);
	if (rc == 0) {
		all = vv_mem_new((size_t)(m.in_sum / sizeof(*all)), sizeof(*all));
		rc = all ? 0 : VV_ENOMEM;
	}
	for (uint32_t r = 0; rc == 0 && r < g->size; r++) {
		size_t k = (size_t)(m.in_len[r] / sizeof(*all));

		if (k)
			memcpy(all + count, vv_exchange_from(&m, g, r), k * sizeof(*all));
		count += k;
	}
	vv_exchange_free(&m, g);
	*out = all;
	*n = rc ? 0 : distinct(all, count);
	return rc;
}

static int check(const struct vv_other_copy *x, uint32_t rank)
{
	if (x->home && x->layer && x->layer != x->home && x->len && x->len <= VV_MAX_PAYLOAD && x->pos <= VV_MAX_PAYLOAD - x->len &&
	    x->at <= VV_MAX_PAYLOAD - x->len)
		return 0;
	return vv_err_set(VV_EPEER, "rank %u tells of a copy that cannot be", rank);
}

int vv_copies_lookup_exchange(struct vv_group *g, int rc, const struct vv_lineage *lin, uint64_t *home, size_t n, struct vv_copies_lookup *out,
			      struct vv_warned *warned)
{
	struct vv_copies_lookup mine = { 0 };
	struct vv_exchange m = { 0 };
	uint64_t *all = NULL;
	size_t n_all = 0;

	rc = gather_homes(g, rc, home, n, &all, &n_all);
	if (rc == 0 && vv_group_leads_storage_node(g))
		rc = collect(lin, all, n_all, &mine, warned);
	rc = vv_exchange_gather(&m, g, rc, mine.v, mine.n * sizeof(*mine.v), VV_MAX_PAYLOAD);
	for (uint32_t r = 0; rc == 0 && r < g->size; r++)
		for (size_t i = 0; rc == 0 && i < m.in_len[r] / sizeof(*mine.v); i++) {
			struct vv_other_copy x;

			memcpy(&x, vv_exchange_from(&m, g, r) + i * sizeof(x), sizeof(x));
			rc = check(&x, r);
			if (rc == 0)
				rc = vv_copies_lookup_add(out, &x);
		}
	sort_copies(out);
	vv_copies_lookup_fini(&mine);
	vv_exchange_free(&m, g);
	vv_mem_free(all);
	return rc;
}
