/* A layer that continues its parent's tables does not list unchanged data, so its runs are the
 * changes. A layer that begins a new chain is compared with its parent's tables, if that epoch
 * still exists. Otherwise the data that the layer stored itself is taken for the changes. */
#include "cli/report/report_heat.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/report/report.h"
#include "engine/files/unpack.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1024 }; /* while they are gathered */

static void row_fini(struct vv_report_heat_row *r)
{
	vv_mem_free(r->name);
	vv_mem_free(r->changed);
	vv_mem_free(r->size);
	vv_mem_free(r->band);
}

void vv_report_heat_fini(struct vv_report_heat *h)
{
	for (size_t i = 0; i < h->n; i++)
		row_fini(&h->v[i]);
	vv_mem_free(h->v);
	vv_map_fini(&h->by_name);
	*h = (struct vv_report_heat){ 0 };
}

static int new_row(struct vv_report_heat *h, const char *name, bool variable, bool banded)
{
	struct vv_report_heat_row r = { .variable = variable };
	int rc = vv_mem_room(&h->v, h->n, &h->cap, sizeof(*h->v));

	if (rc)
		return rc;
	r.name = vv_mem_strdup(name);
	r.changed = vv_mem_new(h->columns, sizeof(*r.changed));
	r.size = vv_mem_new(h->columns, sizeof(*r.size));
	r.band = banded ? vv_mem_new(h->columns, VV_REPORT_BANDS * sizeof(*r.band)) : NULL;
	rc = r.name && r.changed && r.size && (r.band || !banded) ? 0 : VV_ENOMEM;
	if (rc == 0)
		rc = vv_map_put(&h->by_name, r.name, h->n);
	if (rc)
		row_fini(&r);
	else
		h->v[h->n++] = r;
	return rc;
}

/* Finds the row of a name, whose size in this column grows. Names beyond ROWS go into the first
 * row. */
static int find_row(struct vv_report_heat *h, const char *name, bool variable, size_t column, uint64_t size, struct vv_report_heat_row **row)
{
	bool banded = !variable && h->n <= VV_REPORT_BANDED && size >= VV_REPORT_BANDS * VV_REPORT_BAND_LEN;
	size_t i = vv_map_get(&h->by_name, name);
	int rc = h->n == 0 ? new_row(h, "", false, false) : 0;

	if (rc == 0 && i == VV_MAP_NONE) {
		i = h->n <= ROWS ? h->n : 0;
		if (i)
			rc = new_row(h, name, variable, banded);
	}
	if (rc)
		return rc;
	h->others |= i == 0;
	h->v[i].size[column] += size;
	*row = &h->v[i];
	return 0;
}

/* ---- bytes that changed ---------------------------------------------------------------------- */

struct report_heat_tally {
	struct vv_report_heat_row *row;
	size_t column;
	uint64_t len; /* of the region */
};

/* The beginning of part b of a region. */
static uint64_t edge(uint64_t len, uint64_t b)
{
	return len / VV_REPORT_BANDS * b + len % VV_REPORT_BANDS * b / VV_REPORT_BANDS;
}

static void tally(const struct report_heat_tally *t, uint64_t at, uint64_t n)
{
	uint64_t *band = t->row->band ? t->row->band + t->column * VV_REPORT_BANDS : NULL;

	t->row->changed[t->column] += n;
	t->row->total += n;
	for (uint64_t b = 0; band && n && b < VV_REPORT_BANDS; b++) {
		uint64_t end = edge(t->len, b + 1), part = at < end ? end - at : 0;

		part = part < n ? part : n;
		band[b] += part;
		at += part;
		n -= part;
	}
}

static void tally_runs(const struct report_heat_tally *t, const struct vv_runs *r)
{
	for (size_t i = 0; i < r->n; i++)
		tally(t, r->v[i].at, r->v[i].len);
}

static void tally_own(const struct report_heat_tally *t, const struct vv_runs *r, uint64_t layer)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].layer == layer)
			tally(t, r->v[i].at, r->v[i].len);
}

/* Counts the bytes of `now` that have moved. Both tables ascend without gaps. */
static void tally_moved(const struct report_heat_tally *t, const struct vv_runs *was, const struct vv_runs *now)
{
	uint64_t done = 0;

	for (size_t i = 0, k = 0; i < was->n && k < now->n;) {
		const struct vv_run *a = &was->v[i], *b = &now->v[k];
		uint64_t at = a->at > b->at ? a->at : b->at, a_end = a->at + a->len, b_end = b->at + b->len;
		uint64_t end = a_end < b_end ? a_end : b_end;

		if (at < end && a->layer == b->layer && (!a->layer || a->pos + (at - a->at) == b->pos + (at - b->at))) {
			tally(t, done, at - done);
			done = end;
		}
		i += a_end <= b_end;
		k += b_end <= a_end;
	}
	if (done < t->len)
		tally(t, done, t->len - done);
}

