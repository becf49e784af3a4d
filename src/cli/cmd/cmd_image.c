#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/base/bar.h"
#include "cli/image/image_check.h"
#include "cli/image/image_lineage.h"
#include "cli/base/verb_context.h"
#include "cli/pack/pack_command.h"
#include "cli/base/text.h"
#include "cli/image/image_targets.h"
#include "engine/files/segment_policy.h"
#include "engine/session/session.h"
#include "engine/threads.h"
#include "engine/context.h"
#include "image/criu/criu.h"
#include "image/process/private_devpts.h"
#include "image/save/dump.h"
#include "image/restore/restore_many.h"
#include "image/supervise.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { VERB, STORE, LINEAGE, REST };

/* ---- shared by the verbs --------------------------------------------------------------------- */

/* Images hold all the memory of a program. Objects that varve creates are readable by their owner
 * only; an existing store may be public. */
static int check_privacy(const struct vv_verb_context *job)
{
	const char *url = job->args->operand[STORE], *path = strncmp(url, "dir:", 4) == 0 ? url + 4 : url;
	struct stat st;

	if (!vv_args_value(job->args, "refuse-public"))
		return 0;
	if (strstr(path, "://"))
		return vv_err_set(VV_EDENIED, "image: who can read store '%s' cannot be seen from here, and --refuse-public was given", url);
	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : vv_err_sys(errno, "cannot look at store '%s'", url);
	return st.st_mode & S_IRWXO ? vv_err_set(VV_EDENIED, "image: store '%s' can be read by everybody (mode %04o), and --refuse-public was given: "
						 "chmod o-rwx it", url, (unsigned)(st.st_mode & 07777))
				    : 0;
}

static int hand_on(struct vv_verb_context *job)
{
	int rc = vv_verb_context_hand_on_settings(job);

	return rc ? rc : vv_verb_context_take_option(job, "threads", "threads");
}

static int need_operands(const struct vv_args *args, size_t n, const char *usage)
{
	static const char *const word[] = { "the verb", "STORE", "LINEAGE", "COMMAND" };

	return args->n_operands >= n ? 0 : vv_err_set(VV_EINVAL, "image %s: %s is missing; usage: varve image %s", args->operand[VERB], word[args->n_operands], usage);
}

/* A verb for one process must not be started as several ranks. */
static int be_alone(const struct vv_verb_context *job)
{
	return !job->ranks || job->ranks->size == 1 ? 0 : vv_err_set(VV_EINVAL, "image %s is for one process: start it without mpirun", job->args->operand[VERB]);
}

static int parse_memory(const struct vv_args *args, uint64_t *memory)
{
	static const struct vv_conf_item item = { "memory", VV_CONF_SIZE, "0", NULL, 0, 0, NULL };
	struct vv_conf c;
	int rc = vv_args_conf(args, &item, 1, &c);

	if (rc == 0)
		*memory = vv_conf_number(&c, "memory");
	vv_conf_fini(&c);
	return rc;
}

/* ---- dump ------------------------------------------------------------------------------------ */

/* The precopy of this rank's processes. */
static void put_precopy(struct vv_json *j, const struct vv_dump_options *opt, const struct vv_dump_report *r)
{
	vv_json_bool(j, "precopy", r->precopied > 0);
	vv_json_text(j, "precopy_why", !opt->precopy ? "--no-precopy was given" : r->why[0] ? r->why : NULL);
	vv_json_number(j, "bytes_precopied", r->precopied);
	vv_json_number(j, "bytes_late", r->late);
}

static int dump(struct vv_verb_context *job, struct varve *v, struct vv_dump_options *opt)
{
	struct vv_dump_report r = { 0 };
	double start = vv_clock_s();
	struct vv_bar bar;
	int rc;

	vv_bar_init(&bar, "image", job->args->quiet || !vv_verb_context_is_first(job));
	opt->progress = bar.progress;
	rc = vv_dump_run(v, opt, &r);
	vv_bar_fini(&bar);
	if (rc == 0) {
		vv_json_real(&job->json, "frozen_seconds", r.frozen_s);
		put_precopy(&job->json, opt, &r);
		rc = vv_pack_command_report(job, &r.pack, vv_clock_s() - start);
	}
	vv_dump_report_fini(&r);
	return rc;
}

