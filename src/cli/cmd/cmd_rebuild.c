/* Lost or damaged layers and parity of ranks that had stores of their own, computed from those that
 * are left. All stores are given. */
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "cli/base/text.h"
#include "cli/base/verb_context.h"
#include "engine/lineage/provenance.h"
#include "engine/ranks/parity_scan.h"
#include "engine/ranks/parity_rebuild.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct rebuild {
	struct vv_verb_context *job;
	size_t n; /* stores */
	struct vv_store **store;
	struct vv_lineage *lineage;
	bool *has; /* the lineage was there */
	struct vv_lock **lock;
	struct vv_parity_sets sets;
	uint32_t *given; /* to each store: 1 + the rank whose lost objects it gets first; 0: none */
	uint64_t *newest; /* epoch with a commit record, of each store */
	uint64_t *epoch; /* with a commit record in any store, ascending, once per store */
	size_t n_epochs, epochs_cap;
	bool dry, scan;
};

/* ---- stores ---------------------------------------------------------------------------------- */

static int open_one(struct rebuild *b, const char *name, size_t i)
{
	const char *url = b->job->args->operand[i + 1];
	char object[VV_NAME_MAX];
	int rc = vv_verb_context_open_other(b->job, url, &b->store[i]);

	if (rc == VV_ENOENT)
		return vv_err_set(rc, "rebuild: store '%s' does not exist: if it was lost, name an empty folder in its place ('mkdir')", url);
	for (size_t k = 0; rc == 0 && k < i; k++)
		if (vv_store_is_same(b->store[i], b->store[k]))
			rc = vv_err_set(VV_EINVAL, "rebuild: '%s' and '%s' are one store: name each store once", b->job->args->operand[k + 1], url);
	vv_name_lock(object, name);
	if (rc == 0 && !b->dry)
		rc = vv_store_lock(b->store[i], object, &b->lock[i]);
	if (rc == 0)
		rc = vv_catalog_open(b->store[i], name, false, &b->lineage[i]);
	b->has[i] = rc == 0;
	if (rc != VV_ENOENT)
		return rc;
	vv_err_clear();
	return 0;
}

/* An empty store gets the lineage of the others, which are of one origin. */
static int match(struct rebuild *b, const char *name)
{
	size_t first = 0;
	int rc = 0;

	while (first < b->n && !b->has[first])
		first++;
	if (first == b->n)
		return vv_err_set(VV_ENOENT, "rebuild: none of the stores has the lineage '%s'", name);
	for (size_t i = 0; rc == 0 && i < b->n; i++) {
		if (b->has[i] && memcmp(b->lineage[i].id, b->lineage[first].id, sizeof(b->lineage[i].id)) != 0)
			rc = vv_err_set(VV_EMISMATCH, "rebuild: the lineages '%s' in '%s' and '%s' are not of one origin", name, b->store[first]->url,
					b->store[i]->url);
		else if (!b->has[i] && b->dry) /* nothing is read from it */
			b->lineage[i] = (struct vv_lineage){ .store = b->store[i] };
		else if (!b->has[i])
			rc = vv_catalog_adopt(b->store[i], name, b->lineage[first].id, b->lineage[first].created_ns, &b->lineage[i]);
	}
	return rc;
}

static int open_all(struct rebuild *b, const char *name)
{
	int rc;

	b->store = vv_mem_new(b->n, sizeof(*b->store));
	b->lineage = vv_mem_new(b->n, sizeof(*b->lineage));
	b->has = vv_mem_new(b->n, sizeof(*b->has));
	b->lock = vv_mem_new(b->n, sizeof(*b->lock));
	b->given = vv_mem_new(b->n, sizeof(*b->given));
	b->newest = vv_mem_new(b->n, sizeof(*b->newest));
	rc = b->given && b->newest && b->store && b->lineage && b->has && b->lock ? 0 : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < b->n; i++)
		rc = open_one(b, name, i);
	return rc ? rc : match(b, name);
}

