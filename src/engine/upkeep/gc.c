/* Mark, then sweep. Marking finds the needs of live epochs. It stops if an epoch is unreadable,
 * since its needs are unknown. The index caches are removed first, because they may name removed
 * layers. Then layers are replaced or removed one by one. After every step all live epochs in the
 * store are intact, so a crash between steps loses nothing. */
#include "engine/upkeep/gc.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/lineage/label.h"
#include "engine/upkeep/compact.h"
#include "engine/write/index_cache.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	EMPTY = 1024, /* a layer of this size has nothing to remove */
	SLACK = 4096, /* fewer bytes are not worth a rewriting */
	LONG = 16 << 20, /* bytes: to write fewer takes no noticeable time */
};

uint64_t vv_gc_newest(const struct vv_listing *l, const struct vv_reachable *r)
{
	uint64_t layer = r->n ? vv_run_epoch(r->v[r->n - 1].layer) : 0, epoch = l->n_epochs ? l->epoch[l->n_epochs - 1] : 0;

	return layer > epoch ? layer : epoch;
}

bool vv_gc_is_placeholder(const struct vv_reachable_layer *l, uint64_t newest)
{
	return !l->chain && l->need.n == 0 && vv_run_epoch(l->layer) >= newest && l->size <= EMPTY;
}

static uint64_t count_bytes(const struct vv_reachable *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n; i++)
		sum += r->v[i].size;
	return sum;
}

static int mark(struct vv_reachable *r, const struct vv_listing *l, const struct vv_progress *progress)
{
	uint64_t bytes = count_bytes(r);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->n_epochs; i++) {
		vv_progress_report(progress, 0, bytes);
		rc = vv_reachable_add_epoch(r, l, l->epoch[i]);
		if (rc == VV_EDAMAGED && l->epoch[i] <= r->floor)
			rc = 0;
		if (rc == VV_EDAMAGED)
			vv_err_context(rc, "gc stopped at epoch %" PRIu64 ", nothing was changed (drop the epoch if it is lost)",
				       l->epoch[i]);
	}
	if (rc)
		return rc;
	rc = vv_reachable_sort(r);
	if (rc == 0)
		rc = vv_reachable_add_copies(r, false);
	if (rc == 0)
		rc = vv_reachable_sort(r);
	return rc == VV_EDAMAGED ? vv_err_context(rc, "gc stopped, nothing was changed") : rc;
}

/* Where ranks have stores of their own, the needs of others for these layers are not visible
 * here. */
static int check_no_other_stores(const struct vv_lineage *lin, const struct vv_listing *l)
{
	char ranks[VV_CATALOG_RANKS];
	uint8_t *where = NULL;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->n_epochs; i++) {
		struct vv_commit c = { 0 };

		rc = vv_catalog_commit(lin, l->epoch[i], &c);
		if (rc == 0)
			rc = vv_catalog_locate_layers(l, &c, &where);
		if (rc == 0 && vv_catalog_name_ranks(where, c.n_ranks, VV_CATALOG_ELSEWHERE, ranks))
			rc = vv_err_set(VV_EINVAL, "gc: this is one of several stores: of the %u ranks of epoch %" PRIu64 " it does not hold "
					"rank(s) %s, and what those need of it cannot be seen from here; a job that runs with the "
					"option keep takes the space back in all of them", c.n_ranks, c.epoch, ranks);
		vv_commit_fini(&c);
		vv_mem_free(where);
		where = NULL;
		rc = rc == VV_EDAMAGED ? 0 : rc; /* marking reports it */
	}
	return rc;
}

static int forget_caches(const struct vv_lineage *lin)
{
	struct vv_names names = { 0 };
	int rc = vv_store_list(lin->store, lin->name, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		unsigned rank;
		char end;

		if (sscanf(names.v[i].name, "index.r%7u%c", &rank, &end) == 1)
			rc = vv_index_cache_forget(lin, rank);
	}
	vv_names_fini(&names);
	return rc;
}

static int remove_layer(const struct vv_lineage *lin, uint64_t layer)
{
	char object[VV_NAME_MAX];

	vv_name_layer(object, lin->name, vv_run_epoch(layer), vv_run_rank(layer));
	return vv_store_remove(lin->store, object);
}

/* The layer with the highest number stays, emptied: it records that its number was used. No number
 * is used twice. */
static int keep_number(const struct vv_lineage *lin, const struct vv_reachable_layer *l, uint64_t newest, enum vv_gc_effort effort,
		       struct vv_gc_report *out)
{
	uint64_t size = l->size;
	int rc = 0;

	if (effort != VV_GC_DRY_RUN && !vv_gc_is_placeholder(l, newest)) {
		size = 0;
		rc = vv_compact_layer(lin, l, NULL, &size);
	}
	out->kept++;
	out->bytes_after += size;
	out->bytes_needed += size;
	return rc == VV_EDAMAGED ? 0 : rc;
}