static int run_dump(struct vv_verb_context *job)
{
	const struct vv_args *args = job->args;
	struct vv_dump_options opt = {
		.leave_running = vv_args_value(args, "leave-running"),
		.precopy = !vv_args_value(args, "no-precopy"),
		.shell_job = vv_args_value(args, "shell-job"),
		.segments = vv_args_value(args, "segments"),
		.extra = args->operand + REST,
		.n_extra = args->n_operands > REST ? args->n_operands - REST : 0,
	};
	struct vv_image_targets targets = { 0 };
	struct vv_spec spec;
	struct varve *v = NULL;
	int rc = need_operands(args, REST, "dump --pid PID STORE LINEAGE");

	if (rc == 0)
		rc = vv_image_targets_get(job, &targets);
	if (rc == 0 && !targets.n)
		rc = vv_err_set(VV_EINVAL, "image dump: which process? --pid PID, or --pid-file FILE");
	opt.pid = targets.pid;
	opt.n_pids = targets.n;
	if (rc == 0)
		rc = parse_memory(args, &opt.memory);
	if (rc == 0)
		rc = vv_dump_check(&opt);
	if (rc == 0)
		rc = vv_spec_parse(args->operand[LINEAGE], 0, &spec);
	if (rc == 0)
		rc = check_privacy(job);
	if (rc == 0)
		rc = hand_on(job);
	umask(S_IRWXG | S_IRWXO);
	rc = vv_command_ranks_agree(job->ranks, rc);
	if (rc == 0)
		rc = vv_verb_context_open_session_once(job, args->operand[STORE], spec.lineage, &v);
	if (rc == 0) {
		rc = vv_verb_context_close_session(v, dump(job, v, &opt));
		if (rc < 0)
			vv_image_lineage_tidy(job, args->operand[STORE], spec.lineage);
	}
	vv_image_targets_fini(&targets);
	return rc;
}

/* ---- restore --------------------------------------------------------------------------------- */

static int open_epoch(struct vv_verb_context *job, struct vv_spec *spec, struct vv_lineage *lin, uint64_t *epoch)
{
	int rc = vv_spec_parse(job->args->operand[LINEAGE], VV_SPEC_EPOCH, spec);

	if (rc == 0)
		rc = hand_on(job);
	if (rc == 0)
		rc = vv_verb_context_open_other(job, job->args->operand[STORE], &job->store);
	if (rc == 0)
		rc = vv_catalog_open(job->store, spec->lineage, false, lin);
	if (rc == 0)
		rc = vv_verb_context_epoch(job, lin, spec, epoch);
	return rc ? rc : vv_verb_context_start_pool(job);
}

/* The status of the first process that did not succeed. */
static int await(const struct vv_restore_many *r)
{
	int status, first = 0;

	for (size_t i = 0; i < r->n_mine; i++) {
		while (waitpid(r->mine[i], &status, 0) < 0)
			if (errno != EINTR)
				return vv_err_sys(errno, "cannot wait for process %d", (int)r->mine[i]);
		first = first ? first : vv_child_code(status);
	}
	return first;
}

struct revived {
	struct vv_verb_context *job;
	uint64_t epoch;
	double start;
	bool any_runs; /* a process runs, and its line was printed */
	struct vv_bar bar;
};

static void print_runs(void *arg, pid_t pid)
{
	struct revived *r = arg;
	struct vv_verb_context *job = r->job;

	vv_bar_clear(&r->bar);
	if (!r->any_runs)
		vv_json_real(&job->json, "seconds_to_run", vv_clock_s() - r->start);
	r->any_runs = true;
	if (job->args->quiet || job->args->json)
		return;
	vv_out_printf(&job->out, "process %d runs again, from epoch %" PRIu64 "\n", (int)pid, r->epoch);
	vv_out_flush(&job->out);
}

static void report_pids(struct vv_verb_context *job, const struct vv_restore_many *r, const struct revived *how)
{
	if (!vv_verb_context_is_first(job))
		return;
	vv_json_number(&job->json, "epoch", how->epoch);
	vv_json_number(&job->json, "pid", (uint64_t)r->all[0]);
	vv_json_real(&job->json, "seconds", vv_clock_s() - how->start);
	vv_json_array(&job->json, "pids");
	for (size_t i = 0; i < r->n_all; i++)
		vv_json_number(&job->json, NULL, (uint64_t)r->all[i]);
	vv_json_end(&job->json);
	for (size_t i = 0; !how->any_runs && !job->args->quiet && !job->args->json && i < r->n_all; i++)
		vv_out_printf(&job->out, "process %d runs again, from epoch %" PRIu64 "\n", (int)r->all[i], how->epoch);
	vv_out_flush(&job->out);
}

