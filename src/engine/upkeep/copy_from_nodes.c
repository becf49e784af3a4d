#include "engine/upkeep/copy_from_nodes.h"
#include "base/err.h"
#include "base/test_point.h"
#include "engine/lineage/label.h"
#include "engine/lineage/layer_file.h"
#include "engine/upkeep/copy_layer.h"
#include <pthread.h>
#include <string.h>

enum { REMOTE_COPIES = 8 }; /* layers at a time, each with parts in memory */

struct nodes_copier {
	const struct vv_copy_request *q;
	const struct vv_reachable *layers;
	struct vv_lineage to;
	struct vv_commit commit;   /* by the source */
	struct vv_listing listing; /* of the destination */
	bool newest_layers;        /* copies the layers of the epoch itself, else the older ones */
	pthread_mutex_t lock;
	struct vv_err_state failure;
};

static int open_target(struct nodes_copier *k)
{
	const struct vv_lineage *from = k->q->from;
	int rc = vv_catalog_open(k->q->to, from->name, false, &k->to);

	if (rc == VV_ENOENT) {
		vv_err_clear();
		rc = vv_catalog_adopt(k->q->to, from->name, from->id, from->created_ns, &k->to);
	}
	if (rc == 0 && memcmp(k->to.id, from->id, sizeof(from->id)) != 0)
		rc = vv_copy_lineage_refuse(from, k->q->to);
	return rc;
}

/* *there: the destination has the epoch already. */
static int look_there(const struct nodes_copier *k, bool *there)
{
	struct vv_commit old = { 0 };
	int rc = vv_catalog_commit(&k->to, k->commit.epoch, &old);

	*there = rc == 0;
	if (rc == 0 && !vv_commit_is_same(&old, &k->commit))
		rc = vv_copy_lineage_refuse_epoch(k->q->from, k->q->to, k->commit.epoch);
	if (rc == VV_ENOENT || rc == VV_EDAMAGED) {
		vv_err_clear();
		rc = 0;
	}
	vv_commit_fini(&old);
	return rc;
}

static int open_both(struct nodes_copier *k, uint64_t epoch, bool *there)
{
	int rc = vv_catalog_commit(k->q->from, epoch, &k->commit);

	if (rc == 0)
		rc = open_target(k);
	return rc ? rc : look_there(k, there);
}

static void close_both(struct nodes_copier *k)
{
	vv_commit_fini(&k->commit);
	vv_catalog_listing_fini(&k->listing);
}

static const struct vv_digest *head_of(const struct vv_commit *c, uint64_t layer)
{
	return vv_run_epoch(layer) == c->epoch && vv_run_rank(layer) < c->n_ranks ? &c->rank[vv_run_rank(layer)].head : NULL;
}

/* ---- a storage node's layers ----------------------------------------------------------------- */

static void note_failure(struct nodes_copier *k, int rc)
{
	pthread_mutex_lock(&k->lock);
	if (rc && !k->failure.code)
		vv_err_save(rc, &k->failure);
	pthread_mutex_unlock(&k->lock);
}

static bool has_failed(struct nodes_copier *k)
{
	bool failed;

	pthread_mutex_lock(&k->lock);
	failed = k->failure.code != 0;
	pthread_mutex_unlock(&k->lock);
	return failed;
}

static int check_stop(void *arg, uint64_t bytes)
{
	const struct nodes_copier *k = arg;

	(void)bytes;
	if (k->q->stop && atomic_load(k->q->stop))
		return vv_err_set(VV_EBUSY, "the copy to '%s' was stopped before its end", k->to.store->url);
	return 0;
}

static void copy_one(void *arg, size_t i)
{
	struct nodes_copier *k = arg;
	const struct vv_reachable_layer *l = &k->layers->v[i];
	struct vv_layer_copy c = { .from = k->q->from, .to = &k->to, .layer = l, .head = head_of(&k->commit, l->layer),
				   .exists = vv_catalog_has_layer(&k->listing, l->layer), .step = check_stop, .arg = k };
	uint64_t copied = 0;

	if ((l->chain || l->need.n) && (vv_run_epoch(l->layer) == k->commit.epoch) == k->newest_layers && !has_failed(k))
		note_failure(k, vv_copy_layer_run(&c, &copied));
}

static int copy_layers(struct nodes_copier *k, bool newest)
{
	k->newest_layers = newest;
	if (k->q->from->store->is_remote || k->q->to->is_remote)
		vv_pool_each_deep(k->q->pool, REMOTE_COPIES, k->layers->n, copy_one, k);
	else
		vv_pool_each(k->q->pool, k->layers->n, copy_one, k);
	return k->failure.code ? vv_err_restore(&k->failure) : 0;
}

