#include "cli/run/run_rehearse.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "cli/base/interrupt.h"
#include "cli/run/run_env.h"
#include "cli/run/run_launch.h"
#include "cli/run/run_messages.h"
#include "cli/base/text.h"
#include "engine/upkeep/diff.h"
#include "engine/session/rehearse.h"
#include "engine/run_protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINES = 10 }; /* of undeclared memory that differs: the largest objects */
enum { WHERE = sizeof(struct vv_text_long) + 160 };

struct run_rehearse_side { /* the store of a run */
	char path[PATH_MAX];
	struct vv_store *store;
	struct vv_lineage lineage;
};

struct rehearsal {
	const struct vv_run_plan *plan;
	struct vv_run_messages tell;
	char folder[PATH_MAX];
	bool temporary;
	bool keeps_output; /* of the program, because the error names it */
	atomic_bool stop;
	/* the epoch of the restart, and the one that ends the runs */
	uint64_t from, last;
	/* two runs without a restart, and one with it */
	struct run_rehearse_side plain, twin, restarted;
	uint32_t ranks;

	char **self; /* RANK/REGION that differ between the runs without a restart */
	size_t n_self, self_cap;
	struct vv_map by_name; /* of these */

	/* it saves before it computes: the first epoch after a restart is the one that it came
	 * from */
	bool early;

	/* of the comparison in progress */
	uint64_t epoch; /* of the runs without a restart */
	uint32_t rank;
	bool probing; /* differences are not reported */
	bool moved;   /* a captured heap lies elsewhere */
	size_t equal, different, undeclared, by_themselves;
};

#define REPORT(r, event, epoch, ...) vv_run_messages_line(&(r)->tell, event, epoch, __VA_ARGS__)
#define WARN(r, event, epoch, ...) vv_run_messages_warn(&(r)->tell, event, epoch, __VA_ARGS__)

/* ---- the runs -------------------------------------------------------------------------------- */

static int place(struct rehearsal *r)
{
	const char *tmp = getenv("TMPDIR");
	struct run_rehearse_side *side[] = { &r->plain, &r->twin, &r->restarted };

	r->temporary = !vv_args_value(r->plan->job->args, "store");
	snprintf(r->folder, sizeof(r->folder), "%s", r->plan->store);
	if (strstr(r->folder, "://"))
		return vv_err_set(
			VV_EINVAL,
			"run: --rehearse compares stores in a folder of this host: --store is a path, or left out");
	if (r->temporary) {
		snprintf(r->folder, sizeof(r->folder), "%s/varve-rehearse-XXXXXX",
			 tmp && tmp[0] == '/' ? tmp : P_tmpdir);
		if (!mkdtemp(r->folder))
			return vv_err_sys(errno, "run: cannot make a folder like '%s'", r->folder);
	} else if (mkdir(r->folder, 0777) < 0) {
		return vv_err_sys(errno, "run: --rehearse wants a new folder for its stores; cannot make '%s'",
				  r->folder);
	}
	for (size_t i = 0; i < sizeof(side) / sizeof(side[0]);
	     /* names of one length: the environment moves nothing */
	     i++)
		if (snprintf(side[i]->path, PATH_MAX, "%s/%zu", r->folder, i + 1) >= PATH_MAX)
			return vv_err_set(VV_EINVAL, "run: the path of the folder '%.100s...' is too long", r->folder);
	return 0;
}

static int open_log(const struct run_rehearse_side *s, char path[PATH_MAX])
{
	int fd = -1;

	if (snprintf(path, PATH_MAX, "%s.out", s->path) < PATH_MAX)
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	return fd >= 0 ? fd : vv_err_sys(errno, "run: cannot open '%s' for the output of the program", path);
}

/* The one lineage that the program writes, or the named one; *newest: its newest epoch, 0 if there
 * is none. */
static int look(struct rehearsal *r, struct run_rehearse_side *s, uint64_t *newest)
{
	const char *named = vv_args_value(r->plan->job->args, "lineage");
	struct vv_names names = { 0 };
	int rc = s->store ? 0 : vv_verb_context_open_other(r->plan->job, s->path, &s->store);

	*newest = 0;
	if (rc == 0)
		rc = vv_catalog_lineages(s->store, &names);
	if (rc == 0 && names.n > 1 && !named)
		rc = vv_err_set(
			VV_EINVAL,
			"run: the program writes %zu lineages ('%s', '%s'%s): say by --lineage which one is compared",
			names.n, names.v[0].name, names.v[1].name, names.n > 2 ? ", ..." : "");
	if (rc == 0 && names.n)
		rc = vv_catalog_open(s->store, named ? named : names.v[0].name, false, &s->lineage);
	if (rc == 0 && names.n)
		rc = vv_catalog_newest(&s->lineage, UINT64_MAX, newest);
	vv_names_fini(&names);
	if (rc == VV_ENOENT) /* no session was opened */
		vv_err_clear();
	return rc == VV_ENOENT ? 0 : rc;
}