/* ---- layers under parity --------------------------------------------------------------------- */

static bool has_parity(const struct vv_listing *l, uint64_t epoch)
{
	size_t i;

	VV_SEARCH(i, 0, l->n_parity, vv_run_epoch(l->parity[i].layer) < epoch);
	return i < l->n_parity && vv_run_epoch(l->parity[i].layer) == epoch;
}

static bool is_among(uint64_t epoch, const uint64_t *v, size_t n)
{
	size_t i;

	VV_SEARCH(i, 0, n, v[i] < epoch);
	return i < n && v[i] == epoch;
}

/* The layers of an epoch are neighbours. */
void vv_gc_keep_sets(struct vv_reachable *r, const struct vv_listing *l)
{
	for (size_t i = 0, end; i < r->n; i = end) {
		uint64_t epoch = vv_run_epoch(r->v[i].layer);
		bool needed = is_among(epoch, r->others, r->n_others);

		for (end = i; end < r->n && vv_run_epoch(r->v[end].layer) == epoch; end++)
			needed |= r->v[end].chain || r->v[end].need.n;
		for (size_t k = i; needed && has_parity(l, epoch) && k < end; k++)
			r->v[k].whole = true;
	}
}

/* Is a layer of the epoch under parity here? A store may have parity alone. */
static bool keeps_parity(const struct vv_reachable *r, uint64_t epoch)
{
	size_t i;

	VV_SEARCH(i, 0, r->n, vv_run_epoch(r->v[i].layer) < epoch);
	return epoch <= r->floor || is_among(epoch, r->others, r->n_others) || (i < r->n && vv_run_epoch(r->v[i].layer) == epoch && r->v[i].whole);
}

/* Before any of its layers changes. */
static int sweep_parity(const struct vv_lineage *lin, const struct vv_listing *l, const struct vv_reachable *r, enum vv_gc_effort effort,
			struct vv_gc_report *out)
{
	char object[VV_NAME_MAX];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->n_parity; i++) {
		const struct vv_parity_name *p = &l->parity[i];
		bool kept = keeps_parity(r, vv_run_epoch(p->layer));

		vv_name_parity(object, lin->name, vv_run_epoch(p->layer), vv_run_rank(p->layer), p->ranks);
		out->bytes_before += p->size;
		out->bytes_after += kept ? p->size : 0;
		out->bytes_needed += kept ? p->size : 0;
		if (!kept && effort != VV_GC_DRY_RUN)
			rc = vv_store_remove(lin->store, object);
	}
	return rc;
}

static int treat_whole(const struct vv_lineage *lin, const struct vv_reachable_layer *l, struct vv_gc_report *out)
{
	struct vv_compact_plan plan = { 0 };
	int rc = l->chain || l->need.n ? vv_compact_plan(lin, l, &plan) : 0;

	out->kept++;
	out->bytes_after += l->size;
	out->bytes_needed += l->size;
	if (vv_run_epoch(l->layer) >= out->since) {
		out->whole_bytes += l->size;
		out->whole_needed += plan.needed < l->size ? plan.needed : l->size;
	}
	return rc;
}

/* Is the rewritten layer enough smaller? */
static bool is_worth(const struct vv_compact_plan *p, enum vv_gc_effort effort)
{
	return p->size > p->needed + (effort == VV_GC_CHEAP ? p->needed : p->needed / 8) + SLACK;
}

static int rewrite(const struct vv_lineage *lin, const struct vv_reachable_layer *l, const struct vv_compact_plan *plan, enum vv_gc_effort effort,
		   const struct vv_progress *progress, struct vv_gc_report *out)
{
	uint64_t size = plan->needed;
	int rc = effort == VV_GC_DRY_RUN ? 0 : vv_compact_layer(lin, l, plan->needed < LONG ? NULL : progress, &size);
	bool later = rc == VV_COMPACT_LATER;

	out->rewritten += !later;
	out->kept += later;
	size = later ? l->size : size;
	out->bytes_after += size;
	out->bytes_needed += plan->needed < size ? plan->needed : size;
	return later ? 0 : rc;
}

static int treat(const struct vv_lineage *lin, const struct vv_reachable_layer *l, uint64_t floor, uint64_t newest, enum vv_gc_effort effort,
		 const struct vv_progress *progress, struct vv_gc_report *out)
{
	bool dry_run = effort == VV_GC_DRY_RUN;
	struct vv_compact_plan plan = { 0 };
	uint64_t size = l->size;
	int rc;

	out->bytes_before += l->size;
	if (vv_run_epoch(l->layer) <= floor) {
		out->kept++;
		out->bytes_after += size;
		out->bytes_needed += size;
		return 0;
	}
	if (l->whole)
		return treat_whole(lin, l, out);
	if (!l->chain && l->need.n == 0 && vv_run_epoch(l->layer) >= newest)
		return keep_number(lin, l, newest, effort, out);
	if (!l->chain && l->need.n == 0) {
		out->removed++;
		return dry_run ? 0 : remove_layer(lin, l->layer);
	}
	rc = vv_compact_plan(lin, l, &plan);
	if (rc)
		return rc;
	if (is_worth(&plan, effort))
		return rewrite(lin, l, &plan, effort, progress, out);
	out->kept++;
	out->bytes_needed += plan.needed < size ? plan.needed : size;
	out->bytes_after += size;
	return 0;
}

