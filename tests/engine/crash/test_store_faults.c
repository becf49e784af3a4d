// ctest: TIMEOUT 300 COST 25 MODES
/* Every call that changes the store, and every one that reads it, fails once, in many ways; whatever that does to the run,
 * the promises hold. */
#include "store/dir/dir.h"
#include "store/dir/dir_direct.h"
#include "store/dir/dir_cut.h"
#include "store/dir/dir_spare.h"
#include "support/coded.h"
#include "support/faultfs.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "support/promise.h"
#include "support/settle.h"
#include "vv_test.h"
#include <errno.h>

struct sweep {
	const char *options;
	unsigned steps;
	struct script script;
	char store[PLACE_MAX];
	/* the case under way */
	enum fault kind;
	long n;
	unsigned failures;
};

/* A failed call names the place and the cause. */
static void failed(void *arg, const char *call, int rc)
{
	struct sweep *s = arg;
	int want = faultfs_errno(s->kind) == ENOSPC ? VARVE_ENOSPC : VARVE_EIO;

	s->failures++;
	if (rc == want && strstr(varve_last_error(), s->store) &&
	    strstr(varve_last_error(), strerror(faultfs_errno(s->kind))))
		return;
	fprintf(stderr, "%s at call %ld: %s returns %d: \"%s\"\n", faultfs_name(s->kind), s->n, call, rc,
		varve_last_error());
	exit(1);
}

/* After the fault, in the same session: the next checkpoint works, and retention catches up. */
static void go_on(struct sweep *s, varve *v, struct script_log *log)
{
	faultfs_arm(FAULT_NONE, 0);
	for (unsigned i = 1; i <= 2; i++)
		if (script_step(&s->script, v, s->steps + i, log, failed, s) < 0)
			exit(1);
	if (promise_epochs(s->store) > 2) {
		fprintf(stderr, "%s at call %ld: %zu epochs are kept\n", faultfs_name(s->kind), s->n,
			promise_epochs(s->store));
		exit(1);
	}
}

/* One run with the fault at call n; false when it was over before. */
static bool run_case(struct sweep *s)
{
	struct script_log log = { 0 };
	struct promise p = { .script = &s->script, .store = s->store, .options = s->options, .log = &log };
	bool fired;
	varve *v;

	place_remove(s->store);
	s->failures = 0;
	vv_dir_set_fs(faultfs());
	faultfs_arm(s->kind, s->n);
	v = script_run(&s->script, s->store, s->options, 1, s->steps, &log, failed, s);
	fired = faultfs_fired();
	if (s->kind == FAULT_NONE) {
		CHECK(log.n == s->steps);
		CHECK(s->script.delta ? promise_deltas(s->store) > 0 : faultfs_replaced() > 0); /* gc rewrote layers */
	}
	if (v)
		go_on(s, v, &log);
	else
		faultfs_arm(FAULT_NONE, 0);
	CHECK_EQ(varve_close(v), 0);
	vv_dir_set_fs(lazyfs());
	snprintf(p.when, sizeof(p.when), "[%s] %s at call %ld", s->options, faultfs_name(s->kind), s->n);
	if (!v)
		place_make_dir(s->store); /* it died before there was any */
	promise_check(&p);
	return fired;
}

/* Every call in two ways: once it fails, once everything does from there on. Of the other ways every second. */
static long stride_of(enum fault kind)
{
	bool all = kind == FAULT_EIO || kind == FAULT_DEAD || kind == FAULT_READ;

	return settle_stride(5) + !all;
}

static void sweep(const char *options, unsigned steps, bool big, bool delta, const enum fault *kinds)
{
	struct sweep s = { .options = options, .steps = steps };

	script_init(&s.script, big, delta);
	place_path(s.store, "store");
	if (steps > 3)
		run_case(&s);
	for (; *kinds; kinds++) {
		s.kind = *kinds;
		for (s.n = 1; run_case(&s); s.n += stride_of(s.kind))
			;
		printf("%s, %s: before call %ld\n", options, faultfs_name(s.kind), s.n);
	}
	script_fini(&s.script);
}

int main(void)
{
	static const enum fault all[] = { FAULT_EIO,  FAULT_ENOSPC, FAULT_SHORT, FAULT_TEAR,
					  FAULT_DEAD, FAULT_READ,   FAULT_NONE };
	static const enum fault some[] = { FAULT_EIO, FAULT_DEAD, FAULT_READ, FAULT_NONE };

	sweep(SCRIPT_SMALL "codec=none", 7, false, false, all);
	sweep(SCRIPT_SMALL CODED, 7, false, false, some);
	sweep(SCRIPT_DELTA CODED, 4, false, true, some);
	sweep(SCRIPT_BIG "codec=none", 1, true, false, all);
	vv_dir_direct_set_room(4096);
	vv_dir_spare_set_least(1);
	vv_dir_cut_set_step(4096);
	sweep(SCRIPT_SMALL "codec=none io=direct", 7, false, false, all);
	return 0;
}
