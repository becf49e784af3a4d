// ctest: TIMEOUT 300 COST 12 MODES
/* The power goes at every moment of a run, and different parts survive of what was not durable yet: every epoch that was
 * reported is there. Then the same after a process that died before (what it had not made durable, its successor must), and
 * after a call that failed. */
#include "store/dir/dir.h"
#include "store/dir/dir_direct.h"
#include "store/dir/dir_cut.h"
#include "store/dir/dir_spare.h"
#include "store/store.h"
#include "support/coded.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "support/powerfs.h"
#include "support/promise.h"
#include "support/settle.h"
#include "vv_test.h"

enum { MAX_SEEN = 1 << 16, SEEDS = 4 };

struct outage {
	struct promise promise;
	struct script check; /* the regions of the run are in use when the power goes */
	struct script_log log;
	struct script_log knew; /* the log when the power goes: the epoch is stored by another thread than the run's */
	char base[PLACE_MAX], store[PLACE_MAX], after[PLACE_MAX], after_store[PLACE_MAX];
	uint64_t seen[MAX_SEEN]; /* survivors that were looked at, a hash table */
	long moments, cases;
	long every; /* moments are many: look at one in so many */
};

static bool is_new(struct outage *o, uint64_t hash)
{
	size_t i;

	hash = (hash ^ o->knew.n * 0x9e3779b97f4a7c15ull ^ o->knew.trying) | 1;
	for (i = hash % MAX_SEEN; o->seen[i]; i = (i + 1) % MAX_SEEN)
		if (o->seen[i] == hash)
			return false;
	o->seen[i] = hash;
	return true;
}

static void try_loss(struct outage *o, enum power_loss loss, uint64_t seed)
{
	if (!is_new(o, powerfs_hash(loss, seed)))
		return;
	o->cases++;
	place_remove(o->after);
	powerfs_survivors(loss, seed, o->after);
	place_make_dir(o->after_store); /* nothing at all is left: the user makes a new one */
	snprintf(o->promise.when, sizeof(o->promise.when), "[%s] power lost at call %ld, survivors %d, seed %llu",
		 o->promise.options, o->moments, loss, (unsigned long long)seed);
	vv_dir_set_fs(lazyfs());
	promise_check(&o->promise);
	vv_dir_set_fs(powerfs());
}

static void lose_power(void *arg)
{
	struct outage *o = arg;

	if (++o->moments % o->every)
		return;
	script_log_copy(&o->log, &o->knew);
	try_loss(o, POWER_NOTHING, 0);
	try_loss(o, POWER_NAMES, 0);
	try_loss(o, POWER_HALVES, 0);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		try_loss(o, POWER_RANDOM, seed * 1000003 + (uint64_t)o->moments);
}

static struct outage *begin(const char *options, bool big, bool delta)
{
	struct outage *o = calloc(1, sizeof(*o));

	CHECK(o);
	o->every = settle_stride(5);
	script_init(&o->check, big, delta);
	o->promise = (struct promise){ .script = &o->check, .store = o->after_store, .options = options, .log = &o->knew,
				       .newer = true };
	place_path(o->base, "disk");
	place_path(o->after, "after");
	place_path(o->store, "disk/store");
	place_path(o->after_store, "after/store");
	return o;
}

/* An empty disk, and a lineage whose next epoch is `first`. */
static void plug_in(struct outage *o, unsigned first)
{
	struct vv_store_options opt = { .create = true };
	struct vv_store *store = NULL;
	char name[100];

	place_remove(o->base);
	place_make_dir(o->base);
	powerfs_start(o->base);
	vv_dir_set_fs(powerfs());
	memset(&o->log, 0, sizeof(o->log));
	if (first == 1)
		return;
	CHECK(vv_store_open(o->store, &opt, &store) == 0);
	snprintf(name, sizeof(name), SCRIPT_LINEAGE "/%08u/%010u.r0.layer", (first - 1) / 100, first - 1);
	CHECK(vv_store_put(store, name, "not a layer", 11) == 0);
	vv_store_close(store);
}

static void end(struct outage *o)
{
	powerfs_start(o->base);
	script_fini(&o->check);
	free(o);
}

