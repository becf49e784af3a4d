/* Epochs are copied in sets, ascending: first all layers that the set needs, on several threads,
 * then the commit records in order. If a layer of a set is damaged, its epochs are copied one by
 * one. So the damage concerns only the epochs that need the layer.
 *
 * An epoch whose commit record is the same in both stores is complete at the destination. So only
 * the other epochs are examined, and a second run costs little. */
#include "engine/lineage/label.h"
#include "engine/upkeep/copy_lineage.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/test_point.h"
#include "engine/lineage/layer_file.h"
#include "engine/lineage/provenance.h"
#include "engine/upkeep/copy_layer.h"
#include "engine/upkeep/gc.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	PASSES = 5,
	SET_EPOCHS = 64,
	SET_BYTES = 1 << 30, /* of the epochs' own layers */
	MAX_ENDED = 64,
	REMOTE_COPIES = 8, /* layers at a time, each with parts in memory */
};

enum epoch_state { TO_COPY, DONE, THERE, DAMAGED, DROPPED };

struct epoch_copy {
	uint64_t epoch;
	uint64_t bytes; /* of its own layers */
	enum epoch_state state;
	bool named;
};

struct lineage_copier {
	const struct vv_copy_request *q;
	struct vv_lineage to;
	bool exists; /* `to` is valid */
	struct vv_lock *lock;
	struct vv_listing source, target;
	struct vv_era_table eras; /* of epochs that only the destination has */
	struct epoch_copy *epoch; /* the selected ones, ascending */
	size_t n;
	struct vv_copy_report report;
	/* the set in progress */
	struct vv_reachable reach;
	struct vv_commit *commit; /* by position in the set */
	size_t first, n_set;
	bool partial; /* some ranks have their layers in other stores */
	pthread_mutex_t mutex;
	struct vv_err_state failure;
	uint64_t done, total; /* for the progress */
};

/* ---- selection ------------------------------------------------------------------------------- */

static bool is_selected(const struct vv_copy_request *q, uint64_t epoch, bool *named)
{
	bool in = q->n_ranges == 0;

	*named = false;
	for (size_t i = 0; i < q->n_ranges; i++) {
		if (epoch < q->range[i].first || epoch > q->range[i].last)
			continue;
		in = true;
		*named |= q->range[i].first == q->range[i].last;
	}
	return in;
}

/* The base is only compared, never copied. */
static bool is_base(const struct vv_copy_request *q, uint64_t epoch)
{
	bool named;

	return q->base && epoch == q->base && !is_selected(q, epoch, &named);
}

static uint64_t bytes_of(const struct vv_listing *l, uint64_t epoch)
{
	uint64_t bytes = 0;
	size_t i;

	VV_SEARCH(i, 0, l->n_layers, vv_run_epoch(l->layer[i].layer) < epoch);
	for (; i < l->n_layers && vv_run_epoch(l->layer[i].layer) == epoch; i++)
		bytes += l->layer[i].size;
	return bytes;
}

static int check_ranges(const struct lineage_copier *k)
{
	const struct vv_lineage *lin = k->q->from;

	for (size_t i = 0; i < k->q->n_ranges; i++) {
		const struct vv_copy_range *r = &k->q->range[i];
		bool found = false;

		for (size_t e = 0; e < k->n; e++)
			found |= k->epoch[e].epoch >= r->first && k->epoch[e].epoch <= r->last;
		if (!found && r->first == r->last)
			return vv_err_set(VV_ENOENT,
					  "lineage '%s' has no epoch %" PRIu64 " ('varve ls %s %s' lists its epochs)",
					  lin->name, r->first, lin->store->url, lin->name);
		if (!found)
			return vv_err_set(VV_ENOENT,
					  "lineage '%s' has no epoch from %" PRIu64 " to %" PRIu64
					  " ('varve ls %s %s' lists its epochs)",
					  lin->name, r->first, r->last, lin->store->url, lin->name);
	}
	if (k->n == 0)
		return vv_err_set(VV_ENOENT, "lineage '%s' of store '%s' has no epoch", lin->name, lin->store->url);
	return 0;
}