static void close_all(struct rebuild *b)
{
	for (size_t i = 0; b->store && b->lock && i < b->n; i++) {
		vv_store_unlock(b->lock[i]);
		vv_store_close(b->store[i]);
	}
	vv_parity_sets_fini(&b->sets);
	vv_mem_free(b->store);
	vv_mem_free(b->lineage);
	vv_mem_free(b->has);
	vv_mem_free(b->lock);
	vv_mem_free(b->given);
	vv_mem_free(b->newest);
	vv_mem_free(b->epoch);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* The store that has other objects of the rank, or else the one that has least of the epoch. */
static uint32_t choose_target(void *arg, uint64_t epoch, const struct vv_parity_layer *l)
{
	struct rebuild *b = arg;
	size_t least = SIZE_MAX;
	uint32_t best = 0;

	for (uint32_t p = 0; p < b->n; p++)
		if (b->given[p] == l->rank + 1)
			return p;

	for (size_t i = 0; i < b->sets.n; i++)
		if (vv_run_rank(b->sets.v[i].layer) == l->rank)
			return b->sets.v[i].place;
	for (uint32_t p = 0; p < b->n; p++) {
		size_t count = b->given[p] ? 2 : 0;

		for (size_t i = 0; i < b->sets.n; i++)
			count += b->sets.v[i].place == p && vv_run_epoch(b->sets.v[i].layer) == epoch;
		best = count < least ? p : best;
		least = count < least ? count : least;
	}
	b->given[best] = b->given[best] ? b->given[best] : l->rank + 1;
	return best;
}

static bool has_record(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(lin, epoch, &c);

	vv_commit_fini(&c);
	return rc == 0;
}

/* The first intact record of the epoch. VV_ENOENT, VV_EDAMAGED: there is none. */
static int read_record(const struct rebuild *b, uint64_t epoch, struct vv_commit *out)
{
	int rc = VV_ENOENT;

	for (size_t i = 0; i < b->n && (rc == VV_ENOENT || rc == VV_EDAMAGED); i++)
		if (b->has[i] || !b->dry)
			rc = vv_catalog_commit(&b->lineage[i], epoch, out);
	return rc;
}

static bool any_record(const struct rebuild *b, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	int rc = read_record(b, epoch, &c);

	vv_commit_fini(&c);
	vv_err_clear();
	return rc == 0;
}

static bool has_object(const struct rebuild *b, uint32_t store, uint64_t epoch)
{
	size_t i;

	VV_SEARCH(i, 0, b->sets.n, vv_run_epoch(b->sets.v[i].layer) < epoch);
	while (i < b->sets.n && vv_run_epoch(b->sets.v[i].layer) == epoch && b->sets.v[i].place != store)
		i++;
	return i < b->sets.n && vv_run_epoch(b->sets.v[i].layer) == epoch;
}

/* Have most stores newer epochs, and nothing of this one? Then a node was away when it was dropped,
 * and has brought its part back. A store that was lost is not asked: it has no records until it
 * gets all. */
static bool is_dropped(const struct rebuild *b, uint64_t epoch)
{
	size_t without = 0, with = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		if (b->newest[i] < epoch)
			continue;
		if (!vv_catalog_is_dropped(&b->lineage[i], epoch))
			with++;
		else if (has_object(b, i, epoch))
			return false;
		else
			without++;
	}
	return with && without >= with;
}