int vv_copy_from_nodes_run(const struct vv_copy_request *q, uint64_t epoch, const struct vv_reachable *layers)
{
	struct nodes_copier k = { .q = q, .layers = layers, .lock = PTHREAD_MUTEX_INITIALIZER };
	bool there = false;
	int rc = open_both(&k, epoch, &there);

	if (rc == 0 && !there)
		rc = vv_catalog_list(&k.to, 0, &k.listing);
	if (rc == 0 && !there)
		rc = copy_layers(&k, false);
	vv_test_point("parts-older");
	vv_catalog_listing_fini(&k.listing);
	if (rc == 0 && !there) /* that took long: another job may have gone on with these numbers */
		rc = look_there(&k, &there);
	if (rc == 0 && !there)
		rc = vv_catalog_list(&k.to, epoch, &k.listing);
	if (rc == 0 && !there)
		rc = copy_layers(&k, true);
	close_both(&k);
	return rc;
}

/* ---- the commit ------------------------------------------------------------------------------ */

/* Are the epoch's own layers there? */
static bool has_own_layers(const struct nodes_copier *k)
{
	for (uint32_t r = 0; r < k->commit.n_ranks; r++)
		if (!vv_catalog_has_layer(&k->listing, vv_run_layer(k->commit.epoch, r)))
			return false;
	return true;
}

/* *whole: the layer is there, it is the right one, and it has all needed bytes. */
static int check_layer(const struct nodes_copier *k, const struct vv_reachable_layer *l, bool *whole)
{
	const struct vv_digest *head = head_of(&k->commit, l->layer);
	struct vv_layer_file *f = NULL;
	int rc = l->present ? vv_layer_file_open(&k->to, l->layer, VV_LAYER_FILE_BLOCKS, &f) : VV_ENOENT;

	if (rc == 0 && head)
		rc = vv_layer_file_check_head(f, head);
	*whole = rc == 0 && vv_copy_layer_covers(f, &l->need);
	vv_layer_file_close(f);
	return rc == VV_ENOENT || rc == VV_EDAMAGED ? 0 : rc;
}

/* A gc at the destination may have removed older layers meanwhile. */
static int check_whole(const struct nodes_copier *k, bool *whole)
{
	struct vv_listing live = { .epoch = &(uint64_t){ k->commit.epoch }, .n_epochs = 1 };
	struct vv_reachable reach;
	int rc = vv_reachable_init(&reach, &k->to, &k->listing);

	reach.commit = &k->commit;
	for (uint32_t r = 0; rc == 0 && r < k->commit.n_ranks; r++)
		rc = vv_reachable_add_rank(&reach, &live, k->commit.epoch, r);
	if (rc == 0)
		rc = vv_reachable_sort(&reach);
	*whole = rc == 0;
	for (size_t i = 0; rc == 0 && *whole && i < reach.n; i++)
		if (reach.v[i].chain || reach.v[i].need.n)
			rc = check_layer(k, &reach.v[i], whole);
	vv_reachable_fini(&reach);
	return rc == VV_ENOENT || rc == VV_EDAMAGED ? 0 : rc;
}

static int put_labels(const struct nodes_copier *k)
{
	struct vv_listing l = { 0 };
	int rc = vv_catalog_list(k->q->from, k->commit.epoch, &l);
	size_t n = 0;
	const struct vv_label_name *v = rc ? NULL : vv_label_of(&l, k->commit.epoch, &n);

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = vv_label_put(&k->to, k->commit.epoch, v[i].label);
	vv_catalog_listing_fini(&l);
	return rc;
}

static int sweep(const struct nodes_copier *k)
{
	int rc = vv_store_sweep(k->to.store, k->to.name);

	return rc ? rc : vv_catalog_each_folder(&k->to, vv_store_sweep);
}

/* Under the lock. Once all is there, all nodes have finished, so unfinished files are of copies
 * that were killed. */
static int commit_whole(struct nodes_copier *k, struct vv_lock *lock, bool *whole)
{
	int rc;

	vv_catalog_listing_fini(&k->listing);
	rc = vv_catalog_list(&k->to, 0, &k->listing);
	if (rc == 0)
		rc = check_whole(k, whole);
	if (rc || !*whole)
		return rc;
	vv_test_point("parts-whole");
	rc = sweep(k);
	if (rc == 0)
		rc = put_labels(k);
	if (rc == 0)
		rc = vv_store_held(lock);
	return rc ? rc : vv_catalog_put_commit(&k->to, &k->commit);
}

static int try_commit(struct nodes_copier *k, bool *done)
{
	struct vv_lock *lock = NULL;
	char object[VV_NAME_MAX];
	int rc;

	*done = false;
	vv_catalog_listing_fini(&k->listing);
	rc = vv_catalog_list(&k->to, k->commit.epoch, &k->listing);
	if (rc || !has_own_layers(k))
		return rc;
	vv_name_lock(object, k->to.name);
	rc = vv_store_lock(k->q->to, object, &lock);
	if (rc == 0)
		rc = commit_whole(k, lock, done);
	vv_store_unlock(lock);
	return rc;
}

int vv_copy_from_nodes_commit(const struct vv_copy_request *q, uint64_t epoch, int (*wait)(void *arg), void *arg)
{
	struct nodes_copier k = { .q = q };
	bool done = false;
	int rc = open_both(&k, epoch, &done);

	while (rc == 0 && !done) {
		rc = try_commit(&k, &done);
		if (rc == 0 && !done)
			rc = wait(arg);
	}
	close_both(&k);
	return rc;
}