static int restore_alone(struct vv_verb_context *job, const struct vv_restore_one_options *opt, struct vv_restore_many *out, uint64_t *epoch)
{
	struct vv_lineage lin;
	struct vv_spec spec;
	int rc = open_epoch(job, &spec, &lin, epoch);

	job->begun = true;
	return rc ? rc : vv_image_lineage_advise(&lin, job->pool, *epoch, vv_restore_many_run(NULL, &lin, *epoch, job->pool, opt, out));
}

/* A store that is missing here is created if another rank has it, but not if no rank has it. */
static int find_lineage(struct vv_verb_context *job, struct vv_spec *spec)
{
	struct vv_lineage lin;
	int rc = vv_spec_parse(job->args->operand[LINEAGE], VV_SPEC_EPOCH, spec);
	uint64_t have;

	if (rc == 0)
		rc = hand_on(job);
	rc = vv_command_ranks_agree(job->ranks, rc);
	if (rc)
		return rc;
	rc = vv_verb_context_open_other(job, job->args->operand[STORE], &job->store);
	if (rc == 0)
		rc = vv_catalog_open(job->store, spec->lineage, false, &lin);
	have = rc == 0;
	vv_command_ranks_sum(job->ranks, &have, 1);
	return vv_command_ranks_agree(job->ranks, rc == VV_ENOENT && have ? 0 : rc);
}

static int restore_together(struct vv_verb_context *job, const struct vv_restore_one_options *opt, struct vv_restore_many *out, uint64_t *epoch)
{
	struct vv_spec spec;
	struct varve *v = NULL;
	int rc = find_lineage(job, &spec), closed;

	umask(S_IRWXG | S_IRWXO);
	if (rc == 0)
		rc = vv_verb_context_open_session_once(job, job->args->operand[STORE], spec.lineage, &v);
	if (rc)
		return rc;
	rc = strcmp(spec.first_word, "latest") == 0 ? 0 : vv_spec_look_up(&spec, &v->ctx.lineage);
	*epoch = spec.first;
	if (rc == 0 && !*epoch)
		rc = vv_restore_many_newest(v, epoch);
	if (rc == 0 && !*epoch)
		rc = vv_err_set(VV_ENOENT, "lineage '%s' of store '%s' has no epoch", spec.lineage, job->args->operand[STORE]);
	if (rc == 0)
		rc = vv_threads_start(&v->ctx);
	rc = vv_command_ranks_agree(job->ranks, rc);
	if (rc == 0)
		rc = vv_restore_many_run(v, &v->ctx.lineage, *epoch, v->ctx.pool, opt, out);
	if (vv_verb_context_is_first(job))
		rc = vv_image_lineage_advise(&v->ctx.lineage, v->ctx.pool, *epoch, rc);
	/* before waiting for the processes, because they may be saved again */
	closed = vv_verb_context_close_session(v, rc);
	if (rc == 0 && closed < 0)
		vv_log_warn("the processes are restored, but the session that read them was not closed: %s", vv_err_last());
	return rc;
}

static int run_restore(struct vv_verb_context *job)
{
	const struct vv_args *args = job->args;
	struct revived revived = { .job = job, .start = vv_clock_s() };
	struct vv_restore_one_options opt = {
		.lazy = vv_args_value(args, "lazy"),
		.arg = &revived,
		.runs = print_runs,
		.shell_job = vv_args_value(args, "shell-job"),
		.extra = args->operand + REST,
		.n_extra = args->n_operands > REST ? args->n_operands - REST : 0,
	};
	struct vv_restore_many reunited = { 0 };
	int rc = need_operands(args, REST, "restore STORE LINEAGE[@EPOCH]");

	if (rc == 0)
		rc = vv_restore_one_adopt();
	if (rc == 0)
		rc = parse_memory(args, &opt.memory);
	if (rc == 0 && vv_args_value(args, "private-pts"))
		rc = opt.shell_job ? vv_err_set(VV_EINVAL, "image restore: --shell-job puts it on our terminal, --private-pts apart from it: give one of them")
				   : vv_private_devpts_open();
	rc = vv_command_ranks_agree(job->ranks, rc);
	vv_bar_init(&revived.bar, "image", args->quiet || !vv_verb_context_is_first(job));
	opt.progress = revived.bar.progress;
	if (rc == 0)
		rc = (job->ranks ? restore_together : restore_alone)(job, &opt, &reunited, &revived.epoch);
	vv_bar_fini(&revived.bar);
	if (rc == 0)
		report_pids(job, &reunited, &revived);
	if (rc == 0 && !vv_args_value(args, "detach")) {
		rc = await(&reunited);
		if (job->ranks)
			job->ranks->rest();
	}
	vv_restore_many_fini(&reunited);
	return rc;
}