/* Every store has the records of all epochs, unless they were dropped. */
static int spread_record(void *arg, uint64_t epoch, bool rebuilt)
{
	struct rebuild *b = arg;
	struct vv_commit c = { 0 };
	int rc = is_dropped(b, epoch) ? VV_ENOENT : read_record(b, epoch, &c);

	(void)rebuilt;
	for (size_t i = 0; rc == 0 && i < b->n; i++)
		if (!has_record(&b->lineage[i], epoch))
			rc = vv_catalog_put_commit(&b->lineage[i], &c);
	vv_commit_fini(&c);
	rc = rc == VV_ENOENT || rc == VV_EDAMAGED ? 0 : rc;
	if (rc == 0)
		vv_err_clear();
	return rc;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int add_epochs(struct rebuild *b, const struct vv_listing *l, size_t store)
{
	b->newest[store] = l->n_epochs ? l->epoch[l->n_epochs - 1] : 0;
	for (size_t i = 0; i < l->n_epochs; i++) {
		if (vv_mem_room(&b->epoch, b->n_epochs, &b->epochs_cap, sizeof(*b->epoch)) < 0)
			return VV_ENOMEM;
		b->epoch[b->n_epochs++] = l->epoch[i];
	}
	return 0;
}

static int list_all(struct rebuild *b)
{
	int rc;

	b->n_epochs = 0;
	vv_parity_sets_fini(&b->sets);
	b->sets = (struct vv_parity_sets){ .io = { .lineage = b->lineage }, .target = choose_target, .spread = spread_record, .arg = b,
					   .places = (uint32_t)b->n, .domain = vv_mem_new(b->n, sizeof(*b->sets.domain)) };
	rc = b->sets.domain ? 0 : VV_ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < b->n; i++) {
		struct vv_listing l = { 0 };

		b->sets.domain[i] = i;
		if (b->has[i] || !b->dry)
			rc = vv_catalog_list(&b->lineage[i], 0, &l);
		if (rc == 0)
			rc = vv_parity_sets_add(&b->sets, &l, i);
		if (rc == 0)
			rc = add_epochs(b, &l, i);
		vv_catalog_listing_fini(&l);
	}
	vv_parity_sets_sort(&b->sets);
	if (b->n_epochs)
		qsort(b->epoch, b->n_epochs, sizeof(*b->epoch), by_number);
	return rc;
}

/* Written objects are listed even if a store has failed. */
static int rebuild_all(struct rebuild *b, struct vv_parity_report *r, struct vv_err_state *error)
{
	size_t missing;
	int rc = vv_parity_rebuild_run(&b->sets, UINT64_MAX, b->scan, r);

	for (size_t i = 0; rc == 0 && i < b->n_epochs; i++)
		if (!vv_parity_sets_epoch(&b->sets, b->epoch[i], &missing) && (i == 0 || b->epoch[i] != b->epoch[i - 1]))
			rc = spread_record(b, b->epoch[i], false);
	vv_err_save(rc, error);
	return list_all(b);
}

/* ---- report ---------------------------------------------------------------------------------- */

/* *worst: the number of losses that the epoch bears, unless it was dropped. */
static void tell_epoch(struct rebuild *b, uint64_t epoch, const char *scheme, size_t missing, size_t damaged, int survives, int *worst)
{
	struct vv_verb_context *job = b->job;
	bool dropped = survives < 0 && is_dropped(b, epoch);

	*worst = !dropped && survives < *worst ? survives : *worst;

	vv_json_object(&job->json, NULL);
	vv_json_number(&job->json, "epoch", epoch);
	vv_json_text(&job->json, "redundancy", scheme);
	vv_json_number(&job->json, "missing", missing);
	if (b->dry && b->scan)
		vv_json_number(&job->json, "damaged", damaged);
	vv_json_signed(&job->json, "bears", survives);
	if (dropped)
		vv_json_bool(&job->json, "gone", true);
	vv_json_end(&job->json);
	if (job->args->json || job->args->quiet)
		return;
	if (dropped) {
		vv_out_printf(&job->out, "epoch %" PRIu64 ": dropped, and only a part of it is left\n", epoch);
		return;
	}
	if (strcmp(scheme, "none") == 0) {
		vv_out_printf(&job->out, "epoch %" PRIu64 ": no parity, %zu layer%s missing%s\n", epoch, missing, missing == 1 ? "" : "s",
			      missing ? ", which nothing can bring back" : "");
		return;
	}
	vv_out_printf(&job->out, "epoch %" PRIu64 ": %s, %zu objects missing, ", epoch, scheme, missing);
	if (b->dry && b->scan)
		vv_out_printf(&job->out, "%zu damaged, ", damaged);
	if (survives < 0)
		vv_out_printf(&job->out, "more than can be computed\n");
	else
		vv_out_printf(&job->out, "bears the loss of %d more store%s\n", survives, survives == 1 ? "" : "s");
}

