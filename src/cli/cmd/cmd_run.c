#include "base/err.h"
#include "cli/base/verb_context.h"
#include "cli/run/run_command.h"
#include "cli/run/run_env.h"
#include "cli/run/run_epochs.h"
#include "cli/run/run_launch.h"
#include "cli/run/run_rehearse.h"
#include "cli/run/run_messages.h"
#include "cli/run/run_watch.h"
#include "engine/grains/grain_sets.h"
#include "engine/session/signal_request.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- the request ----------------------------------------------------------------------------- */

static const struct vv_conf_item items[] = {
	{ "max-restarts", VV_CONF_COUNT, "3", NULL, 0, UINT32_MAX, NULL },
	{ "grace", VV_CONF_DURATION, "60s", NULL, 0, 0, NULL },
	{ "ranks", VV_CONF_COUNT, "0", NULL, 1, 1 << 24, NULL },
	{ "rehearse", VV_CONF_COUNT, "0", NULL, 1, 1 << 24, NULL },
};

static int parse_numbers(const struct vv_args *args, struct vv_run_plan *out)
{
	struct vv_conf c;
	int rc = vv_args_conf(args, items, sizeof(items) / sizeof(items[0]), &c);

	if (rc == 0) {
		out->retries = vv_conf_number(&c, "max-restarts");
		out->grace_s = vv_conf_real(&c, "grace");
		out->ranks = vv_conf_number(&c, "ranks");
		out->rehearse = vv_conf_number(&c, "rehearse");
	}
	vv_conf_fini(&c);
	return rc;
}

/* NULL: none is named. A rehearsal has folders of its own, unless --store names one. */
static const char *store_of(const struct vv_verb_context *job)
{
	const char *typed = vv_args_value(job->args, "store"), *option = vv_conf_text(&job->conf, "store");

	return typed ? typed : option[0] && !vv_args_value(job->args, "rehearse") ? option : NULL;
}

static int parse_restart(const struct vv_args *args, uint64_t *out)
{
	const char *word = vv_args_value(args, "restart");

	struct vv_spec spec;

	*out = word && strcmp(word, "auto") != 0 ? 0 : UINT64_MAX;
	if (*out || strcmp(word, "none") == 0)
		return 0;
	if (vv_spec_range(word, &spec) < 0 || strstr(word, ".."))
		return vv_err_set(VV_EINVAL, "run: --restart '%s' is not auto, none or an epoch", word);
	*out = spec.first; /* 0: a word, see look_up_first */
	return 0;
}

/* The epoch of --restart by a label, `latest` or -N. */
static int look_up_first(struct vv_run_epochs *e, struct vv_run_plan *plan)
{
	const char *word = vv_args_value(plan->job->args, "restart");
	struct vv_spec spec;
	int rc;

	if (plan->first || strcmp(word, "none") == 0)
		return 0;
	rc = vv_spec_range(word, &spec);
	if (rc == 0)
		rc = vv_run_epochs_look_up(e, &spec);
	if (rc)
		return vv_err_context(rc, "run: --restart %s", word);
	plan->first = spec.first;
	return 0;
}

/* A share or a time between failures of 0 would mean a checkpoint at every call. That is never
 * intended; --every 0 is the way to request it. */
static int check_pace(const struct vv_verb_context *job, const char *typed, const char *name)
{
	if (strcmp(typed, "every") == 0 || !vv_args_value(job->args, typed) || vv_conf_real(&job->conf, name) > 0)
		return 0;
	return vv_err_set(VV_EINVAL, "run: --%s '%s' is not above 0; --every 0 takes a checkpoint at every call", typed, vv_args_value(job->args, typed));
}

/* The frequency of checkpoints: an option given here overrides all others. Without any setting, a
 * checkpoint at every call would be too often. */
static int parse_pace(struct vv_verb_context *job)
{
	static const char *const names[][2] = { { "every", "interval" }, { "overhead", "overhead" }, { "mtbf", "mtbf" } };
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < 3; i++)
		n += vv_args_value(job->args, names[i][0]) != NULL;
	if (n > 1)
		return vv_err_set(VV_EINVAL, "run: --every, --overhead and --mtbf: one of them");
	for (size_t i = 0; rc == 0 && n && i < 3; i++)
		rc = vv_args_value(job->args, names[i][0]) ? vv_verb_context_take_option(job, names[i][0], names[i][1]) : vv_verb_context_set_option(job, names[i][1], "0");
	for (size_t i = 0; rc == 0 && n && i < 3; i++)
		rc = check_pace(job, names[i][0], names[i][1]);
	if (rc || n || vv_conf_real(&job->conf, "interval") > 0 || vv_conf_real(&job->conf, "overhead") > 0 || vv_conf_real(&job->conf, "mtbf") > 0)
		return rc;
	return vv_verb_context_set_option(job, "interval", "10m");
}