static int select_epochs(struct lineage_copier *k)
{
	int rc = vv_catalog_list(k->q->from, 0, &k->source);

	k->epoch = rc ? NULL : vv_mem_new(k->source.n_epochs, sizeof(*k->epoch));
	if (!k->epoch)
		return rc ? rc : VV_ENOMEM;
	for (size_t i = 0; i < k->source.n_epochs; i++) {
		struct epoch_copy e = {.epoch = k->source.epoch[i], .bytes = bytes_of(&k->source, k->source.epoch[i])};

		if (is_selected(k->q, e.epoch, &e.named) || is_base(k->q, e.epoch))
			k->epoch[k->n++] = e;
	}
	return check_ranges(k);
}

/* ---- the destination ------------------------------------------------------------------------- */

int vv_copy_lineage_refuse(const struct vv_lineage *from, const struct vv_store *to)
{
	return vv_err_set(VV_EMISMATCH, "store '%s' has another lineage '%s', which is not a copy of the one in '%s' (copy to another store)", to->url,
			  from->name, from->store->url);
}

int vv_copy_lineage_refuse_epoch(const struct vv_lineage *from, const struct vv_store *to, uint64_t epoch)
{
	return vv_err_set(VV_EMISMATCH, "epoch %" PRIu64 " of lineage '%s' is not the same in '%s' and '%s': both copies have continued (copy to another store, or drop the epochs of one of the two)",
			  epoch, from->name, from->store->url, to->url);
}

static int find_target(struct lineage_copier *k)
{
	int rc = k->q->to ? vv_catalog_open(k->q->to, k->q->from->name, false, &k->to) : VV_ENOENT;

	if (rc == VV_ENOENT) {
		vv_err_clear();
		return 0;
	}
	if (rc)
		return rc;
	k->exists = true;
	if (memcmp(k->to.id, k->q->from->id, sizeof(k->to.id)) != 0)
		return vv_copy_lineage_refuse(k->q->from, k->q->to);
	return vv_catalog_list(&k->to, 0, &k->target);
}

/* The lock comes before the first look: no writer may come between. */
static int open_target(struct lineage_copier *k)
{
	const struct vv_lineage *from = k->q->from;
	char object[VV_NAME_MAX];
	int rc = 0;

	k->lock = k->q->held;
	if (!k->q->dry_run && !k->lock) {
		vv_name_lock(object, from->name);
		rc = vv_store_lock(k->q->to, object, &k->lock);
	}
	if (rc == 0)
		rc = find_target(k);
	if (rc == 0 && !k->exists && !k->q->dry_run) {
		rc = vv_catalog_adopt(k->q->to, from->name, from->id, from->created_ns, &k->to);
		k->exists = rc == 0;
	}
	return rc;
}

/* Where ranks have stores of their own, another store may have brought the record. */
static bool has_layers(const struct lineage_copier *k, uint64_t epoch)
{
	size_t i;

	VV_SEARCH(i, 0, k->source.n_layers, vv_run_epoch(k->source.layer[i].layer) < epoch);
	for (; i < k->source.n_layers && vv_run_epoch(k->source.layer[i].layer) == epoch; i++)
		if (!vv_catalog_has_layer(&k->target, k->source.layer[i].layer))
			return false;
	return true;
}

static void note_failure(struct lineage_copier *k, int rc)
{
	pthread_mutex_lock(&k->mutex);
	if (rc && !k->failure.code)
		vv_err_save(rc, &k->failure);
	pthread_mutex_unlock(&k->mutex);
}

static bool has_failed(struct lineage_copier *k)
{
	bool failed;

	pthread_mutex_lock(&k->mutex);
	failed = k->failure.code != 0;
	pthread_mutex_unlock(&k->mutex);
	return failed;
}

/* A damaged record, on either side, is left for the copy itself. */
static void compare_epoch(void *arg, size_t i)
{
	struct lineage_copier *k = arg;
	struct epoch_copy *e = &k->epoch[i];
	struct vv_commit from = {0}, to = {0};
	int rc = vv_catalog_has_epoch(&k->target, e->epoch) ? vv_catalog_commit(&k->to, e->epoch, &to) : VV_ENOENT;

	if (rc == 0)
		rc = vv_catalog_commit(k->q->from, e->epoch, &from);
	if (rc == 0 && !vv_commit_is_same(&from, &to))
		rc = vv_copy_lineage_refuse_epoch(k->q->from, k->q->to, e->epoch);
	if (rc == 0 && has_layers(k, e->epoch))
		e->state = THERE;
	vv_commit_fini(&from);
	vv_commit_fini(&to);
	if (rc != VV_ENOENT && rc != VV_EDAMAGED)
		note_failure(k, rc);
}