/* ---- run ------------------------------------------------------------------------------------- */

static const struct vv_conf_item items[] = {
	{ "every", VV_CONF_DURATION, "0", NULL, 0, 0, NULL },
	{ "max-restarts", VV_CONF_COUNT, "3", NULL, 0, UINT32_MAX, NULL },
};

static int parse_run(const struct vv_args *args, struct vv_supervise_options *out)
{
	struct vv_conf c;
	int rc = vv_args_conf(args, items, sizeof(items) / sizeof(items[0]), &c);

	if (rc == 0) {
		out->every_s = vv_conf_real(&c, "every");
		out->max_restarts = vv_conf_number(&c, "max-restarts");
	}
	vv_conf_fini(&c);
	return rc;
}

static void say(void *arg, const char *text)
{
	const struct vv_verb_context *job = arg;

	if (!job->args->quiet)
		fprintf(stderr, "varve: %s\n", text);
}

static void print_saved(void *arg, const struct vv_dump_report *r)
{
	const struct vv_verb_context *job = arg;

	if (!job->args->quiet)
		fprintf(stderr, "varve: epoch %" PRIu64 ": %s of memory, layer of %s, frozen for %s\n", r->pack.epoch, vv_text_size(r->pack.raw).s,
			vv_text_size(r->pack.layer).s, vv_text_duration(r->frozen_s).s);
}

static int supervise(struct vv_verb_context *job, struct varve *v, const char *lineage, struct vv_supervise_options *opt)
{
	struct vv_lineage lin;
	int status = 0, rc = vv_verb_context_open_other(job, job->args->operand[STORE], &job->store);
	uint64_t last = 0;

	if (rc == 0)
		rc = vv_catalog_open(job->store, lineage, false, &lin);
	if (rc == 0 && vv_args_value(job->args, "resume"))
		rc = vv_catalog_newest(&lin, UINT64_MAX, &opt->resume);
	if (rc == 0)
		rc = vv_verb_context_start_pool(job);
	if (rc == 0)
		rc = vv_supervise_run(v, &lin, job->pool, opt, &status, &last);
	rc = vv_image_lineage_advise(&lin, job->pool, last, rc);
	return rc ? rc : vv_child_code(status);
}