/* Loads the tables before a new chain; without them *has stays false. */
static int load_before(struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_commit *c,
		       const struct vv_head *head, struct vv_run_table *was, bool *has)
{
	int rc;

	if (head->parent || !c->parent)
		return 0;
	rc = vv_run_table_load(lin, c->parent, head->rank, &(struct vv_run_table_how){ .pool = job->pool }, was);
	*has = rc == 0;
	if (rc == VV_ENOMEM)
		return rc;
	vv_err_clear();
	return 0;
}

static void tally_region(const struct report_heat_tally *t, const struct vv_head *head, const struct vv_commit *c,
			 const struct vv_head_region *r, const struct vv_run_table *was, bool has)
{
	size_t i = has ? vv_run_table_find(was, r->name) : 0;

	if (r->parent)
		tally_runs(t, &r->runs);
	else if (c->parent && !head->parent && !has)
		tally_own(t, &r->runs, vv_run_layer(head->epoch, head->rank));
	else if (c->parent && !head->parent && i < was->n)
		tally_moved(t, &was->region[i].runs, &r->runs);
	else
		tally(t, 0, t->len);
}

static int add_regions(struct vv_report_heat *h, struct vv_verb_context *job, const struct vv_lineage *lin,
		       const struct vv_commit *c, const struct vv_head *head, size_t column)
{
	struct vv_run_table was = { 0 };
	bool has = false;
	int rc = load_before(job, lin, c, head, &was, &has);

	for (size_t i = 0; rc == 0 && i < head->n_regions; i++) {
		const struct vv_head_region *r = &head->region[i];
		struct report_heat_tally t = { NULL, column, r->shape.len };

		rc = find_row(h, r->name, false, column, t.len, &t.row);
		if (rc == 0)
			tally_region(&t, head, c, r, &was, has);
	}
	vv_run_table_fini(&was);
	return rc;
}

/* Files have new names in every epoch; their variables recur. */
static int add_variables(struct vv_report_heat *h, struct vv_verb_context *job, const struct vv_lineage *lin,
			 const struct vv_commit *c, const struct vv_head *head, size_t column)
{
	struct vv_manifest m = { 0 };
	struct vv_run_table t = { 0 };
	bool has = false;
	int rc = vv_run_table_load(lin, c->epoch, head->rank, &(struct vv_run_table_how){ .pool = job->pool, .commit = c }, &t);

	if (rc == 0)
		rc = vv_unpack_manifest(lin, job->pool, &t, &m, &has);
	for (size_t i = 0; rc == 0 && has && i < m.n_kinds; i++) {
		struct report_heat_tally k = { NULL, column, m.kind[i].raw };

		rc = find_row(h, m.kind[i].key, true, column, k.len, &k.row);
		if (rc == 0)
			tally(&k, 0, m.kind[i].fresh);
	}
	vv_manifest_fini(&m);
	vv_run_table_fini(&t);
	return rc;
}

int vv_report_heat_add(struct vv_report_heat *h, struct vv_verb_context *job, const struct vv_lineage *lin,
		       const struct vv_commit *c, const struct vv_head *head, size_t column)
{
	for (size_t i = 0; i < head->n_regions; i++)
		if (strcmp(head->region[i].name, VV_MANIFEST_REGION) == 0)
			return add_variables(h, job, lin, c, head, column);
	return add_regions(h, job, lin, c, head, column);
}

/* The row without a name, which combines several, comes last. */
static int by_total(const void *a, const void *b)
{
	const struct vv_report_heat_row *x = a, *y = b;

	if (!x->name[0] || !y->name[0])
		return !x->name[0] - !y->name[0];
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return strcmp(x->name, y->name);
}

void vv_report_heat_finish(struct vv_report_heat *h)
{
	struct vv_report_heat_row *rest;

	if (h->n == 0)
		return;
	qsort(h->v, h->n, sizeof(*h->v), by_total);
	vv_map_clear(&h->by_name);
	rest = &h->v[h->n - 1];
	while (h->n > VV_REPORT_WARM) {
		struct vv_report_heat_row *r = &h->v[h->n - 2];

		for (size_t k = 0; k < h->columns; k++) {
			rest->changed[k] += r->changed[k];
			rest->size[k] += r->size[k];
		}
		rest->total += r->total;
		h->others = true;
		row_fini(r);
		*r = *rest;
		rest = r;
		h->n--;
	}
	if (!h->others) {
		row_fini(rest);
		h->n--;
	}
}

void vv_report_heat_drop(struct vv_report_heat *h, size_t column)
{
	size_t behind = --h->columns - column;

	for (size_t i = 0; i < h->n; i++) {
		memmove(h->v[i].changed + column, h->v[i].changed + column + 1, behind * sizeof(uint64_t));
		memmove(h->v[i].size + column, h->v[i].size + column + 1, behind * sizeof(uint64_t));
		if (h->v[i].band)
			memmove(h->v[i].band + column * VV_REPORT_BANDS, h->v[i].band + (column + 1) * VV_REPORT_BANDS,
				behind * VV_REPORT_BANDS * sizeof(uint64_t));
	}
}