/* The program's own options must not be parsed as options of varve. */
static int check_dashes(const struct vv_args *args)
{
	for (int i = 1; i < args->argc; i++)
		if (args->argv[i] == args->operand[0] && strcmp(args->argv[i - 1], "--") != 0)
			return vv_err_set(VV_EINVAL, "run: what is to be run comes behind --: varve run [OPTION...] -- %s ...", args->argv[i]);
	return 0;
}

/* A rehearsal sets these options itself. */
static int check_rehearse(const struct vv_args *args)
{
	static const char *const others[] = { "every", "overhead", "mtbf", "restart", "max-restarts", "grace", "last" };

	for (size_t i = 0; vv_args_value(args, "rehearse") && i < sizeof(others) / sizeof(others[0]); i++)
		if (vv_args_value(args, others[i]))
			return vv_err_set(VV_EINVAL, "run: --rehearse ends and restarts the program itself: --%s does not go with it", others[i]);
	return 0;
}

static int parse(struct vv_verb_context *job, struct vv_run_plan *plan)
{
	const struct vv_args *args = job->args;
	const char *lineage = vv_args_value(args, "lineage");
	int rc = check_dashes(args);

	rc = rc ? rc : check_rehearse(args);
	*plan = (struct vv_run_plan){
		.job = job,
		.command = (char *const *)(uintptr_t)args->operand, /* NULL is behind the last */
		.globals = vv_args_value(args, "globals"),
		.free_unreachable = vv_args_value(args, "free-unreachable"),
		.mpi_as_asked = vv_args_value(args, "mpi-as-asked"),
		.last = vv_args_value(args, "last"),
		.signal = vv_signal_request_signal(vv_conf_text(&job->conf, "signal")),
	};
	if (lineage)
		snprintf(plan->lineage, sizeof(plan->lineage), "%s", lineage);
	else
		vv_run_env_lineage(plan->command[0], plan->lineage);
	if (rc == 0)
		rc = vv_name_check_lineage(lineage ? lineage : plan->lineage);
	if (rc == 0)
		rc = vv_run_env_store(store_of(job), plan->store);
	if (rc == 0)
		rc = parse_numbers(args, plan);
	if (rc == 0)
		rc = parse_restart(args, &plan->first);
	if (rc == 0)
		rc = vv_verb_context_hand_on_settings(job);
	if (rc == 0 && vv_conf_number(&job->conf, "grain"))
		rc = vv_grain_sets_check("run: option grain", vv_conf_number(&job->conf, "grain"));
	if (rc == 0)
		rc = parse_pace(job);
	return rc ? rc : vv_run_env_library(plan->preload);
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* Reports the failure like an event, and returns the status that a shell would return. */
static int cannot_start(const struct vv_run_plan *plan, int err)
{
	const struct vv_args *args = plan->job->args;
	struct vv_run_messages tell;
	int rc = vv_run_messages_open(&tell, vv_args_value(args, "log"), args->quiet, args->json);

	if (rc == 0)
		vv_run_messages_warn(&tell, "absent", 0, "cannot start '%s': %s", plan->command[0], strerror(err));
	vv_run_messages_close(&tell);
	return rc ? rc : err == ENOENT ? VV_RUN_COMMAND_ABSENT : VV_RUN_COMMAND_CLOSED;
}

/* A rank of an external launcher is not supervised: the process becomes the program. */
static int become(const struct vv_run_plan *plan)
{
	int rc = vv_run_env_enter(plan->preload);

	if (rc)
		return rc;
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execvp(plan->command[0], plan->command);
	return cannot_start(plan, errno);
}

/* A rank that varve itself started through a launcher: everything is in the environment. The rank
 * must not outlive the launcher. */
static int run_rank(struct vv_verb_context *job)
{
	struct vv_run_plan plan = { .job = job, .command = (char *const *)(uintptr_t)job->args->operand };
	int rc = vv_run_env_library(plan.preload);

	if (rc == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		rc = vv_err_sys(errno, "run: cannot be bound to the launcher");
	return rc ? rc : become(&plan);
}

static int run_one_of_many(const struct vv_run_plan *plan, uint32_t rank)
{
	const struct vv_args *args = plan->job->args;
	struct vv_run_messages tell;
	int rc;

	if (plan->ranks)
		return vv_err_set(VV_EINVAL, "run: --ranks starts a launcher, but this was started by one, as rank %" PRIu32, rank);
	rc = vv_run_messages_open(&tell, vv_args_value(args, "log"), args->quiet, args->json);
	if (rc == 0 && rank == 0)
		vv_run_messages_line(&tell, "setup", 0, "ranks of lineage '%s' of '%s'; what has started them watches them, and starts them again, not varve "
				 "(varve run -n RANKS does)", plan->lineage, plan->store);
	vv_run_messages_close(&tell);
	if (rc == 0)
		rc = vv_run_env_terms(plan, NULL);
	return rc ? rc : become(plan);
}

/* Reported before anything is started or created. */
static int check_first(struct vv_run_epochs *e)
{
	static const char advice[] = "say where it is (--store, --lineage; `varve ls STORE` shows what there is), or leave --restart out";
	const struct vv_run_plan *plan = e->plan;
	int rc = vv_run_epochs_check(e, plan->first);

	if (rc != VV_ENOENT)
		return rc;
	if (!plan->job->store)
		vv_err_set(rc, "there is no store '%s'; %s", plan->store, advice);
	else if (!e->open)
		vv_err_set(rc, "store '%s' has no lineage '%s'; %s", plan->store, plan->lineage, advice);
	else
		vv_err_set(rc, "lineage '%s' of store '%s' has no epoch %" PRIu64 "; %s", plan->lineage, plan->store, plan->first, advice);
	return vv_err_context(rc, "run: --restart %" PRIu64, plan->first);
}

static int run(struct vv_verb_context *job)
{
	struct vv_run_epochs epochs;
	struct vv_run_plan plan;
	uint32_t rank;
	bool many;
	int rc, err;

	if (vv_args_value(job->args, "as-rank"))
		return run_rank(job);
	many = vv_command_ranks_is_many(&rank);
	if (!many && !vv_args_value(job->args, "rehearse"))
		vv_run_watch_prepare();
	rc = parse(job, &plan);
	vv_json_fini(&job->json); /* the standard output is the program's */
	epochs = (struct vv_run_epochs){ .plan = &plan };
	if (rc == 0)
		rc = look_up_first(&epochs, &plan);
	if (rc == 0 && plan.first && plan.first != UINT64_MAX)
		rc = check_first(&epochs);
	err = rc || vv_run_launch_is_elsewhere(&plan) ? 0 : vv_run_command_check(plan.command[0]);
	if (err)
		return cannot_start(&plan, err);
	if (rc == 0 && plan.rehearse)
		return many ? vv_err_set(VV_EINVAL, "run: --rehearse starts ranks itself: varve run -n RANKS --rehearse N") : vv_run_rehearse(&plan);
	if (rc == 0)
		rc = vv_run_epochs_make_store(&epochs);
	if (rc)
		return rc;
	return many ? run_one_of_many(&plan, rank) : vv_run_watch(&plan);
}

static const struct vv_args_option options[] = {
	{ "store", 's', "STORE", "store of the checkpoints (option store, or else\n                               varve-store)" },
	{ "lineage", 'l', "LINEAGE", "name of the lineage (name of the command)" },
	{ "every", 0, "TIME", "interval of checkpoints (10m); 0: every call" },
	{ "overhead", 0, "SHARE", "or: their share of the run time, as in 2%" },
	{ "mtbf", 0, "TIME", "or: the mean time between failures" },
	{ "restart", 0, "auto|none|EPOCH", "auto: newest epoch, unless the last run\n                               succeeded; none: program start; or this epoch\n                               (a number, a label, latest, -2)" },
	{ "max-restarts", 0, "N", "maximal number of restarts after crashes (3)" },
	{ "retries", 0, "N", NULL },
	{ "grace", 0, "TIME", "limit for the last checkpoint, then the end (60s)" },
	{ "last", 0, NULL, "treat SIGUSR1 like SIGTERM" },
	{ "globals", 0, NULL, "the state includes the variables of the program" },
	{ "free-unreachable", 0, NULL, "a restart frees heap objects to which no pointer\n                               in the state leads" },
	{ "rehearse", 0, "N", "try a restart, and compare the N checkpoints\n                               after it with a run without one" },
	{ "mpi-as-asked", 0, NULL, "MPI gets the thread level that the program\n                               requests, not MPI_THREAD_MULTIPLE" },
	{ "ranks", 'n', "N", "start N ranks: $VARVE_MPIRUN, srun or mpirun" },
	{ "log", 0, "FILE", "append events to this file, not to stderr" },
	{ "as-rank", 0, NULL, "" }, /* run_launch.c starts the ranks of --ranks with it */
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_run = {
	.name = "run",
	.operands = "-- COMMAND...",
	.min = 1,
	.max = SIZE_MAX,
	.brief = "runs a program with checkpoints and restarts it",
	.help = "Runs a program that calls varve_checkpoint_here(). libvarve_preload.so captures\n"
		"its heap. The program continues from the newest epoch of its lineage and is\n"
		"restarted after a crash. After a successful run, the next one begins at the\n"
		"program's start. After two crashes at one epoch, the earlier epoch is used.\n"
		"\n"
		"SIGUSR1 requests a checkpoint. SIGTERM requests a last one and ends the program\n"
		"when this is durable. Each event is a line on the standard error, or an object\n"
		"with --json. The exit status is that of the program.",
	.option = options,
	.run = run,
};