/* Collects the eras of the destination's epochs above the last common one. */
static int read_eras(struct lineage_copier *k)
{
	uint64_t common = 0, other;

	for (size_t i = 0; i < k->n; i++)
		common = k->epoch[i].state == THERE ? k->epoch[i].epoch : common;
	for (size_t i = 0; i < k->target.n_layers; i++) {
		struct vv_layer_file *f = NULL;
		uint64_t epoch = vv_run_epoch(k->target.layer[i].layer);
		int rc;

		if (epoch <= common || !vv_catalog_has_epoch(&k->target, epoch) || vv_catalog_has_epoch(&k->source, epoch))
			continue;
		rc = vv_layer_file_open(&k->to, k->target.layer[i].layer, 0, &f);
		for (size_t n = 0; rc == 0 && n < f->eras.n; n++)
			rc = vv_era_table_add(&k->eras, &f->eras.v[n], &other);
		vv_layer_file_close(f);
		if (rc && rc != VV_EDAMAGED && rc != VV_EMISMATCH)
			return rc;
	}
	return 0;
}

static int compare_epochs(struct lineage_copier *k)
{
	k->failure = (struct vv_err_state){0}; /* of an earlier pass */
	if (k->exists)
		vv_store_each(k->q->to, k->q->pool, false, k->n, compare_epoch, k);
	for (size_t i = 0; i < k->n; i++)
		if (k->epoch[i].state == TO_COPY && is_base(k->q, k->epoch[i].epoch))
			k->epoch[i].state = DROPPED;
	if (k->failure.code)
		return vv_err_restore(&k->failure);
	return k->exists ? read_eras(k) : 0;
}

/* Have both copies continued, with numbers that do not happen to collide? */
static int check_eras(struct lineage_copier *k)
{
	struct vv_era_table source = {0};
	uint64_t epoch = 0;
	int rc = k->eras.n ? vv_provenance_copy_all(k->q->from, &source) : 0;

	for (size_t i = 0; rc == 0 && i < source.n; i++)
		if (!vv_era_table_fits(&k->eras, &source.v[i], &epoch))
			rc = vv_copy_lineage_refuse_epoch(k->q->from, k->q->to, epoch);
	vv_era_table_fini(&source);
	return rc;
}

/* ---- a set of epochs ------------------------------------------------------------------------- */

/* The epochs that need not be examined as parents: complete at the destination, or in the set. */
static int list_live(const struct lineage_copier *k, struct vv_listing *live)
{
	live->epoch = vv_mem_new(k->n, sizeof(*live->epoch));
	if (!live->epoch)
		return VV_ENOMEM;
	for (size_t i = 0; i < k->n; i++)
		if (k->epoch[i].state == DONE || k->epoch[i].state == THERE ||
		    (i >= k->first && i < k->first + k->n_set && k->epoch[i].state == TO_COPY))
			live->epoch[live->n_epochs++] = k->epoch[i].epoch;
	return 0;
}

static int reach_epoch(struct lineage_copier *k, const struct vv_listing *live, size_t i)
{
	struct vv_commit *c = &k->commit[i];
	uint8_t *where = NULL;
	int rc = vv_catalog_commit(k->q->from, k->epoch[k->first + i].epoch, c);

	if (rc == 0)
		rc = vv_catalog_locate_layers(&k->source, c, &where);
	for (uint32_t r = 0; rc == 0 && r < c->n_ranks; r++) {
		if (where[r] == VV_CATALOG_ELSEWHERE)
			k->partial = true;
		else
			rc = vv_reachable_add_rank(&k->reach, live, c->epoch, r);
	}
	vv_mem_free(where);
	return rc;
}