static int check_reached(struct rehearsal *r, struct run_rehearse_side *s, uint64_t last, int status, const char *log)
{
	char words[VV_CHILD_WORDS];
	uint64_t newest;
	int rc = look(r, s, &newest);

	if (rc || newest >= last)
		return rc;
	r->keeps_output = true;
	vv_child_describe(status, words);
	if (!newest)
		return vv_err_set(VV_EINVAL, "run: the program took no checkpoint, and %s; its output is in '%s'",
				  words, log);
	return vv_err_set(VV_EINVAL,
			  "run: the program %s after %" PRIu64 " checkpoints, and --rehearse %" PRIu64 " needs %" PRIu64
			  ": let it run longer, or rehearse fewer; its output is in '%s'",
			  words, newest, r->plan->rehearse, r->last, log);
}

/* An input that can be read only once cannot be read by each run. */
static const char *own_input(void)
{
	return lseek(STDIN_FILENO, 0, SEEK_SET) < 0 ? "/dev/null" : NULL;
}

/* A signal may come at any moment, so the loop polls and does not only wait for the end. */
static int await(struct rehearsal *r, pid_t pid, int *status)
{
	while (waitpid(pid, status, WNOHANG) == 0) {
		if (atomic_load(&r->stop))
			kill(-pid, SIGKILL);
		vv_clock_sleep(0.02);
	}
	return atomic_load(&r->stop) ? vv_err_set(VV_EINVAL, "run: the rehearsal was interrupted") : 0;
}

static int start(struct rehearsal *r, int output, pid_t *pid)
{
	struct vv_child how = { .argv = r->plan->command, .input = own_input(), .output = output, .dies_with_parent = true };
	struct vv_run_launch launch = { 0 };
	int rc = 0;

	if (r->plan->ranks) {
		rc = vv_run_launch_init(&launch, r->plan);
		how.argv = launch.word;
	}
	if (rc == 0)
		rc = vv_child_start(&how, pid);
	vv_run_launch_fini(&launch);
	return rc;
}

/* The process ends after the epoch, and a launcher may take that for a failure. The epoch therefore
 * decides, not the status. */
static int run_to(struct rehearsal *r, struct run_rehearse_side *s, uint64_t last)
{
	char log[PATH_MAX];
	int status = 0, rc = vv_run_env_rehearse(s->path, r->from + 1, last), output = rc ? rc : open_log(s, log);
	pid_t pid;

	if (output < 0)
		return output;
	rc = start(r, output, &pid);
	close(output);
	if (rc == 0)
		rc = await(r, pid, &status);
	return rc ? rc : check_reached(r, s, last > r->last ? r->last : last, status, log);
}

static int run_all(struct rehearsal *r)
{
	int rc;

	REPORT(r, "undisturbed", 0, "%s runs to epoch %" PRIu64 ", twice", r->plan->command[0], r->last);
	rc = run_to(r, &r->plain, r->last);
	if (rc == 0)
		rc = run_to(r, &r->twin, r->last);
	if (rc)
		return rc;
	REPORT(r, "restarted", r->from, "it runs to epoch %" PRIu64 ", ends, and continues from there", r->from);
	rc = run_to(r, &r->restarted, r->from);
	return rc ? rc : run_to(r, &r->restarted, r->last + 1);
}

/* ---- the comparison -------------------------------------------------------------------------- */

static bool is_undeclared(const char *name)
{
	return strncmp(name, VV_REHEARSE_UNDECLARED, strlen(VV_REHEARSE_UNDECLARED)) == 0;
}

static bool differs(const struct vv_diff_region *d)
{
	if (is_undeclared(d->name)) /* allocated in one run only: that alone is no difference */
		return d->a && d->b && d->bytes;
	return !d->a || !d->b || d->bytes || !vv_head_same_shape(d->a, d->b);
}

static void name_region(const struct rehearsal *r, const char *name, char out[VV_MAX_NAME + 64])
{
	char rank[32] = "";

	if (r->ranks > 1)
		snprintf(rank, sizeof(rank), " of rank %" PRIu32, r->rank);
	if (is_undeclared(name))
		snprintf(out, VV_MAX_NAME + 64, "%s%s", name + strlen(VV_REHEARSE_UNDECLARED), rank);
	else
		snprintf(out, VV_MAX_NAME + 64, "region '%s'%s", name, rank);
}