static int run_run(struct vv_verb_context *job)
{
	const struct vv_args *args = job->args;
	char output[VV_NAME_LINEAGE_MAX + 8];
	struct vv_supervise_options opt = {
		.output = vv_args_value(args, "output"),
		.segments = vv_args_value(args, "segments"),
		.precopy = !vv_args_value(args, "no-precopy"),
		.arg = job,
		.report = say,
		.saved = print_saved,
	};
	struct vv_segment_policy policy;
	struct vv_criu_version version;
	struct vv_spec spec;
	struct varve *v = NULL;
	int rc = need_operands(args, REST + 1, "run STORE LINEAGE -- COMMAND...");

	if (rc == 0)
		rc = be_alone(job);
	if (rc == 0)
		rc = vv_spec_parse(args->operand[LINEAGE], 0, &spec);
	if (rc == 0)
		rc = parse_run(args, &opt);
	if (rc == 0)
		rc = parse_memory(args, &opt.memory);
	if (rc == 0)
		rc = vv_segment_policy_init(&policy, opt.segments);
	if (rc == 0)
		rc = check_privacy(job);
	if (rc == 0)
		rc = vv_criu_version(&version);
	if (rc == 0)
		rc = hand_on(job);
	if (rc)
		return rc;
	/* NULL is behind the last */
	opt.command = (char *const *)(uintptr_t)(args->operand + REST);
	if (!opt.output) {
		snprintf(output, sizeof(output), "%s.out", spec.lineage);
		opt.output = output;
	}
	rc = vv_supervise_prepare();
	opt.mask = umask(S_IRWXG | S_IRWXO);
	if (rc == 0)
		rc = vv_session_open(NULL, args->operand[STORE], spec.lineage, NULL, &v);
	if (rc)
		return rc;
	rc = vv_verb_context_close_session(v, supervise(job, v, spec.lineage, &opt));
	vv_image_lineage_tidy(job, args->operand[STORE], spec.lineage);
	return rc;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int run_check(struct vv_verb_context *job)
{
	int rc = be_alone(job);

	return rc ? rc : vv_image_check_run(job);
}

static const struct verb {
	const char *name;
	int (*run)(struct vv_verb_context *job);
	const char *options; /* its own options, surrounded by blanks */
} verbs[] = {
	{ "dump", run_dump, " pid pid-file leave-running no-precopy shell-job memory segments refuse-public threads " },
	{ "restore", run_restore, " detach lazy shell-job private-pts memory threads " },
	{ "run", run_run, " every max-restarts resume output no-precopy memory segments refuse-public threads " },
	{ "check", run_check, " pid pid-file shell-job try " },
};

enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static bool takes(const struct verb *v, const char *option)
{
	char word[32];

	snprintf(word, sizeof(word), " %s ", option);
	return strstr(v->options, word);
}

/* An option of another verb would be ignored silently. */
static int check_options(const struct vv_args *args, const struct verb *v)
{
	for (const struct vv_args_option *o = args->option; o->name; o++) {
		char others[64] = "";
		size_t n = 0;

		if (!vv_args_value(args, o->name) || takes(v, o->name))
			continue;
		for (size_t i = 0; i < VERBS; i++)
			if (takes(&verbs[i], o->name))
				n += (size_t)snprintf(others + n, sizeof(others) - n, "%s%s", n ? ", " : "", verbs[i].name);
		return vv_err_set(VV_EINVAL, "image %s: --%s is for %s", v->name, o->name, others);
	}
	return 0;
}

static int run(struct vv_verb_context *job)
{
	for (size_t i = 0; i < VERBS; i++)
		if (strcmp(job->args->operand[VERB], verbs[i].name) == 0) {
			int rc = check_options(job->args, &verbs[i]);

			return rc ? rc : verbs[i].run(job);
		}
	return vv_err_set(VV_EINVAL, "image: '%s' is none of dump, restore, run and check", job->args->operand[VERB]);
}

static const struct vv_args_option options[] = {
	{ "pid", 'p', "PID", "dump, check: the process; several: PID,PID,...\n                               (mpirun: one per rank)" },
	{ "pid-file", 0, "FILE", "dump, check: a file of PIDs; %r is the rank" },
	{ "leave-running", 0, NULL, "dump: the process continues after the dump" },
	{ "no-precopy", 0, NULL, "dump, run: copy no memory before the freeze" },
	{ "shell-job", 0, NULL, "dump, restore, check: the process has a terminal\n                               or belongs to the session of a shell" },
	{ "private-pts", 0, NULL, "restore: private devpts for its terminals" },
	{ "detach", 'd', NULL, "restore: do not wait for its end" },
	{ "lazy", 0, NULL, "restore: start at once, load memory on demand" },
	{ "memory", 0, "SIZE", "dump, run: for pages; restore, run: for blocks\n                               in advance (half of the free memory)" },
	{ "segments", 0, "RULES", "dump, run: SEGMENT=CUT[+CODE],...\n                               (all=pages+auto)" },
	{ "every", 0, "TIME", "run: interval of checkpoints (only on SIGUSR1)" },
	{ "max-restarts", 0, "N", "run: maximal number of restores (3)" },
	{ "resume", 0, NULL, "run: begin with the newest epoch, if any" },
	{ "output", 0, "FILE", "run: append its output to this file (LINEAGE.out)" },
	{ "try", 0, NULL, "check: let criu try a dump; nothing is stored" },
	{ "refuse-public", 0, NULL, "dump, run: refuse a store that all users can read" },
	{ "threads", 'j', "N", "dump, restore, run: number of threads" },
	{ NULL, 0, NULL, NULL },
};
_Static_assert(sizeof(options) / sizeof(options[0]) - 1 <= VV_ARGS_OPTIONS, "no verb has more options");

const struct vv_cmd vv_cmd_image = {
	.name = "image",
	.operands = "dump|restore|run|check [STORE LINEAGE] [-- ...]",
	.min = 1,
	.max = SIZE_MAX,
	.brief = "saves running processes and restores them",
	.help = "Saves a process, its descendants and their open files as an epoch, with CRIU,\n"
		"and restores them. The program needs no changes. Content of earlier epochs is\n"
		"not stored again.\n"
		"\n"
		"  varve image dump --pid PID STORE LINEAGE [-- WORD...]\n"
		"      saves a process; the words are added to criu's command line\n"
		"  varve image restore STORE LINEAGE[@EPOCH] [-- WORD...]\n"
		"      restores it and waits for its end\n"
		"  varve image run STORE LINEAGE -- COMMAND...\n"
		"      starts a program, saves it, and restores it when it dies\n"
		"  varve image check [--pid PID] [-- WORD...]\n"
		"      lists everything that cannot be saved (exit 1)\n"
		"\n"
		"Several processes form one epoch. Under mpirun each rank saves and restores its\n"
		"own processes (--pid-file).",
	.option = options,
	.many = true,
	.run = run,
};