static int reach_set(struct lineage_copier *k)
{
	struct vv_listing live = {0};
	bool many = false;
	int rc = vv_reachable_init(&k->reach, k->q->from, &k->source);

	vv_provenance_forget(k->q->from);
	k->reach.tolerant = true; /* copying the layer reports the error */
	k->partial = false;
	if (rc == 0)
		rc = list_live(k, &live);
	for (size_t i = 0; rc == 0 && i < k->n_set; i++) {
		if (k->epoch[k->first + i].state == TO_COPY)
			rc = reach_epoch(k, &live, i);
		many |= k->commit[i].n_ranks > 1;
	}
	if (rc == 0)
		rc = vv_reachable_sort(&k->reach);
	if (rc == 0 && many)
		rc = vv_reachable_add_copies(&k->reach, false);
	if (rc == 0)
		rc = vv_reachable_sort(&k->reach);
	vv_catalog_listing_fini(&live);
	if (rc == 0 && k->partial && k->q->whole)
		rc = vv_err_set(VV_ENOTSUP, "store '%s' has only a part of epoch %" PRIu64 " of '%s': the other ranks have stores of their own",
				k->q->from->store->url, k->epoch[k->first].epoch, k->q->from->name);
	return rc ? rc : check_eras(k);
}

static int step(void *arg, uint64_t bytes)
{
	struct lineage_copier *k = arg;

	pthread_mutex_lock(&k->mutex);
	k->done += bytes;
	vv_progress_report(k->q->progress, k->done, k->total);
	pthread_mutex_unlock(&k->mutex);
	if (k->q->stop && atomic_load(k->q->stop))
		return vv_err_set(VV_EBUSY, "the copy to '%s' was stopped before its end", k->to.store->url);
	return 0;
}

static const struct vv_digest *head_of(const struct lineage_copier *k, uint64_t layer)
{
	for (size_t i = 0; i < k->n_set; i++)
		if (k->commit[i].epoch == vv_run_epoch(layer) && vv_run_rank(layer) < k->commit[i].n_ranks)
			return &k->commit[i].rank[vv_run_rank(layer)].head;
	return NULL;
}

/* The layer with the highest number is copied with the whole lineage, even if gc has emptied it: no
 * number is used twice. */
static bool is_wanted(const struct lineage_copier *k, const struct vv_reachable_layer *l)
{
	if (l->chain || l->need.n)
		return true;
	return k->q->n_ranges == 0 && k->first + k->n_set == k->n &&
	       vv_gc_is_placeholder(l, vv_gc_newest(&k->source, &k->reach));
}

static void copy_one(void *arg, size_t i)
{
	struct lineage_copier *k = arg;
	const struct vv_reachable_layer *l = &k->reach.v[i];
	struct vv_layer_copy c = {.from = k->q->from,
				  .to = &k->to,
				  .layer = l,
				  .head = head_of(k, l->layer),
				  .exists = vv_catalog_has_layer(&k->target, l->layer),
				  .dry_run = k->q->dry_run,
				  .step = step,
				  .arg = k};
	uint64_t copied = 0;
	int rc;

	if (!is_wanted(k, l) || has_failed(k))
		return;
	if (!l->present && k->partial) {
		pthread_mutex_lock(&k->mutex);
		k->report.elsewhere++;
		pthread_mutex_unlock(&k->mutex);
		return;
	}
	rc = vv_copy_layer_run(&c, &copied);
	if (rc == 0 && l->unread)
		rc = vv_err_set(VV_EDAMAGED, "a layer of epoch %" PRIu64 " could not be read at first: which other layers it needs is not known",
				vv_run_epoch(l->layer));
	/* a layer that no epoch needs may be one that a writer of the source has given up */
	note_failure(k, rc == VV_EDAMAGED && !l->chain && !l->need.n ? 0 : rc);
	pthread_mutex_lock(&k->mutex);
	if (rc == 0 && copied) {
		k->report.layers++;
		k->report.bytes += copied;
	}
	pthread_mutex_unlock(&k->mutex);
}

static int copy_layers(struct lineage_copier *k)
{
	bool remote = k->q->from->store->is_remote || (k->q->to && k->q->to->is_remote);

	k->failure = (struct vv_err_state){0};
	if (remote)
		vv_pool_each_deep(k->q->pool, REMOTE_COPIES, k->reach.n, copy_one, k);
	else
		vv_pool_each(k->q->pool, k->reach.n, copy_one, k);
	return k->failure.code ? vv_err_restore(&k->failure) : 0;
}

