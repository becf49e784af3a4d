#include "cli/run/run_epochs.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/options.h"
#include "engine/upkeep/verify.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* VV_ENOENT: neither store nor lineage need exist. */
static int open_lineage(struct vv_run_epochs *e)
{
	struct vv_verb_context *job = e->plan->job;
	int rc = e->open || job->store ? 0 : vv_verb_context_open_other(job, e->plan->store, &job->store);

	if (rc == 0 && !e->open)
		rc = vv_catalog_open(job->store, e->plan->lineage, false, &e->lin);
	e->open = rc == 0;
	return rc;
}

/* Checks a folder; stores of other kinds report the error themselves. A folder of another user is
 * accepted if the lineage in it is writable. */
static bool is_writable(const struct vv_run_plan *plan)
{
	char *lineage = vv_mem_printf("%s/%s", plan->store, plan->lineage);
	bool yes = plan->store[0] != '/' || access(plan->store, W_OK | X_OK) == 0;
	int why = errno;

	yes = yes || (lineage && access(lineage, W_OK | X_OK) == 0);
	vv_mem_free(lineage);
	errno = why;
	return yes;
}

int vv_run_epochs_make_store(struct vv_run_epochs *e)
{
	const struct vv_run_plan *plan = e->plan;
	struct vv_store_options opt = vv_options_store(&plan->job->conf, true);
	int rc = plan->job->store ? 0 : vv_store_open(plan->store, &opt, &plan->job->store);

	if (rc == 0 && !is_writable(plan))
		rc = vv_err_sys(errno, "store '%s' cannot be written", plan->store);
	return rc ? vv_err_context(rc, "run: checkpoints would have no place") : 0;
}

int vv_run_epochs_check(struct vv_run_epochs *e, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	int rc = open_lineage(e);

	if (rc == 0)
		rc = vv_catalog_commit(&e->lin, epoch, &c);
	vv_commit_fini(&c);
	return rc;
}

int vv_run_epochs_look_up(struct vv_run_epochs *e, struct vv_spec *spec)
{
	int rc = open_lineage(e);

	return rc ? rc : vv_spec_look_up(spec, &e->lin);
}

int vv_run_epochs_newest(struct vv_run_epochs *e, uint64_t before, uint64_t *epoch)
{
	int rc = open_lineage(e);

	*epoch = 0;
	return rc == VV_ENOENT ? 0 : rc ? rc : vv_catalog_newest(&e->lin, before, epoch);
}

static void ignore(void *arg, const char *problem)
{
	(void)arg;
	(void)problem;
}

/* 1: the epoch is damaged, or gone. */
static int is_bad(struct vv_run_epochs *e, uint64_t epoch)
{
	struct vv_verify_report report = { 0 };
	int rc = vv_run_epochs_check(e, epoch);

	if (rc == 0)
		rc = vv_verb_context_start_pool(e->plan->job);
	if (rc == 0)
		rc = vv_verify_run(&e->lin, e->plan->job->pool, epoch, false, ignore, NULL, NULL, &report);
	vv_affected_epochs_fini(&report.affected);
	return rc == VV_ENOENT || rc == VV_EDAMAGED || report.problems ? 1 : rc;
}

int vv_run_epochs_newest_intact(struct vv_run_epochs *e, uint64_t before, uint64_t *epoch)
{
	uint64_t at = 0;
	int rc = vv_run_epochs_newest(e, before, &at), bad = 0;

	while (rc == 0 && at && (bad = is_bad(e, at)) == 1)
		rc = vv_run_epochs_newest(e, at, &at);
	*epoch = rc == 0 && bad == 0 ? at : 0;
	return rc ? rc : bad < 0 ? bad : 0;
}

int vv_run_epochs_size(struct vv_run_epochs *e, uint64_t epoch, uint64_t *memory, uint64_t *stored)
{
	struct vv_commit c = { 0 };
	int rc = open_lineage(e);

	if (rc == 0)
		rc = vv_catalog_commit(&e->lin, epoch, &c);
	*memory = vv_commit_sum(&c).memory;
	*stored = vv_commit_sum(&c).file_len;
	vv_commit_fini(&c);
	return rc;
}

int vv_run_epochs_end(struct vv_run_epochs *e)
{
	char object[VV_NAME_MAX], text[24];
	uint64_t newest = 0;
	int rc = vv_run_epochs_newest(e, UINT64_MAX, &newest);

	if (rc || !newest)
		return rc;
	vv_name_ended(object, e->lin.name);
	snprintf(text, sizeof(text), "%" PRIu64 "\n", newest);
	return vv_store_put(e->lin.store, object, text, strlen(text));
}

/* Returns 0 for text that is not a number: varve did not write it. */
static uint64_t parse(const uint8_t *text, size_t n)
{
	uint64_t number = 0;

	if (n < 2 || text[n - 1] != '\n')
		return 0;
	for (size_t i = 0; i < n - 1; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		number = number * 10 + (text[i] - '0');
	}
	return number;
}

int vv_run_epochs_ended(struct vv_run_epochs *e, uint64_t *epoch)
{
	enum { DIGITS = 12 }; /* more than an epoch has */
	char object[VV_NAME_MAX];
	uint8_t *text = NULL;
	size_t n = 0;
	int rc = vv_run_epochs_newest(e, UINT64_MAX, epoch);

	if (rc || !*epoch)
		return rc;
	vv_name_ended(object, e->lin.name);
	rc = vv_store_get(e->lin.store, object, DIGITS, &text, &n);
	if (rc || parse(text, n) < *epoch)
		*epoch = 0;
	vv_mem_free(text);
	if (rc == VV_ENOENT || rc == VV_EDAMAGED) { /* there is no such object, or it is too long */
		vv_err_clear();
		return 0;
	}
	return rc;
}

int vv_run_epochs_holder(struct vv_run_epochs *e, struct vv_lock_holder *out)
{
	char object[VV_NAME_MAX];
	int rc = open_lineage(e);

	vv_name_lock(object, e->plan->lineage);
	return rc ? rc : vv_store_holder(e->lin.store, object, out);
}

int vv_run_epochs_await(struct vv_run_epochs *e, double patience)
{
	double end = vv_clock_s() + patience;
	int rc = open_lineage(e);

	if (rc)
		return rc == VV_ENOENT ? 0 : rc;
	while ((rc = vv_verb_context_lock(e->plan->job, &e->lin)) == VV_EBUSY && vv_clock_s() < end)
		vv_clock_sleep(0.05);
	vv_verb_context_unlock(e->plan->job);
	return rc;
}