static void sweep(const char *options, unsigned steps, unsigned first, bool big, bool delta)
{
	struct outage *o = begin(options, big, delta);
	struct script run;
	varve *v;

	script_init(&run, big, delta);
	plug_in(o, first);
	powerfs_watch(lose_power, o);
	v = script_run(&run, o->store, options, 1, steps, &o->log, NULL, NULL);
	lose_power(o);
	CHECK_EQ(varve_close(v), 0);
	printf("%s: %ld moments, %ld cases\n", options, o->moments, o->cases);
	script_fini(&run);
	end(o);
}

/* The process dies at call n, leaving the system as it is. False when it was over before. */
static bool die_at(struct outage *o, long n, unsigned steps, unsigned first, void (*failed)(void *, const char *, int))
{
	varve *v = NULL;
	bool died;

	plug_in(o, first);
	powerfs_die(n);
	if (varve_open(o->store, SCRIPT_LINEAGE, o->promise.options, &v) == 0)
		for (unsigned step = 1; step <= steps; step++)
			if (script_step(&o->check, v, step, &o->log, failed, NULL) < 0)
				break;
	died = powerfs_died();
	varve_close(v);
	powerfs_die(0);
	return died;
}

static void ignore(void *arg, const char *call, int rc)
{
	(void)arg;
	(void)call;
	(void)rc;
}

/* Its successor lays down one more epoch; the power goes while it does, or after it was told that it did. */
static void succeed(struct outage *o, const struct script *run, unsigned step)
{
	varve *v = NULL;

	CHECK_EQ(varve_open(o->store, SCRIPT_LINEAGE, o->promise.options, &v), 0);
	if (varve_epoch(v) && (!o->log.n || varve_epoch(v) > o->log.done[o->log.n - 1].epoch)) {
		o->log.done[o->log.n].epoch = varve_epoch(v); /* it died after the commit, before it could tell */
		o->log.done[o->log.n++].step = o->log.trying;
	}
	powerfs_watch(lose_power, o);
	script_step(run, v, step, &o->log, NULL, NULL);
	powerfs_watch(NULL, NULL);
	CHECK_EQ(varve_close(v), 0);
}

static void successors(const char *options, unsigned steps, unsigned first)
{
	struct outage *o = begin(options, false, false);
	struct script run;
	long n = 1;

	script_init(&run, false, false);
	for (; die_at(o, n, steps, first, ignore); n += settle_stride(3)) {
		o->moments = n;
		o->every = 8 * settle_stride(5);
		succeed(o, &run, steps + 1);
		o->every = 1;
		lose_power(o);
	}
	printf("%s, successors: before call %ld, %ld cases\n", options, n, o->cases);
	script_fini(&run);
	end(o);
}

/* A call fails, the run goes on, and when it is through the power goes: what was reported after the failure must not rest
 * on what failed. */
static void faults(const char *options, unsigned steps, unsigned first)
{
	struct outage *o = begin(options, false, false);
	struct script run;
	bool failed = true;
	long n = 1;

	script_init(&run, false, false);
	o->every = 1;
	for (; failed; n += settle_stride(3)) {
		varve *v;

		plug_in(o, first);
		powerfs_fail(n);
		v = script_run(&run, o->store, options, 1, steps, &o->log, ignore, NULL);
		failed = powerfs_died();
		o->moments = n;
		lose_power(o);
		varve_close(v);
	}
	printf("%s, faults: before call %ld, %ld cases\n", options, n, o->cases);
	script_fini(&run);
	end(o);
}

int main(void)
{
	sweep(SCRIPT_SMALL "codec=none", 8, 1, false, false);
	sweep(SCRIPT_SMALL CODED, 5, 97, false, false);
	sweep(SCRIPT_DELTA "codec=none", 4, 98, false, true);
	sweep(SCRIPT_BIG "codec=none", 1, 1, true, false);
	successors(SCRIPT_SMALL "codec=none", 2, 1);
	successors(SCRIPT_SMALL "codec=none", 1, 99);
	successors(SCRIPT_SMALL "codec=none", 5, 97);
	faults(SCRIPT_SMALL "codec=none", 2, 1);
	faults(SCRIPT_SMALL "codec=none", 6, 97);
	vv_dir_direct_set_room(4096);
	vv_dir_spare_set_least(1);
	vv_dir_cut_set_step(4096);
	sweep(SCRIPT_SMALL "codec=none io=direct", 8, 1, false, false);
	faults(SCRIPT_SMALL "codec=none io=direct", 6, 97);
	return 0;
}