static bool has_label(const struct vv_listing *l, uint64_t epoch, const char *label)
{
	size_t n;
	const struct vv_label_name *v = vv_label_of(l, epoch, &n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].label, label) == 0)
			return true;
	return false;
}

/* Copies the labels of an epoch that the destination lacks. */
static int copy_labels(struct lineage_copier *k, uint64_t epoch)
{
	size_t n;
	const struct vv_label_name *v = vv_label_of(&k->source, epoch, &n);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		if (!has_label(&k->target, epoch, v[i].label))
			rc = vv_label_put(&k->to, epoch, v[i].label);
	return rc;
}

static int commit_set(struct lineage_copier *k)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < k->n_set; i++) {
		struct epoch_copy *e = &k->epoch[k->first + i];

		if (e->state != TO_COPY)
			continue;
		if (!k->q->dry_run)
			rc = vv_store_held(k->lock);
		if (rc == 0 && !k->q->dry_run)
			rc = copy_labels(k, e->epoch);
		if (rc == 0 && !k->q->dry_run)
			rc = vv_catalog_put_commit(&k->to, &k->commit[i]);
		if (rc)
			break;
		e->state = DONE;
		k->report.epochs++;
	}
	return rc;
}

static int copy_set(struct lineage_copier *k, size_t first, size_t n)
{
	int rc;

	k->first = first;
	k->n_set = n;
	k->commit = vv_mem_new(n, sizeof(*k->commit));
	rc = k->commit ? reach_set(k) : VV_ENOMEM;
	if (rc == 0)
		rc = copy_layers(k);
	vv_test_point("copied");
	if (rc == 0)
		rc = commit_set(k);
	for (size_t i = 0; k->commit && i < n; i++)
		vv_commit_fini(&k->commit[i]);
	vv_mem_free(k->commit);
	k->commit = NULL;
	vv_reachable_fini(&k->reach);
	return rc;
}

/* The writer has dropped the epoch, or the source is damaged. The current error has the reason. */
static int give_up(struct lineage_copier *k, struct epoch_copy *e)
{
	if (vv_catalog_is_dropped(k->q->from, e->epoch)) {
		e->state = DROPPED;
		return e->named ? vv_err_set(VV_ENOENT,
					     "epoch %" PRIu64
					     " of lineage '%s' was dropped by its writer while it was copied",
					     e->epoch, k->q->from->name)
				: 0;
	}
	e->state = DAMAGED;
	k->report.damaged++;
	vv_err_context(VV_EDAMAGED, "epoch %" PRIu64 " is not copied", e->epoch);
	k->q->tell(k->q->arg, vv_err_last());
	return 0;
}

/* Layers that the failed set has copied are there now. */
static int copy_singly(struct lineage_copier *k, size_t first, size_t n)
{
	int rc = 0;

	if (k->exists && !k->q->dry_run) {
		vv_catalog_listing_fini(&k->target);
		rc = vv_catalog_list(&k->to, 0, &k->target);
	}
	for (size_t i = first; rc == 0 && i < first + n; i++) {
		if (k->epoch[i].state != TO_COPY)
			continue;
		rc = copy_set(k, i, 1);
		if (rc == VV_EDAMAGED || rc == VV_ENOENT)
			rc = give_up(k, &k->epoch[i]);
	}
	return rc;
}

