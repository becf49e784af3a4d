/* Reads epoch by epoch, in batches: commit records first, then the heads of their layers. Both use
 * all threads, because a store may have a high latency. */
#include "cli/report/report_lineage.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/report/report.h"
#include "cli/report/report_heat.h"
#include "cli/report/report_restore.h"
#include "engine/lineage/provenance.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 16 };

struct report_lineage_item { /* an epoch */
	uint64_t epoch;
	struct vv_commit commit;
	uint8_t *where; /* each rank's layer, by vv_catalog_locate_layers */
	int rc;
	struct vv_err_state error;
	struct vv_report_row sums;
};

struct report_lineage_look { /* a layer */
	struct report_lineage_item *item;
	uint32_t rank;
	struct vv_layer_file *file;
	int rc;
	struct vv_err_state error;
};

struct report_lineage_walk {
	struct vv_report_lineage *r;
	struct vv_verb_context *job;
	const struct vv_report_limits *limits;
	size_t first;    /* number of the first epoch that is shown */
	uint64_t newest; /* the epoch that ranks and restore describe; 0: there is none */
	uint64_t session; /* the token of the last epoch's session; 0: not known */
	uint64_t per_row, per_rank;
	struct report_lineage_item item[BATCH];
	size_t n_items;
	struct report_lineage_look look[BATCH];
	size_t n_looks;
};

static void note(struct vv_report_lineage *r, uint64_t epoch, const char *text)
{
	if (r->n_problems < VV_REPORT_PROBLEMS)
		r->problem[r->n_problems] = (struct vv_report_problem){ epoch, vv_mem_strdup(text) };
	r->n_problems++;
}

/* ---- figures --------------------------------------------------------------------------------- */

static const char *const stats[VV_REPORT_FIGURES] = { /* NULL: the commit record has it */
	[VV_REPORT_DIRTY] = "bytes.dirty",         [VV_REPORT_UNCHANGED] = "bytes.unchanged", [VV_REPORT_ZERO] = "bytes.zero",
	[VV_REPORT_DUP_TIME] = "bytes.dup_time",   [VV_REPORT_DUP_SPACE] = "bytes.dup_space", [VV_REPORT_DUP_RANKS] = "bytes.dup_ranks",
	[VV_REPORT_NEW] = "bytes.new",             [VV_REPORT_COPIED] = "bytes.copied",       [VV_REPORT_WAITED] = "bytes.wait",
	[VV_REPORT_COW] = "bytes.cow",             [VV_REPORT_AVOIDED] = "bytes.avoided",     [VV_REPORT_LENT] = "bytes.lent",
	[VV_REPORT_BLOCKED] = "ns.blocked",        [VV_REPORT_FLUSH] = "ns.flush",            [VV_REPORT_WAITS] = "ns.waits",
	[VV_REPORT_FAULTS] = "ns.faults",          [VV_REPORT_ASKING] = "ns.ranks",
};

static void count(struct vv_report_row *row, unsigned figure, uint64_t v)
{
	if (figure < VV_REPORT_BLOCKED)
		row->v[figure] += v;
	else if (v > row->v[figure])
		row->v[figure] = v;
}

static void count_record(struct vv_report_row *row, const struct vv_commit_rank *c)
{
	row->layers++;
	row->v[VV_REPORT_MEMORY] += c->memory;
	row->v[VV_REPORT_STORED] += c->stored;
	row->v[VV_REPORT_LAYER] += c->file_len;
}

static void count_head(struct vv_report_row *row, const struct vv_head *h)
{
	row->has_stats += h->n_stats > 0;
	for (unsigned i = 0; i < VV_REPORT_FIGURES; i++)
		if (stats[i])
			count(row, i, vv_head_stat(h, stats[i]));
}

/* Adds one epoch: here times add up as well. */
static void add_epoch(struct vv_report_row *to, const struct vv_report_row *e)
{
	to->first = to->n ? to->first : e->first;
	to->last = e->last;
	to->n++;
	to->time_ns = e->time_ns ? e->time_ns : to->time_ns;
	to->ranks = e->ranks ? e->ranks : to->ranks;
	to->layers += e->layers;
	to->has_stats += e->has_stats;
	to->damaged += e->damaged;
	for (unsigned i = 0; i < VV_REPORT_FIGURES; i++)
		to->v[i] += e->v[i];
}

