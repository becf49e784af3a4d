// ctest: TIMEOUT 300 COST 15 MODES
/* Every allocation fails once; whatever that does to the run, the promises hold and nothing leaks. */
#include "base/mem.h"
#include "store/dir/dir.h"
#include "support/coded.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "support/promise.h"
#include "support/settle.h"
#include "vv_test.h"

static void failed(void *arg, const char *call, int rc)
{
	if (rc == VARVE_ENOMEM && varve_last_error()[0])
		return;
	fprintf(stderr, "allocation %ld: %s returns %d: \"%s\"\n", *(long *)arg, call, rc, varve_last_error());
	exit(1);
}

/* One run in which allocation n fails; the number of allocations it asked for. */
static long run_case(struct promise *p, unsigned steps, long n)
{
	struct script_log log = { 0 };
	long asked;
	varve *v;

	place_remove(p->store);
	vv_mem_fail_at(n);
	v = script_run(p->script, p->store, p->options, 1, steps, &log, failed, &n);
	asked = vv_mem_asked();
	vv_mem_fail_at(0);
	CHECK(v);
	CHECK_EQ(script_step(p->script, v, steps + 1, &log, failed, &n), 0);
	CHECK_EQ(varve_close(v), 0);
	p->log = &log;
	snprintf(p->when, sizeof(p->when), "[%s] allocation %ld", p->options, n);
	promise_check(p);
	return asked;
}

/* A restart that runs out of memory says so, and the next one works. */
static long restart_case(const struct promise *p, unsigned step, long n)
{
	varve *v = NULL;
	long asked;
	int rc;

	vv_mem_fail_at(n);
	rc = varve_open(p->store, SCRIPT_LINEAGE, p->options, &v);
	if (rc == 0)
		rc = script_set(p->script, v, step, false);
	if (rc == 0)
		rc = varve_restart(v, VARVE_LATEST);
	asked = vv_mem_asked();
	vv_mem_fail_at(0);
	if (rc < 0)
		failed(&n, "restart", rc);
	else
		CHECK(script_is(p->script, step));
	if (v) {
		CHECK_EQ(script_set(p->script, v, step, false), 0);
		CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
		CHECK(script_is(p->script, step));
	}
	CHECK_EQ(varve_close(v), 0);
	return asked;
}

static void sweep(const char *options, unsigned steps, bool delta, long stride)
{
	struct script script;
	char store[PLACE_MAX];
	struct promise p = { .script = &script, .store = place_path(store, "store"), .options = options };
	struct script_log log = { 0 };
	long n = 1;

	script_init(&script, false, delta);
	while (run_case(&p, steps, n) >= n)
		n += stride;
	printf("%s: %ld allocations\n", options, n - 1);
	place_remove(store);
	CHECK_EQ(varve_close(script_run(&script, store, options, 1, steps, &log, NULL, NULL)), 0);
	for (n = 1; restart_case(&p, steps, n) >= n;)
		n += settle_stride(5);
	printf("%s, restart: %ld allocations\n", options, n - 1);
	script_fini(&script);
}

int main(void)
{
	vv_dir_set_fs(lazyfs());
	sweep(SCRIPT_SMALL CODED, 4, false, settle_stride(5));
	sweep(SCRIPT_DELTA "codec=none", 4, true, 5 * settle_stride(5));
	return 0;
}