/* Prints the beginning of the difference. */
static void print_where(const struct vv_diff_region *d, char out[WHERE])
{
	uint64_t element = d->a && d->typed ? d->first / vv_head_element_size(d->a) : 0;
	char index[sizeof(struct vv_text_long) + 16] = "";

	if (!d->a || !d->b) {
		snprintf(out, WHERE, "is there in one of the runs only");
		return;
	}
	if (!d->bytes) {
		snprintf(out, WHERE, "has another shape");
		return;
	}
	if (d->typed && vv_head_same_shape(d->a, d->b))
		snprintf(index, sizeof(index), ", element %s", vv_text_index(d->a, element).s);
	snprintf(out, WHERE, "differs from byte %" PRIu64 "%s on (%" PRIu64 " of %" PRIu64 " bytes)", d->first, index,
		 d->bytes, d->a->len);
}

static char *key_of(const struct rehearsal *r, const char *name)
{
	return vv_mem_printf("%" PRIu32 "/%s", r->rank, name);
}

/* Notes a difference between the two undisturbed runs. */
static void note_self(void *arg, const struct vv_diff_region *d)
{
	char name[VV_MAX_NAME + 64], where[WHERE], *key;
	struct rehearsal *r = arg;

	if (!differs(d) || !(key = key_of(r, d->name)))
		return;
	if (vv_map_get(&r->by_name, key) != VV_MAP_NONE ||
	    vv_mem_room(&r->self, r->n_self, &r->self_cap, sizeof(*r->self)) ||
	    vv_map_put(&r->by_name, key, r->n_self)) {
		vv_mem_free(key);
		return;
	}
	r->self[r->n_self++] = key;
	if (is_undeclared(d->name))
		return;
	r->by_themselves++;
	name_region(r, d->name, name);
	print_where(d, where);
	WARN(r, "self", r->epoch,
	     "%s %s at epoch %" PRIu64 " by itself: two runs without a restart do not agree, and nothing is said of it",
	     name, where, r->epoch);
}

static bool differs_by_itself(const struct rehearsal *r, const char *name)
{
	char *key = key_of(r, name);
	bool yes = !key || vv_map_get(&r->by_name, key) != VV_MAP_NONE;

	vv_mem_free(key);
	return yes;
}

/* Does the region describe the places of objects in a captured heap? */
static bool is_layout(const char *name)
{
	return strcmp(name, VV_RUN_PROTOCOL_PLAN) == 0 || strncmp(name, VV_RUN_PROTOCOL_MARKS, strlen(VV_RUN_PROTOCOL_MARKS)) == 0;
}

/* Notes a difference between the first run and the one with a restart. */
static void note(void *arg, const struct vv_diff_region *d)
{
	char name[VV_MAX_NAME + 64], where[WHERE];
	struct rehearsal *r = arg;
	bool undeclared = is_undeclared(d->name);

	r->moved |= is_layout(d->name) && differs(d);
	if (differs_by_itself(r, d->name) || (r->probing && undeclared))
		return;
	if (!differs(d)) {
		r->equal += !undeclared;
		return;
	}
	*(undeclared ? &r->undeclared : &r->different) += 1;
	if (r->probing || (undeclared && r->undeclared > LINES))
		return;
	name_region(r, d->name, name);
	print_where(d, where);
	if (undeclared)
		REPORT(r, "undeclared", r->epoch, "%s, which is in no region, %s", name, where);
	else
		WARN(r, "differs", r->epoch, "%s %s at epoch %" PRIu64 ", %" PRIu64 " after that of the restart", name,
		     where, r->epoch, r->epoch - r->from);
}

static int compare_two(struct rehearsal *r, const struct run_rehearse_side *b, uint64_t epoch, vv_diff_report_fn tell)
{
	const struct run_rehearse_side *a = &r->plain;
	struct vv_run_table x = { 0 }, y = { 0 };
	bool differ;
	int rc = vv_run_table_load(&a->lineage, r->epoch, r->rank, NULL, &x);

	if (rc == 0)
		rc = vv_run_table_load(&b->lineage, epoch, r->rank, NULL, &y);
	if (rc == 0)
		rc = vv_diff_run(&(struct vv_diff_side){ &a->lineage, &x }, &(struct vv_diff_side){ &b->lineage, &y },
				 r->plan->job->pool, tell, r, NULL, &differ);
	vv_run_table_fini(&x);
	vv_run_table_fini(&y);
	return rc;
}

/* Compares an epoch of the undisturbed runs with one of the other. */
static int compare_epoch(struct rehearsal *r, uint64_t epoch, uint64_t other)
{
	int rc = 0;

	r->epoch = epoch;
	r->equal = 0;
	for (r->rank = 0; rc == 0 && r->rank < r->ranks; r->rank++) {
		rc = compare_two(r, &r->twin, epoch, note_self);
		if (rc == 0)
			rc = compare_two(r, &r->restarted, other, note);
	}
	return rc;
}