static int count_unfinished(const struct vv_lineage *lin, const char *dir, struct vv_gc_unfinished *out)
{
	struct vv_names names = { 0 };
	int rc = vv_store_unfinished(lin->store, dir, &names);

	for (size_t i = 0; i < names.n; i++)
		out->bytes += names.v[i].size;
	out->n += names.n;
	vv_names_fini(&names);
	return rc;
}

static int look(const struct vv_lineage *lin, uint64_t from, struct vv_gc_unfinished *out)
{
	struct vv_names names = { 0 };
	char dir[VV_NAME_MAX];
	int rc = lin->store->is_remote ? 0 : vv_store_list(lin->store, lin->name, &names);

	*out = (struct vv_gc_unfinished){ 0 };
	if (rc == 0 && !lin->store->is_remote)
		rc = count_unfinished(lin, lin->name, out);
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		int64_t folder = names.v[i].is_dir ? vv_name_parse_folder(names.v[i].name) : -1;

		if (folder < 0 || (uint64_t)folder < from / VV_NAME_EPOCHS_PER_FOLDER)
			continue;
		vv_name_folder(dir, lin->name, (uint64_t)folder);
		rc = count_unfinished(lin, dir, out);
	}
	vv_names_fini(&names);
	return rc;
}

int vv_gc_find_unfinished(const struct vv_lineage *lin, uint64_t from, struct vv_gc_unfinished *out)
{
	struct vv_lock_holder holder;
	char object[VV_NAME_MAX];
	int rc;

	*out = (struct vv_gc_unfinished){ 0 };
	vv_name_lock(object, lin->name);
	rc = vv_store_holder(lin->store, object, &holder);
	return rc ? rc < 0 ? rc : 0 : look(lin, from, out);
}

/* Removes leftovers of dead writers. This comes first, since it also makes removals by those
 * writers durable: a commit record must not come back after its layers are removed. */
static int sweep_leftovers(const struct vv_lineage *lin)
{
	int rc = vv_store_sweep(lin->store, lin->name);

	return rc ? rc : vv_catalog_each_folder(lin, vv_store_sweep);
}

static int remove_if_empty(struct vv_store *s, const char *dir)
{
	vv_store_remove_dir(s, dir);
	return 0;
}

int vv_gc_sweep(const struct vv_lineage *lin, const struct vv_listing *l, const struct vv_reachable *r, enum vv_gc_effort effort,
		const struct vv_progress *progress, struct vv_gc_report *out)
{
	bool dry_run = effort == VV_GC_DRY_RUN;
	uint64_t newest = vv_gc_newest(l, r), bytes = count_bytes(r);
	int rc = dry_run ? 0 : sweep_leftovers(lin);

	if (rc == 0 && !dry_run)
		rc = forget_caches(lin);
	if (rc == 0)
		rc = sweep_parity(lin, l, r, effort, out);
	for (size_t i = 0; rc == 0 && i < r->n; i++) {
		rc = treat(lin, &r->v[i], r->floor, newest, effort, progress, out);
		vv_progress_report(progress, out->bytes_before, bytes);
	}
	if (rc == 0 && !dry_run)
		rc = vv_label_sweep(lin, l);
	if (rc == 0 && !dry_run)
		rc = vv_catalog_each_folder(lin, remove_if_empty);
	return rc;
}

int vv_gc_run(const struct vv_lineage *lin, uint64_t floor, enum vv_gc_effort effort, const struct vv_progress *progress,
	      struct vv_gc_report *out)
{
	struct vv_gc_report report = { 0 };
	struct vv_listing l = { 0 };
	struct vv_reachable r = { 0 };
	int rc = vv_catalog_list(lin, 0, &l);

	if (rc == 0)
		rc = check_no_other_stores(lin, &l);
	if (rc == 0)
		rc = vv_reachable_init(&r, lin, &l);
	r.floor = floor;
	if (rc == 0)
		rc = mark(&r, &l, progress);
	if (rc == 0)
		vv_gc_keep_sets(&r, &l);
	if (rc == 0)
		rc = look(lin, 0, &report.unfinished);
	if (rc == 0)
		rc = vv_gc_sweep(lin, &l, &r, effort, progress, &report);
	vv_reachable_fini(&r);
	vv_catalog_listing_fini(&l);
	if (rc == 0)
		*out = report;
	return rc;
}
