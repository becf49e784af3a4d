// ctest: TIMEOUT 120 COST 2
/* An epoch that fails behind the program's back: everybody is told, once; it never was, what is older restores, the next one
 * holds everything; and no thread is left waiting at a fence. */
#include "store/dir/dir.h"
#include "support/gatefs.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/writers.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { PAGE = 4096, LEN = 64 * PAGE };

static const char *const trackers[] = { "auto", "wpasync", "sigbus", "mprotect", "digest", NULL };

struct done {
	atomic_uint calls;
	uint64_t epoch;
	int rc;
	char error[300];
};

struct run {
	varve *v;
	char store[PLACE_MAX];
	uint8_t *p, copy[LEN], read[LEN];
	uint64_t seed;
	struct done done;
};

static void on_done(void *arg, uint64_t epoch, int rc)
{
	struct done *d = arg;

	d->calls++;
	d->epoch = epoch;
	d->rc = rc;
	snprintf(d->error, sizeof(d->error), "%s", varve_last_error());
}

static void check(struct run *u, uint64_t epoch)
{
	MUST(varve_restart_region(u->v, epoch, "p", u->read, LEN) == 0);
	MUST(memcmp(u->read, u->copy, LEN) == 0);
}

/* A session with one epoch; its state is in copy. false: not with this kernel. */
static bool begin(struct run *u, const char *tracker, const char *more)
{
	char options[200];
	int rc;

	snprintf(options, sizeof(options), "tracker=%s codec=none log=error %s", tracker, more);
	memset(&u->done, 0, sizeof(u->done));
	u->seed = 7;
	place_path(u->store, "store");
	gatefs_pass();
	rc = varve_open(u->store, "run", options, &u->v);
	if (rc == VARVE_ENOTSUP)
		return false;
	MUST(rc == 0);
	u->p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(u->p != MAP_FAILED && varve_protect(u->v, "p", u->p, LEN) == 0);
	MUST(varve_on_done(u->v, on_done, &u->done) == 0);
	gen_bytes(&u->seed, u->p, LEN);
	MUST(varve_checkpoint(u->v) == 0 && varve_epoch(u->v) == 1);
	memcpy(u->copy, u->p, LEN);
	MUST(varve_wait(u->v, 1) == 0);
	check(u, 1);
	return true;
}

static void end(struct run *u)
{
	munmap(u->p, LEN);
	place_remove(u->store);
	gatefs_pass();
}

/* ---- who is told ------------------------------------------------------------------------------------------------------- */

enum teller { BY_WAIT, BY_TEST, BY_CHECKPOINT, BY_CLOSE, TELLERS };

static bool is_full(int rc)
{
	return rc == VARVE_ENOSPC && strstr(varve_last_error(), strerror(ENOSPC));
}

/* Epoch 2 waits in its first call of the kind, then fails. */
static void break_epoch(struct run *u, enum gate kind)
{
	gatefs_hold(kind);
	gen_bytes(&u->seed, u->p + 3 * PAGE, 20 * PAGE);
	MUST(varve_checkpoint(u->v) == 0);
	MUST(varve_epoch(u->v) == 2);
	gatefs_await();
	MUST(varve_test(u->v, 2) == 0);
	MUST(u->done.calls == 1);
	gatefs_fail(kind, ENOSPC);
}

static void be_told(struct run *u, enum teller teller)
{
	int rc = 0;

	if (teller == BY_WAIT) {
		rc = varve_wait(u->v, 2);
	} else if (teller == BY_TEST) {
		while ((rc = varve_test(u->v, 2)) == 0)
			must_nap(1);
	} else if (teller == BY_CHECKPOINT) {
		rc = varve_checkpoint(u->v);
	} else {
		rc = varve_close(u->v);
	}
	MUST(rc < 0 && is_full(rc));
}