static struct vv_report_row *rank_row(struct report_lineage_walk *w, uint32_t rank)
{
	size_t i = w->per_rank ? rank / w->per_rank : 0;

	return i < w->r->n_ranks ? &w->r->rank[i] : NULL;
}

/* ---- layers ---------------------------------------------------------------------------------- */

static void read_head(void *arg, size_t i)
{
	struct report_lineage_walk *w = arg;
	struct report_lineage_look *k = &w->look[i];

	k->rc = vv_layer_file_open(&w->r->lin, vv_run_layer(k->item->epoch, k->rank), VV_LAYER_FILE_HEAD, &k->file);
	if (k->rc)
		vv_err_save(k->rc, &k->error);
}

static int take_head(struct report_lineage_walk *w, struct report_lineage_look *k, size_t column)
{
	struct vv_report_row *row = k->item->epoch == w->newest ? rank_row(w, k->rank) : NULL;
	int rc;

	if (k->rc && vv_catalog_is_dropped(&w->r->lin, k->item->epoch)) {
		k->item->rc = VV_ENOENT;
		return 0;
	}
	if (k->rc) {
		char text[80];

		snprintf(text, sizeof(text), "the layer of rank %" PRIu32 " is not there", k->rank);
		note(w->r, k->item->epoch, k->item->where[k->rank] == VV_CATALOG_MISSING ? text : k->error.message);
		return k->rc == VV_ENOMEM ? vv_err_restore(&k->error) : 0;
	}
	count_head(&k->item->sums, &k->file->head);
	if (row)
		count_head(row, &k->file->head);
	rc = vv_report_heat_add(&w->r->heat, w->job, &w->r->lin, &k->item->commit, &k->file->head, column);
	if (rc && rc != VV_ENOMEM) {
		if (!vv_catalog_is_dropped(&w->r->lin, k->item->epoch))
			note(w->r, k->item->epoch, vv_err_last());
		rc = 0;
	}
	return rc;
}

static int take_looks(struct report_lineage_walk *w, size_t first)
{
	int rc = 0;

	vv_pool_each(w->job->pool, w->n_looks, read_head, w);
	for (size_t i = 0; i < w->n_looks; i++) {
		struct report_lineage_look *k = &w->look[i];
		size_t number = first + (size_t)(k->item - w->item);

		if (rc == 0)
			rc = take_head(w, k, (number - w->first) / w->per_row);
		vv_layer_file_close(k->file);
	}
	w->n_looks = 0;
	return rc;
}