static bool is_damaged(const struct vv_parity_object *o)
{
	return o->there && (o->bad || o->has_other);
}

/* With --dry-run --scan, objects are read in search of damage. *damaged: their number. */
static int look(const struct rebuild *b, struct vv_parity_job *j, size_t *damaged)
{
	int rc = b->dry && b->scan ? vv_parity_scan_run(&b->sets.io, j) : 0;

	for (size_t i = 0; b->dry && b->scan && i < j->head.n_layers; i++)
		*damaged += is_damaged(&j->data[i]) + is_damaged(&j->parity[i]);
	return rc;
}

/* An epoch without parity has its layers, or lacks some for good. */
static int tell_plain(struct rebuild *b, uint64_t epoch, int *worst)
{
	struct vv_commit c = { 0 };
	size_t missing = 0;
	int rc = read_record(b, epoch, &c);

	for (uint32_t r = 0; rc == 0 && r < c.n_ranks; r++)
		missing += !vv_parity_sets_has_layer(&b->sets, vv_run_layer(epoch, r));
	if (rc == 0)
		tell_epoch(b, epoch, "none", missing, 0, missing ? -1 : 0, worst);
	else
		*worst = -1;
	if (rc == VV_ENOENT || rc == VV_EDAMAGED)
		vv_log_warn("%s", vv_err_last());
	vv_commit_fini(&c);
	return rc == VV_ENOENT || rc == VV_EDAMAGED ? 0 : rc;
}

struct rebuild_count { /* of an epoch with parity */
	size_t missing, damaged;
	int survives;
	bool *in_set; /* of each rank: a set has its layer */
	uint32_t ranks;
};

/* Each store is a failure domain. */
static int count_set(const struct rebuild *b, struct vv_parity_job *j, struct rebuild_count *t)
{
	int rc = look(b, j, &t->damaged), survives = vv_parity_job_survives(j, b->sets.domain);

	for (size_t i = 0; i < j->head.n_layers; i++) {
		t->in_set[j->head.layer[i].rank] = true;
		t->missing += !j->data[i].there + !j->parity[i].there;
	}
	t->survives = survives < t->survives ? survives : t->survives;
	return rc;
}

/* Ranks without a readable parity head have their layers, or lack them for good. */
static void count_others(const struct rebuild *b, uint64_t epoch, struct rebuild_count *t)
{
	for (uint32_t r = 0; r < t->ranks; r++) {
		int gone = !vv_parity_sets_has_layer(&b->sets, vv_run_layer(epoch, r));

		if (t->in_set[r])
			continue;
		t->missing += gone ? 2 : 1;
		t->survives = -gone < t->survives ? -gone : t->survives;
	}
}

static int tell_sets(struct rebuild *b, uint64_t epoch, uint32_t ranks, struct vv_parity_job *j, size_t n, int *worst)
{
	char scheme[VV_PARITY_SCHEME] = "?";
	struct rebuild_count t = { .survives = n ? j[0].head.m : 0, .ranks = n ? 0 : ranks };
	int rc;

	for (size_t i = 0; i < n; i++)
		t.ranks = j[i].head.n_ranks > t.ranks ? j[i].head.n_ranks : t.ranks;
	t.in_set = vv_mem_new(t.ranks, sizeof(*t.in_set));
	rc = t.in_set ? 0 : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = count_set(b, &j[i], &t);
	if (rc == 0)
		count_others(b, epoch, &t);
	vv_mem_free(t.in_set);
	if (n)
		vv_parity_sets_scheme(j[0].head.k, j[0].head.m, scheme);
	if (rc == 0)
		tell_epoch(b, epoch, scheme, t.missing, t.damaged, t.survives, worst);
	return rc;
}