/* After the failure: it never was, and the next holds what was written before it, during it, and since. */
static void check_failed(struct run *u)
{
	MUST(varve_restart_region(u->v, 2, "p", u->read, LEN) == VARVE_ENOENT);
	check(u, 1); /* it waits for the flusher, callback and all; varve_wait need not */
	MUST(u->done.calls == 2 && u->done.epoch == 2 && u->done.rc == VARVE_ENOSPC && u->done.error[0]);
	gatefs_pass();
	u->p[50 * PAGE + 5]++;
	memcpy(u->copy, u->p, LEN);
	MUST(varve_checkpoint(u->v) == 0);
	MUST(varve_epoch(u->v) == 3);
	u->p[10 * PAGE]++;
	MUST(varve_wait(u->v, 3) == 0);
	check(u, 3);
	MUST(u->done.calls == 3 && u->done.epoch == 3 && u->done.rc == 0);
	MUST(is_full(varve_wait(u->v, 2))); /* who asks again hears it again */
	MUST(varve_close(u->v) == 0);
}

/* After varve_close: a restart finds the epoch before the failed one. */
static void check_closed(struct run *u)
{
	gatefs_pass();
	MUST(varve_open(u->store, "run", NULL, &u->v) == 0);
	check(u, 1);
	MUST(varve_restart_region(u->v, 2, "p", u->read, LEN) == VARVE_ENOENT);
	MUST(varve_close(u->v) == 0);
}

static void told(const char *tracker, enum teller teller, enum gate kind, const char *more)
{
	struct run u = { 0 };

	must_begin("tracker %s, told by %d, gate %d, %s", tracker, (int)teller, (int)kind, more);
	if (!begin(&u, tracker, more))
		return;
	break_epoch(&u, kind);
	u.p[5 * PAGE]++; /* of epoch 2, not stored: at a fence, unless it was copied */
	be_told(&u, teller);
	if (teller == BY_CLOSE)
		check_closed(&u);
	else
		check_failed(&u);
	end(&u);
}

/* The last epoch fails, and a call reports it. Then varve_close returns 0, though the epoch is not durable. */
static void told_before_close(enum teller teller, enum gate kind)
{
	struct run u = { 0 };

	must_begin("told by %d, then closed, gate %d", (int)teller, (int)kind);
	MUST(begin(&u, "auto", ""));
	break_epoch(&u, kind);
	be_told(&u, teller);
	if (teller != BY_CHECKPOINT) {
		MUST(is_full(varve_wait(u.v, 2)));
		MUST(is_full(varve_wait(u.v, VARVE_LATEST)));
	}
	MUST(varve_close(u.v) == 0);
	check_closed(&u);
	end(&u);
}

/* ---- threads at a fence --------------------------------------------------------------------------------------------------- */

struct waiter {
	uint8_t *p;
	pthread_t thread;
	atomic_bool through;
};

static void *write_there(void *arg)
{
	struct waiter *w = arg;

	writers_fill(w->p, 0xab, 1);
	atomic_store(&w->through, true);
	return NULL;
}

static void write_protected(const char *tracker)
{
	struct run u = { 0 };
	struct waiter w[4] = { 0 };

	must_begin("tracker %s, threads at a fence", tracker);
	if (!begin(&u, tracker, "buffer=0 block=4096 granule=4096"))
		return;
	gatefs_hold(GATE_WRITE);
	gen_bytes(&u.seed, u.p, LEN);
	MUST(varve_checkpoint(u.v) == 0);
	gatefs_await();
	for (size_t i = 0; i < 4; i++) {
		w[i].p = u.p + (20 + 10 * i) * PAGE;
		MUST(pthread_create(&w[i].thread, NULL, write_there, &w[i]) == 0);
	}
	must_nap(30);
	for (size_t i = 0; i < 4; i++)
		MUST(!atomic_load(&w[i].through));
	gatefs_fail(GATE_WRITE, ENOSPC);
	for (size_t i = 0; i < 4; i++)
		pthread_join(w[i].thread, NULL);
	MUST(is_full(varve_wait(u.v, 2)));
	check_failed(&u);
	end(&u);
}

/* ---- again and again, beside writers ----------------------------------------------------------------------------------------- */