static int look_at(struct report_lineage_walk *w, size_t first, struct report_lineage_item *e, uint32_t rank)
{
	if (e->where[rank] == VV_CATALOG_ELSEWHERE)
		return 0;
	w->look[w->n_looks++] = (struct report_lineage_look){ .item = e, .rank = rank };
	return w->n_looks == BATCH ? take_looks(w, first) : 0;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static void read_commit(void *arg, size_t i)
{
	struct report_lineage_walk *w = arg;
	struct report_lineage_item *e = &w->item[i];

	e->rc = vv_catalog_commit(&w->r->lin, e->epoch, &e->commit);
	if (e->rc == 0)
		e->rc = vv_catalog_locate_layers(&w->r->listing, &e->commit, &e->where);
	if (e->rc)
		vv_err_save(e->rc, &e->error);
}

static void item_fini(struct report_lineage_item *e)
{
	vv_commit_fini(&e->commit);
	vv_mem_free(e->where);
	*e = (struct report_lineage_item){ 0 };
}

static void take_commit(struct report_lineage_walk *w, struct report_lineage_item *e)
{
	const struct vv_commit *c = &e->commit;

	e->sums = (struct vv_report_row){ .first = e->epoch, .last = e->epoch, .n = 1, .time_ns = c->time_ns, .ranks = c->n_ranks };
	if (e->rc) {
		e->sums.damaged = 1;
		note(w->r, e->epoch, e->error.message);
		return;
	}
	for (uint32_t k = 0; k < c->n_ranks; k++) {
		struct vv_report_row *row = rank_row(w, k);

		count_record(&e->sums, &c->rank[k]);
		if (row)
			row->total += c->rank[k].stored;
		if (row && e->epoch == w->newest)
			count_record(row, &c->rank[k]);
	}
}

/* Does the epoch begin another session than the one before it? The program has restarted then. */
static bool is_restart(struct report_lineage_walk *w, uint64_t epoch)
{
	uint64_t token = vv_provenance_token(&w->r->lin, epoch), before = w->session;

	w->session = token ? token : before;
	return token && before && token != before;
}

/* An epoch that was dropped since the listing is left out. */
static void take_epoch(struct report_lineage_walk *w, const struct report_lineage_item *e, size_t number)
{
	struct vv_report_row *row = &w->r->epoch[(number - w->first) / w->per_row];

	if (e->rc == VV_ENOENT)
		return;
	add_epoch(row, &e->sums);
	row->restarts += is_restart(w, e->epoch);
	add_epoch(&w->r->all, &e->sums);
	if (e->sums.v[VV_REPORT_BLOCKED] > w->r->blocked_most_ns)
		w->r->blocked_most_ns = e->sums.v[VV_REPORT_BLOCKED];
}

/* Epochs number first .. first + n_items of the listing. */
static int take_batch(struct report_lineage_walk *w, size_t first)
{
	int rc = 0;

	vv_pool_each(w->job->pool, w->n_items, read_commit, w);
	for (size_t i = 0; rc == 0 && i < w->n_items; i++) {
		struct report_lineage_item *e = &w->item[i];

		if (e->rc == VV_ENOENT)
			continue;
		take_commit(w, e);
		for (uint32_t k = 0; rc == 0 && e->rc == 0 && k < e->commit.n_ranks; k++)
			rc = look_at(w, first, e, k);
	}
	if (rc == 0)
		rc = take_looks(w, first);
	for (size_t i = 0; i < w->n_items; i++) {
		if (rc == 0)
			take_epoch(w, &w->item[i], first + i);
		item_fini(&w->item[i]);
	}
	return rc;
}

static int walk_epochs(struct report_lineage_walk *w)
{
	int rc = 0;

	for (size_t i = w->first; rc == 0 && i < w->r->listing.n_epochs; i += BATCH) {
		w->n_items = 0;
		for (size_t k = i; k < w->r->listing.n_epochs && w->n_items < BATCH; k++)
			w->item[w->n_items++] = (struct report_lineage_item){ .epoch = w->r->listing.epoch[k] };
		rc = take_batch(w, i);
	}
	return rc;
}

/* ---- before and after ------------------------------------------------------------------------ */

/* Finds the newest epoch with a readable record. */
static int find_newest(struct report_lineage_walk *w, struct vv_commit *c)
{
	for (size_t i = w->r->listing.n_epochs; i-- > 0;) {
		int rc = vv_catalog_commit(&w->r->lin, w->r->listing.epoch[i], c);

		if (rc == 0)
			w->newest = c->epoch;
		if (rc != VV_EDAMAGED && rc != VV_ENOENT)
			return rc;
	}
	return 0;
}

/* Plans the number of epochs that are shown, and the number of epochs in a row. */
static int plan(struct report_lineage_walk *w, const struct vv_commit *c)
{
	struct vv_report_lineage *r = w->r;
	uint64_t n = w->r->listing.n_epochs, ranks = c->n_ranks ? c->n_ranks : 1, most = w->limits->newest;

	if (!most)
		most = w->limits->heads / ranks ? w->limits->heads / ranks : 1;
	r->n_epochs = n;
	r->n_shown = n < most ? n : most;
	w->first = (size_t)(n - r->n_shown);
	w->per_row = (r->n_shown + w->limits->rows - 1) / w->limits->rows;
	r->n_rows = w->per_row ? (size_t)((r->n_shown + w->per_row - 1) / w->per_row) : 0;
	w->per_rank = (c->n_ranks + VV_REPORT_RANKS - 1) / VV_REPORT_RANKS;
	r->n_ranks = w->per_rank ? (size_t)((c->n_ranks + w->per_rank - 1) / w->per_rank) : 0;
	r->epoch = vv_mem_new(r->n_rows, sizeof(*r->epoch));
	r->rank = vv_mem_new(r->n_ranks, sizeof(*r->rank));
	r->heat.columns = r->n_rows;
	for (size_t i = 0; r->rank && i < r->n_ranks; i++) {
		r->rank[i].first = i * w->per_rank;
		r->rank[i].last = (i + 1) * w->per_rank < c->n_ranks ? (i + 1) * w->per_rank - 1 : c->n_ranks - 1;
		r->rank[i].n = r->rank[i].last - r->rank[i].first + 1;
	}
	for (size_t i = 0; i < w->r->listing.n_layers; i++)
		r->on_disk += w->r->listing.layer[i].size;
	r->n_layers = w->r->listing.n_layers;
	return r->epoch && r->rank ? 0 : VV_ENOMEM;
}

/* A rank that cannot be read is left out; the reason was noted when its head was read. */
static int find_sources(struct report_lineage_walk *w, const struct vv_commit *c)
{
	int rc = 0;

	for (uint32_t k = 0; rc == 0 && k < c->n_ranks; k++) {
		rc = vv_report_restore_add(&w->r->restore, w->job, &w->r->lin, c, k);
		if (rc && rc != VV_ENOMEM) {
			w->r->restore.elsewhere++;
			rc = 0;
		}
	}
	vv_report_restore_finish(&w->r->restore);
	return rc;
}

static bool is_written(const struct vv_lineage *lin)
{
	struct vv_lock_holder holder;
	char object[VV_NAME_MAX];

	vv_name_lock(object, lin->name);
	return vv_store_holder(lin->store, object, &holder) == 1;
}

/* Runs without the lock, because a writer may be active: the result is the state of a moment ago.
 * An epoch that the writer drops in the meantime is not intact. */
static int dry_run(struct vv_report_lineage *r)
{
	enum { TRIES = 10 };

	for (int i = 0; i < TRIES; i++) {
		r->gc_rc = vv_gc_run(&r->lin, 0, VV_GC_DRY_RUN, NULL, &r->gc);
		if ((r->gc_rc != VV_EDAMAGED && r->gc_rc != VV_ENOENT) || !is_written(&r->lin))
			break;
	}
	if (r->gc_rc == 0)
		r->gc_rc = vv_gc_find_unfinished(&r->lin, 0, &r->gc.unfinished);
	if (r->gc_rc == 0 || r->gc_rc == VV_ENOMEM)
		return r->gc_rc;
	r->gc_error = vv_mem_strdup(vv_err_last());
	return r->gc_error ? 0 : VV_ENOMEM;
}

/* Removes rows of epochs that were all dropped in the meantime. */
static void close_rows(struct vv_report_lineage *r)
{
	for (size_t i = r->n_rows; i-- > 0;)
		if (r->epoch[i].n == 0) {
			memmove(&r->epoch[i], &r->epoch[i + 1], (--r->n_rows - i) * sizeof(*r->epoch));
			vv_report_heat_drop(&r->heat, i);
		}
	r->n_shown = r->all.n;
}

int vv_report_lineage_load(struct vv_report_lineage *r, struct vv_verb_context *job, const char *name,
			   const struct vv_report_limits *limits)
{
	struct report_lineage_walk *w = vv_mem_new(1, sizeof(*w));
	struct vv_commit newest = { 0 };
	int rc = w ? vv_catalog_open(job->store, name, false, &r->lin) : VV_ENOMEM;

	if (!w)
		return rc;
	w->r = r;
	w->job = job;
	w->limits = limits;
	if (rc == 0)
		rc = vv_catalog_list(&r->lin, 0, &w->r->listing);
	if (rc == 0)
		rc = find_newest(w, &newest);
	if (rc == 0)
		rc = plan(w, &newest);
	if (rc == 0)
		rc = walk_epochs(w);
	if (rc == 0)
		rc = find_sources(w, &newest);
	if (rc == 0)
		rc = dry_run(r);
	if (rc == 0)
		r->verified = vv_last_verify_read(&r->lin);
	if (rc == 0) {
		vv_report_heat_finish(&r->heat);
		close_rows(r);
	}
	vv_commit_fini(&newest);
	vv_mem_free(w);
	return rc;
}

void vv_report_lineage_fini(struct vv_report_lineage *r)
{
	for (size_t i = 0; i < VV_REPORT_PROBLEMS; i++)
		vv_mem_free(r->problem[i].text);
	vv_mem_free(r->epoch);
	vv_mem_free(r->rank);
	vv_mem_free(r->gc_error);
	vv_catalog_listing_fini(&r->listing);
	vv_report_heat_fini(&r->heat);
	vv_report_restore_fini(&r->restore);
	*r = (struct vv_report_lineage){ 0 };
}