/* Without a readable parity head, the commit record says which layers there are. */
static int tell_parity(struct rebuild *b, uint64_t epoch, uint32_t ranks, int *worst)
{
	struct vv_parity_job *j = NULL;
	size_t n = 0;
	int rc = vv_parity_sets_load(&b->sets, epoch, &j, &n);

	if (rc == 0 && !n && any_record(b, epoch))
		rc = tell_plain(b, epoch, worst);
	else if (rc == 0)
		rc = tell_sets(b, epoch, ranks, j, n, worst);
	for (size_t i = 0; i < n; i++)
		vv_parity_job_fini(&j[i]);
	vv_mem_free(j);
	return rc;
}

/* The next epoch above this one, with a commit record or parity; 0: none. */
static uint64_t next_epoch(const struct rebuild *b, uint64_t epoch)
{
	uint64_t next = vv_parity_sets_next(&b->sets, epoch);
	size_t i;

	VV_SEARCH(i, 0, b->n_epochs, b->epoch[i] <= epoch);
	return i < b->n_epochs && (!next || b->epoch[i] < next) ? b->epoch[i] : next;
}

/* *worst: of all epochs. */
static int tell_all(struct rebuild *b, int *worst)
{
	int rc = 0;

	vv_json_array(&b->job->json, "epochs");
	for (uint64_t e = next_epoch(b, 0); rc == 0 && e; e = next_epoch(b, e)) {
		size_t missing;
		uint32_t ranks = vv_parity_sets_epoch(&b->sets, e, &missing);

		rc = ranks ? tell_parity(b, e, ranks, worst) : tell_plain(b, e, worst);
	}
	vv_json_end(&b->job->json);
	return rc;
}

static int run(struct vv_verb_context *job)
{
	struct rebuild b = { .job = job, .n = job->args->n_operands - 1, .dry = vv_args_value(job->args, "dry-run"),
			     .scan = vv_args_value(job->args, "scan") };
	struct vv_parity_report r = { 0 };
	struct vv_err_state error = { 0 };
	int worst = 0, rc;

	vv_verb_context_allow_files(); /* all layers of a set, and their parity, are open together */
	rc = open_all(&b, job->args->operand[0]);
	if (rc == 0)
		rc = list_all(&b);
	if (rc == 0 && !b.dry)
		rc = rebuild_all(&b, &r, &error);
	if (rc == 0) {
		vv_json_text(&job->json, "lineage", job->args->operand[0]);
		vv_json_number(&job->json, "written", r.built.n_objects);
		vv_json_number(&job->json, "bytes_written", r.built.layer_bytes + r.built.parity_bytes);
		rc = tell_all(&b, &worst);
	}
	for (size_t i = 0; rc == 0 && i < r.n_lost; i++)
		if (!is_dropped(&b, r.lost[i].epoch))
			vv_log_warn("%s", r.lost[i].text);
	if (rc == 0 && !job->args->json && !job->args->quiet && !b.dry)
		vv_out_printf(&job->out, "%zu objects written, %s\n", r.built.n_objects, vv_text_size(r.built.layer_bytes + r.built.parity_bytes).s);
	vv_parity_rebuild_free_report(&r);
	close_all(&b);
	if (rc == 0 && error.code)
		rc = vv_err_restore(&error);
	return rc ? rc : worst < 0;
}

static const struct vv_args_option options[] = {
	{ "dry-run", 0, NULL, "list what is missing or, with --scan, damaged" },
	{ "scan", 0, NULL, "read all objects, and repair damaged ones" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_rebuild = {
	.name = "rebuild",
	.operands = "LINEAGE STORE STORE...",
	.min = 3,
	.max = SIZE_MAX,
	.brief = "computes layers of lost stores from the others",
	.help = "For ranks that had stores of their own and the option redundancy. Name the\n"
		"stores of all of them; an empty folder takes the place of a lost one. Layers and\n"
		"parity that no store has are computed from the others, and stored where their\n"
		"rank has its other ones, or in the emptiest store. No process may write the\n"
		"lineage.",
	.option = options,
	.run = run,
};