static int copy_epochs(struct lineage_copier *k)
{
	int rc = 0;

	for (size_t i = 0, n; rc == 0 && i < k->n; i += n) {
		uint64_t bytes = 0;
		bool work = false;

		for (n = 0; i + n < k->n && n < SET_EPOCHS && bytes < SET_BYTES; n++) {
			work |= k->epoch[i + n].state == TO_COPY;
			bytes += k->epoch[i + n].state == TO_COPY ? k->epoch[i + n].bytes : 0;
		}
		if (!work)
			continue;
		rc = copy_set(k, i, n);
		if (rc == VV_EDAMAGED || rc == VV_ENOENT)
			rc = copy_singly(k, i, n);
	}
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The mark of `varve run` that its program has ended. */
static int copy_ended(const struct lineage_copier *k)
{
	char object[VV_NAME_MAX];
	uint8_t *p = NULL;
	size_t n = 0;
	int rc;

	vv_name_ended(object, k->to.name);
	rc = vv_store_get(k->q->from->store, object, MAX_ENDED, &p, &n);
	if (rc == 0)
		rc = vv_store_put(k->to.store, object, p, n);
	vv_mem_free(p);
	return rc == VV_ENOENT ? 0 : rc;
}

static int make_pass(struct lineage_copier *k)
{
	int rc = compare_epochs(k);
	size_t to_copy = 0;

	k->done = k->total = 0;
	k->report.there = 0;
	for (size_t i = 0; rc == 0 && i < k->n; i++) {
		k->report.there += k->epoch[i].state == THERE;
		to_copy += k->epoch[i].state == TO_COPY;
		k->total += k->epoch[i].state == TO_COPY ? k->epoch[i].bytes : 0;
	}
	k->report.there -= k->report.there > k->report.epochs ? k->report.epochs : k->report.there;
	/* unfinished objects of a copy that was killed */
	if (rc == 0 && k->lock)
		rc = vv_store_sweep(k->to.store, k->to.name);
	if (rc == 0 && to_copy && k->lock)
		rc = vv_catalog_each_folder(&k->to, vv_store_sweep);
	if (rc == 0)
		rc = copy_epochs(k);
	for (size_t i = 0; rc == 0 && k->lock && i < k->n; i++)
		if (k->epoch[i].state == THERE)
			rc = copy_labels(k, k->epoch[i].epoch);
	return rc;
}

static size_t count_dropped(const struct lineage_copier *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++)
		n += k->epoch[i].state == DROPPED;
	return n;
}

static void forget_pass(struct lineage_copier *k)
{
	vv_catalog_listing_fini(&k->source);
	vv_catalog_listing_fini(&k->target);
	vv_era_table_fini(&k->eras);
	vv_mem_free(k->epoch);
	k->epoch = NULL;
	k->n = 0;
}

/* The writer of the source has dropped epochs: newer ones may have taken their place. */
static int pass_again(struct lineage_copier *k)
{
	size_t damaged = k->report.damaged;
	int rc;

	forget_pass(k);
	rc = select_epochs(k);
	if (rc == 0 && k->exists)
		rc = vv_catalog_list(&k->to, 0, &k->target);
	k->report.damaged = 0;
	if (rc == 0)
		rc = make_pass(k);
	k->report.damaged = k->report.damaged > damaged ? k->report.damaged : damaged;
	return rc;
}

int vv_copy_lineage_run(const struct vv_copy_request *q, struct vv_copy_report *out)
{
	struct lineage_copier k = {.q = q, .mutex = PTHREAD_MUTEX_INITIALIZER};
	int rc = select_epochs(&k);

	if (rc == 0)
		rc = open_target(&k);
	if (rc == 0)
		rc = make_pass(&k);
	for (int i = 1; rc == 0 && i < PASSES && q->n_ranges == 0 && count_dropped(&k); i++)
		rc = pass_again(&k);
	if (rc == 0 && q->n_ranges == 0 && !q->dry_run)
		rc = copy_ended(&k);
	forget_pass(&k);
	if (k.lock != q->held)
		vv_store_unlock(k.lock);
	if (rc == 0)
		*out = k.report;
	return rc;
}

static void note_problem(void *arg, const char *problem)
{
	vv_err_save(vv_err_set(VV_EDAMAGED, "%s", problem), arg);
}

int vv_copy_lineage_epoch(const struct vv_copy_request *q, uint64_t epoch, bool *copied)
{
	struct vv_copy_range range = { epoch, epoch };
	struct vv_err_state damage = { 0 };
	struct vv_copy_report report = { 0 };
	struct vv_copy_request one = *q;
	int rc;

	one.range = &range;
	one.n_ranges = 1;
	one.whole = true;
	one.tell = note_problem;
	one.arg = &damage;
	rc = vv_copy_lineage_run(&one, &report);
	*copied = rc == 0 && report.epochs;
	return rc == 0 && report.damaged ? vv_err_restore(&damage) : rc;
}