/* As compare_epoch, but without reports. */
static int probe(struct rehearsal *r, uint64_t epoch, uint64_t other)
{
	int rc;

	r->probing = true;
	rc = compare_epoch(r, epoch, other);
	r->probing = false;
	return rc;
}

/* If the first epoch after the restart equals that of the restart, all later ones are shifted by
 * one, too. */
static int align(struct rehearsal *r)
{
	int rc = probe(r, r->from, r->from + 1);

	r->early = !r->different;
	r->different = 0;
	return rc;
}

/* A captured heap may have grown. New objects then lie elsewhere after a restart, and pointers to
 * them differ. */
static int check_heap(struct rehearsal *r, uint64_t epoch, uint64_t other)
{
	int rc;

	r->moved = false;
	rc = probe(r, epoch, other);
	r->different = 0;
	if (rc == 0 && r->moved)
		rc = vv_err_set(VV_ENOTSUP,
				"run: the program allocates after its first call of varve_checkpoint_here. New memory "
				"lies elsewhere after a restart, so "
				"states cannot be compared byte by byte: compare the results of the program");
	return rc;
}

/* Reports the first epoch with a difference, because it is nearest to the cause. */
static int compare(struct rehearsal *r)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(&r->plain.lineage, r->last, &c);

	r->ranks = c.n_ranks;
	vv_commit_fini(&c);
	if (rc == 0)
		rc = vv_verb_context_start_pool(r->plan->job);
	if (rc == 0)
		rc = align(r);
	for (uint64_t e = r->from + 1; rc == 0 && e <= r->last && !r->different; e++) {
		rc = check_heap(r, e, e + r->early);
		if (rc == 0)
			rc = compare_epoch(r, e, e + r->early);
	}
	return rc;
}

/* ---- the result ------------------------------------------------------------------------------ */

static int conclude(struct rehearsal *r)
{
	const char *plural = r->equal == 1 ? "" : "s";

	if (r->undeclared > LINES)
		REPORT(r, "undeclared", r->from + 1, "and %zu more", r->undeclared - LINES);
	if (r->different) {
		WARN(r, "verdict", r->from, "a restart from epoch %" PRIu64 " does not bring back all of the state%s",
		     r->from, r->undeclared ? ": is it in the memory named above, which is in no region?" : "");
		return 1;
	}
	if (!r->equal && r->by_themselves)
		return vv_err_set(VV_EINVAL, "run: all regions differ by themselves: nothing can be said of a restart. "
					     "Fix the seeds, and the number of threads");
	REPORT(r, "verdict", r->from,
	     "a restart from epoch %" PRIu64 " gives the same: %zu region%s agree%s at epoch %" PRIu64 "%s", r->from,
	     r->equal, plural, r->equal == 1 ? "s" : "", r->last,
	     r->undeclared ? "; what differs above they have not depended on" : "");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	remove(path);
	return 0;
}

/* Removes the stores; also the output of the runs and the folder, unless the error names it. */
static void clear(struct rehearsal *r)
{
	const struct run_rehearse_side *side[] = { &r->plain, &r->twin, &r->restarted };
	char log[PATH_MAX + 8];

	for (size_t i = 0; i < sizeof(side) / sizeof(side[0]); i++) {
		snprintf(log, sizeof(log), "%s.out", side[i]->path);
		if (side[i]->path[0])
			nftw(side[i]->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
		if (!r->keeps_output)
			remove(log);
	}
	rmdir(r->folder);
}

static void finish(struct rehearsal *r)
{
	vv_store_close(r->plain.store);
	vv_store_close(r->twin.store);
	vv_store_close(r->restarted.store);
	for (size_t i = 0; i < r->n_self; i++)
		vv_mem_free(r->self[i]);
	vv_mem_free(r->self);
	vv_map_fini(&r->by_name);
	if (r->temporary && r->folder[0])
		clear(r);
	vv_run_messages_close(&r->tell);
}

int vv_run_rehearse(const struct vv_run_plan *plan)
{
	const struct vv_args *args = plan->job->args;
	struct rehearsal r = { .plan = plan, .from = plan->rehearse + 1, .last = 2 * plan->rehearse + 1 };
	int rc = vv_run_messages_open(&r.tell, vv_args_value(args, "log"), args->quiet, args->json);

	vv_interrupt_set_stop(&r.stop);
	if (rc == 0)
		rc = place(&r);
	if (rc == 0)
		rc = vv_run_env_terms(plan, NULL);
	if (rc == 0)
		rc = vv_run_env_restart(UINT64_MAX);
	if (rc == 0 && !plan->ranks)
		rc = vv_run_env_enter(plan->preload);
	if (rc == 0)
		rc = run_all(&r);
	if (rc == 0)
		rc = compare(&r);
	if (rc == 0)
		rc = conclude(&r);
	finish(&r);
	vv_interrupt_set_stop(NULL);
	vv_interrupt_die();
	return rc;
}
