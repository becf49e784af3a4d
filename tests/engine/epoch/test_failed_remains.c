// ctest: TIMEOUT 60
/* The commit record of a failed epoch has its name, and the store refuses to remove it, also during later checkpoints. Without the layers of
 * the other ranks it is the record of a damaged epoch. As soon as the store lets it go, it is removed, and nothing else is. */
#include "base/pool.h"
#include "engine/context.h"
#include "engine/lineage/catalog.h"
#include "engine/epoch/retention.h"
#include "engine/upkeep/verify.h"
#include "store/dir/dir.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve_comm.h>

enum { LEN = 40000, RANKS = 3 };

static struct vv_fs fs;
static atomic_uint refuses;    /* the removal of records up to this epoch, but not that of the first */
static atomic_int bad_commits; /* so many records get their names, and then the sync of the folder fails */
static _Thread_local bool sync_fails;

static bool is_record(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && strcmp(dot, ".commit") == 0;
}

static unsigned long epoch_of(const char *record)
{
	return strtoul(strrchr(record, '/') + 1, NULL, 10);
}

static int fail(void)
{
	errno = EIO;
	return -1;
}

static int rename_file(const struct vv_fs *self, const char *from, const char *to)
{
	(void)self;
	sync_fails = is_record(to) && atomic_fetch_sub(&bad_commits, 1) > 0;
	return vv_fs_real()->rename(vv_fs_real(), from, to);
}

static int sync_folder(const struct vv_fs *self, const char *path)
{
	bool now = sync_fails;

	(void)self;
	sync_fails = false;
	return now ? fail() : vv_fs_real()->fsync_dir(vv_fs_real(), path);
}

static int unlink_file(const struct vv_fs *self, const char *path)
{
	(void)self;
	return is_record(path) && epoch_of(path) > 1 && epoch_of(path) <= atomic_load(&refuses) && access(path, F_OK) == 0 ? fail() : vv_fs_real()->unlink(vv_fs_real(), path);
}

struct trial {
	char store[PLACE_MAX];
	bool own; /* each rank has a store of its own */
	int bad;  /* epochs that fail, one after the other */
	bool again; /* one more fails after one that counts */
	const char *more; /* options */
	uint64_t epochs;  /* that remain */
};

static void store_one(varve *v, uint8_t *p, bool counts)
{
	int rc;

	if (v->ctx.rank == 0 && !counts)
		atomic_store(&bad_commits, 1);
	for (size_t i = 0; i < LEN; i++)
		p[i] = (uint8_t)(rand() >> 7);
	rc = varve_checkpoint(v);
	rc = rc < 0 ? rc : varve_wait(v, varve_epoch(v));
	MUST(counts ? rc >= 0 : rc == VARVE_EIO);
}

static uint64_t oldest(const varve *v)
{
	struct vv_listing l = { 0 };
	uint64_t epoch;

	MUST(vv_catalog_list(&v->ctx.lineage, 0, &l) >= 0 && l.n_epochs);
	epoch = l.epoch[0];
	vv_catalog_listing_fini(&l);
	return epoch;
}

static void live(const struct varve_comm *comm, void *arg)
{
	struct trial *t = arg;
	struct varve_comm mine = *comm;
	char store[PLACE_MAX + 16], options[128];
	varve *v = NULL;
	uint8_t *p;

	snprintf(store, sizeof(store), t->own ? "%s/r%u" : "%s", t->store, comm->rank);
	snprintf(options, sizeof(options), "mode=sync timeout=20 log=error %s", t->more);
	MUST(varve_open_comm(&mine, store, "job", options, &v) >= 0);
	p = varve_alloc(v, "p", LEN);
	store_one(v, p, true);
	atomic_store(&refuses, UINT_MAX);
	for (int i = 0; i < t->bad; i++)
		store_one(v, p, false);
	MUST(v->tip.n_failed == (comm->rank == 0 || !t->own ? (size_t)t->bad : 0));
	if (*t->more)
		vv_retention_forget(v); /* as if the session had begun just now */
	store_one(v, p, true);
	if (comm->rank == 0)
		MUST(oldest(v) == 1);
	if (t->again)
		store_one(v, p, false);
	else if (t->bad > 1) {
		atomic_store(&refuses, 2);
		store_one(v, p, true);
		MUST(v->tip.n_failed == (comm->rank == 0 || !t->own ? 1 : 0));
	}
	MUST(varve_wait(v, varve_epoch(v)) <= 0);
	atomic_store(&refuses, 0);
	store_one(v, p, true);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(varve_close(v) >= 0);
}

static void tell(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

/* Of rank 0. */
static void check(const struct trial *t)
{
	char path[PLACE_MAX + 16];
	struct vv_verify_report report = { 0 };
	struct vv_store_options opt = { 0 };
	struct vv_store *store = NULL;
	struct vv_pool *pool = NULL;
	struct vv_lineage lin;

	snprintf(path, sizeof(path), t->own ? "%s/r0" : "%s", t->store);
	MUST(vv_pool_new(1, &pool) >= 0 && vv_store_open(path, &opt, &store) >= 0);
	MUST(vv_catalog_open(store, "job", false, &lin) >= 0);
	MUST(vv_verify_run(&lin, pool, 0, !t->own, tell, NULL, NULL, &report) >= 0);
	MUST(report.problems == 0);
	MUST(report.epochs == t->epochs);
	vv_store_close(store);
	vv_pool_free(pool);
}

static void run(bool own, int bad, bool again, const char *more, uint64_t epochs)
{
	struct trial t = { .own = own, .bad = bad, .again = again, .more = more, .epochs = epochs };

	must_begin("%s: %d epochs fail%s %s", own ? "own stores" : "one store", bad, again ? ", and one more later" : "", more);
	place_path(t.store, "store");
	place_remove(t.store);
	place_make_dir(t.store);
	threadcomm_run(RANKS, live, &t);
	check(&t);
	place_remove(t.store);
}

int main(void)
{
	fs = *vv_fs_real();
	fs.rename = rename_file;
	fs.fsync_dir = sync_folder;
	fs.unlink = unlink_file;
	vv_dir_set_fs(&fs);
	for (int own = 0; own < 2; own++) {
		run(own, 1, false, "", 3);
		run(own, 2, false, "", 4);
		run(own, 1, true, "", 3);
		run(own, 3, true, "", 3);
		run(own, 1, true, "keep=2", 2);
	}
	return 0;
}
