#include "support/promise.h"
#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "engine/lineage/layer_file.h"
#include "engine/upkeep/verify.h"
#include "support/settle.h"
#include "vv_test.h"
#include <inttypes.h>
#include <stdarg.h>

enum { NEXT_STEP = 21 };

static _Noreturn __attribute__((format(printf, 2, 3))) void broken(const struct promise *p, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", p->when);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nlast error: %s\n", varve_last_error());
	abort();
}

/* The step that the epoch was made from; 0 if the run does not know the epoch. */
static unsigned step_of(const struct script_log *log, uint64_t epoch)
{
	for (unsigned i = 0; i < log->n; i++)
		if (log->done[i].epoch == epoch)
			return log->done[i].step;
	return 0;
}

static uint64_t last_done(const struct script_log *log)
{
	return log->n ? log->done[log->n - 1].epoch : 0;
}

static void tell(void *arg, const char *problem)
{
	fprintf(stderr, "%s: verify: %s\n", ((const struct promise *)arg)->when, problem);
}

/* The epochs in the store; none where there is no lineage yet. */
static void look(const struct promise *p, struct vv_listing *l)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *store = NULL;
	struct vv_lineage lin;
	struct vv_verify_report report;
	struct vv_pool *pool = NULL;
	union {
		const void *in;
		void *out;
	} arg = { .in = p };
	int rc = vv_store_open(p->store, &opt, &store);

	if (rc == 0)
		rc = vv_catalog_open(store, SCRIPT_LINEAGE, false, &lin);
	if (rc == VARVE_ENOENT && p->log->n == 0) {
		vv_store_close(store);
		return;
	}
	if (rc)
		broken(p, "the lineage cannot be opened");
	if (vv_catalog_list(&lin, 0, l) < 0 || vv_pool_new(0, &pool) < 0 ||
	    vv_verify_run(&lin, pool, 0, false, tell, arg.out, NULL, &report) < 0)
		broken(p, "the lineage cannot be read");
	if (report.problems)
		broken(p, "verify finds %zu problem(s)", report.problems);
	vv_pool_free(pool);
	vv_store_close(store);
}

static void restore(const struct promise *p, varve *v, uint64_t epoch, uint64_t as, unsigned step)
{
	int rc = script_set(p->script, v, step, false);

	if (rc == 0)
		rc = varve_restart(v, as);
	if (rc != 1)
		broken(p, "epoch %" PRIu64 " (step %u) cannot be restored: %d", epoch, step, rc);
	if (varve_epoch(v) != epoch)
		broken(p, "restarted from epoch %" PRIu64 ", expected %" PRIu64, varve_epoch(v), epoch);
	if (!script_is(p->script, step))
		broken(p, "epoch %" PRIu64 " is wrong", epoch);
}

static void restore_all(const struct promise *p, varve *v, const struct vv_listing *l)
{
	uint64_t newest = l->n_epochs ? l->epoch[l->n_epochs - 1] : 0, last = last_done(p->log);

	if (newest < last || (newest > last && !p->newer))
		broken(p, "the newest epoch is %" PRIu64 ", the run saw %" PRIu64, newest, last);
	for (size_t i = 0; i < l->n_epochs; i++) {
		unsigned step = step_of(p->log, l->epoch[i]);

		if (!step && (l->epoch[i] < last || !p->newer))
			broken(p, "epoch %" PRIu64 " was never reported", l->epoch[i]);
		restore(p, v, l->epoch[i], l->epoch[i], step ? step : p->log->trying);
	}
	if (newest)
		restore(p, v, newest, VARVE_LATEST, step_of(p->log, newest) ? step_of(p->log, newest) : p->log->trying);
	else if (varve_restart(v, VARVE_LATEST) != 0)
		broken(p, "an empty lineage restarts");
}

void promise_check_epochs(const struct promise *p)
{
	struct vv_listing l = { 0 };
	varve *v = NULL;

	look(p, &l);
	if (varve_open(p->store, SCRIPT_LINEAGE, p->options, &v) < 0)
		broken(p, "varve_open");
	restore_all(p, v, &l);
	if (varve_close(v) < 0)
		broken(p, "varve_close");
	vv_catalog_listing_fini(&l);
}

void promise_check(const struct promise *p)
{
	struct vv_listing l = { 0 };
	varve *v = NULL;
	uint64_t epoch;

	look(p, &l);
	if (varve_open(p->store, SCRIPT_LINEAGE, p->options, &v) < 0)
		broken(p, "varve_open");
	restore_all(p, v, &l);
	vv_catalog_listing_fini(&l);
	if (script_set(p->script, v, NEXT_STEP, true) < 0 || settle_checkpoint(v) < 0)
		broken(p, "the next checkpoint fails");
	epoch = varve_epoch(v);
	if (varve_close(v) < 0)
		broken(p, "varve_close after the next checkpoint");
	if (promise_epochs(p->store) > 2)
		broken(p, "keep=2 keeps %zu", promise_epochs(p->store));
	if (varve_open(p->store, SCRIPT_LINEAGE, p->options, &v) < 0)
		broken(p, "varve_open after the next checkpoint");
	restore(p, v, epoch, VARVE_LATEST, NEXT_STEP);
	varve_close(v);
}

static struct vv_store *list(const char *url, struct vv_lineage *lin, struct vv_listing *l)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *store = NULL;

	CHECK(vv_store_open(url, &opt, &store) == 0);
	CHECK(vv_catalog_open(store, SCRIPT_LINEAGE, false, lin) == 0);
	CHECK(vv_catalog_list(lin, 0, l) == 0);
	return store;
}

size_t promise_epochs(const char *url)
{
	struct vv_listing l = { 0 };
	struct vv_lineage lin;
	struct vv_store *store = list(url, &lin, &l);
	size_t n = l.n_epochs;

	vv_catalog_listing_fini(&l);
	vv_store_close(store);
	return n;
}

size_t promise_deltas(const char *url)
{
	struct vv_listing l = { 0 };
	struct vv_lineage lin;
	struct vv_store *store = list(url, &lin, &l);
	size_t n = 0;

	for (size_t i = 0; i < l.n_layers; i++) {
		struct vv_layer_file *f = NULL;

		CHECK(vv_layer_file_open(&lin, l.layer[i].layer, 0, &f) == 0);
		n += f->head.parent != 0;
		vv_layer_file_close(f);
	}
	vv_catalog_listing_fini(&l);
	vv_store_close(store);
	return n;
}
