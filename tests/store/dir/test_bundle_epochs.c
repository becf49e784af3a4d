// ctest: MODES
/* A run whose layers keep moving into bundles: sessions, restarts, verify, retention and gc see no difference. */
#include "store/dir/dir.h"
#include "support/lazyfs.h"
#include "support/members.h"
#include "support/place.h"
#include "support/promise.h"
#include "support/settle.h"
#include "vv_test.h"

enum { LAST = 14 };

static void complain(void *arg, const char *call, int rc)
{
	(void)arg;
	fprintf(stderr, "%s: %d: %s\n", call, rc, varve_last_error());
	exit(1);
}

static void run(const char *options, bool big, bool delta)
{
	struct script script, check;
	struct script_log log = { 0 };
	struct promise p = { .script = &check, .options = options, .log = &log, .when = "layers in bundles" };
	char store[PLACE_MAX];
	size_t moved = 0;
	varve *v;

	place_remove(place_path(store, "store"));
	p.store = store;
	script_init(&script, big, delta);
	script_init(&check, big, delta);
	v = script_run(&script, store, options, 1, 1, &log, complain, NULL);
	for (unsigned step = 2; step <= LAST; step++) {
		settle_idle(v);
		if (step % 3)
			moved += members_move(store, SCRIPT_LINEAGE);
		if (step == LAST / 2) { /* and by one who knows nothing yet */
			varve_close(v);
			promise_check_epochs(&p);
			v = script_run(&script, store, options, step, step, &log, complain, NULL);
			continue;
		}
		CHECK_EQ(script_step(&script, v, step, &log, complain, NULL), 0);
	}
	varve_close(v);
	moved += members_move(store, SCRIPT_LINEAGE);
	CHECK(moved >= LAST);
	promise_check(&p);
	script_fini(&script);
	script_fini(&check);
}

int main(void)
{
	vv_dir_set_fs(lazyfs());
	run(SCRIPT_SMALL, false, false);
	run(SCRIPT_DELTA, false, true);
	run(SCRIPT_BIG, true, false);
	return 0;
}