static void storm(const char *tracker, const char *more, uint64_t seed)
{
	struct run u = { 0 };
	struct area area = { NULL, LEN };
	struct writers *w;
	unsigned failed = 0, well = 0;
	uint64_t epoch = 1;

	must_begin("tracker %s, storm, %s, seed %" PRIu64, tracker, more, seed);
	if (!begin(&u, tracker, more))
		return;
	area.p = u.p;
	w = writers_new(3, seed, &area, 1);
	for (unsigned i = 0; i < 16; i++) {
		bool bad = gen_below(&seed, 2);
		enum gate kind = (enum gate)gen_below(&seed, GATE_KINDS);
		int rc;

		writers_pause(w);
		memcpy(u.copy, u.p, LEN);
		if (bad)
			gatefs_fail_at(kind, EIO, 1 + (long)gen_below(&seed, 3));
		rc = varve_checkpoint(u.v);
		epoch++; /* a number is never used twice */
		writers_go(w);
		must_nap((long)gen_below(&seed, 3));
		rc = rc ? rc : varve_wait(u.v, epoch);
		gatefs_pass();
		MUST(rc == 0 || (bad && rc == VARVE_EIO));
		if (rc == 0)
			check(&u, epoch);
		else
			MUST(varve_restart_region(u.v, epoch, "p", u.read, LEN) == VARVE_ENOENT);
		well += rc == 0;
		failed += rc != 0;
	}
	writers_free(w);
	MUST(failed && well);
	memcpy(u.copy, u.p, LEN);
	MUST(varve_checkpoint(u.v) == 0);
	check(&u, epoch + 1);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

/* An epoch that has failed before anybody asks: the usual words must not take the one before it for it. */
static void quick(void)
{
	struct run u = { 0 };

	must_begin("failed before anybody asks");
	MUST(begin(&u, "auto", ""));
	gatefs_fail(GATE_WRITE, ENOSPC);
	u.p[0]++;
	MUST(varve_checkpoint(u.v) == 0);
	while (u.done.calls < 2)
		must_nap(1);
	MUST(is_full(varve_wait(u.v, varve_epoch(u.v))));
	gatefs_pass();
	MUST(varve_checkpoint(u.v) == 0);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

/* ---- the real thing: a file that may not grow --------------------------------------------------------------------------------- */

static void limited(void)
{
	struct run u = { 0 };
	struct rlimit old, tight = { 64 << 10, RLIM_INFINITY };

	must_begin("file size limit");
	signal(SIGXFSZ, SIG_IGN);
	MUST(begin(&u, "auto", "buffer=64KiB"));
	MUST(getrlimit(RLIMIT_FSIZE, &old) == 0);
	tight.rlim_max = old.rlim_max;
	gen_bytes(&u.seed, u.p, LEN);
	MUST(setrlimit(RLIMIT_FSIZE, &tight) == 0);
	MUST(varve_checkpoint(u.v) == 0);
	writers_fill(u.p, 1, LEN); /* through all fences */
	MUST(varve_wait(u.v, 2) < 0 && strstr(varve_last_error(), strerror(EFBIG)));
	check(&u, 1);
	MUST(setrlimit(RLIMIT_FSIZE, &old) == 0);
	memcpy(u.copy, u.p, LEN);
	MUST(varve_checkpoint(u.v) == 0);
	MUST(varve_wait(u.v, 3) == 0);
	check(&u, 3);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

int main(void)
{
	vv_dir_set_fs(gatefs());
	for (const char *const *t = trackers; *t; t++)
		for (int k = 0; k < TELLERS; k++)
			told(*t, (enum teller)k, GATE_WRITE, "");
	for (int k = 0; k < BY_CLOSE; k++)
		for (int kind = GATE_WRITE; kind < GATE_KINDS; kind++)
			told_before_close((enum teller)k, (enum gate)kind);
	for (int k = GATE_SYNC; k < GATE_KINDS; k++) {
		told("auto", BY_WAIT, (enum gate)k, "");
		told("mprotect", BY_CHECKPOINT, (enum gate)k, "");
	}
	for (const char *const *t = trackers; *t; t++)
		write_protected(*t);
	for (const char *const *t = trackers; *t; t++) {
		storm(*t, "buffer=0 chunk=512", 1);
		storm(*t, "buffer=32KiB granule=4096", 2);
		storm(*t, "buffer=100% order=address threads=1", 3);
	}
	limited();
	quick();
	return 0;
}
