/* varve: puts files into stores, inspects and checks stores, extracts from them, and cleans them
 * up. */
#include "cli/main/main.h"
#include "cli/main/default_store.h"
#include "base/err.h"
#include "base/did_you_mean.h"
#include "cli/base/interrupt.h"
#include "cli/base/verb_context.h"
#include "cli/main/help.h"
#include "vv_config.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct vv_cmd *const verbs[] = {
	&vv_cmd_pack,   &vv_cmd_unpack, &vv_cmd_watch,   &vv_cmd_image, &vv_cmd_run,  &vv_cmd_ls, &vv_cmd_show,    &vv_cmd_report, &vv_cmd_top,
	&vv_cmd_verify, &vv_cmd_extract, &vv_cmd_diff, &vv_cmd_cp, &vv_cmd_mount, &vv_cmd_label, &vv_cmd_drop,  &vv_cmd_gc, &vv_cmd_rebuild, &vv_cmd_request, &vv_cmd_config,
	&vv_cmd_completion,
};

enum { VERBS = sizeof(verbs) / sizeof(verbs[0]), TRIES = 50 };

const struct vv_cmd *vv_main_verb(size_t i)
{
	return i < VERBS ? verbs[i] : NULL;
}

int vv_main_find(const char *name, const struct vv_cmd **out)
{
	const char *best = NULL;

	for (size_t i = 0; i < VERBS; i++) {
		if (strcmp(verbs[i]->name, name) == 0) {
			*out = verbs[i];
			return 0;
		}
		best = vv_did_you_mean_best(name, verbs[i]->name, best);
	}
	return vv_err_set(VV_EINVAL, "unknown verb '%s'%s%s%s ('varve help' lists them)", name,
			  best ? "; did you mean '" : "", best ? best : "", best ? "'?" : "");
}

static int show_version(struct vv_out *o)
{
	vv_out_printf(o, "varve %s\n", VV_VERSION);
	return 0;
}

/* Names the operand of the usage line that was not given. */
static int miss(const struct vv_cmd *cmd, size_t given)
{
	const char *word = cmd->operands, *first;
	size_t len;

	word += strncmp(word, "-- ", 3) == 0 ? 3 : 0;
	first = word;
	for (size_t i = 0; i < given && strchr(word, ' '); i++) /* the last one may be needed several times */
		word = strchr(word, ' ') + 1;
	len = strcspn(word, " [.");
	while (first < word && (strncmp(first, word, len) != 0 || strcspn(first, " [.") != len))
		first += strcspn(first, " ") + 1;
	return vv_err_set(VV_EINVAL, "%s: %s%.*s is missing; usage: varve %s [OPTION...] %s%s", cmd->name, first < word ? "another " : "", (int)len, word, cmd->name, cmd->operands,
			  given + 1 == cmd->min && strncmp(cmd->operands, "STORE", 5) == 0 ? " (STORE may be left out if VARVE_STORE is set)" : "");
}

static int check_operands(const struct vv_args *args, const struct vv_cmd *cmd)
{
	if (args->n_operands < cmd->min)
		return miss(cmd, args->n_operands);
	if (args->n_operands > cmd->max)
		return vv_err_set(VV_EINVAL, "%s: '%s' is one word too many; usage: varve %s [OPTION...] %s", cmd->name, args->operand[cmd->max], cmd->name,
				  cmd->operands);
	return 0;
}

static void report(struct vv_verb_context *job, const struct vv_args *args, int code)
{
	if (!args->json) {
		vv_out_flush(&job->out);
		fprintf(stderr, "varve: %s\n", vv_err_last());
		return;
	}
	vv_json_fini(&job->json);
	vv_json_object(&job->json, NULL);
	vv_json_error(&job->json, code);
}

/* Runs the verb, again if a writer has dropped the newest epoch in the meantime. The caller closes
 * the resources that stay open in job. */
static int run_verb(struct vv_verb_context *job, struct vv_args *args, const struct vv_cmd *cmd)
{
	int rc = vv_default_store_add(args, cmd);

	if (rc == 0)
		rc = check_operands(args, cmd);
	if (rc)
		return rc;
	if (cmd->many && !job->ranks) {
		rc = vv_command_ranks_join(args->argv);
		if (rc)
			return rc;
	}
	for (unsigned i = 1;; i++) {
		rc = vv_verb_context_init(job, args);
		rc = vv_verb_context_explain(job, rc ? rc : cmd->run(job));
		if (!job->again || i == TRIES)
			return rc;
		vv_verb_context_fini(job);
	}
}

static int dispatch(struct vv_verb_context *job, struct vv_args *args, const struct vv_cmd **cmd)
{
	const char *name;
	int rc = vv_args_parse_front(args);

	if (rc)
		return rc;
	name = args->at < args->argc ? args->argv[args->at] : NULL;
	if (args->version)
		return show_version(&job->out);
	if (args->help)
		return vv_help_show(job, args->json, name);
	if (!name)
		return vv_err_set(VV_EINVAL, "no verb given ('varve help' lists them)");
	args->at++;
	if (strcmp(name, "help") == 0) {
		rc = vv_args_parse_front(args);
		return rc ? rc : vv_help_show(job, args->json, args->at < args->argc ? args->argv[args->at] : NULL);
	}
	rc = vv_main_find(name, cmd);
	if (rc == 0)
		rc = vv_args_parse_rest(args, name, (*cmd)->option);
	if (rc == 0 && (args->help || args->version)) {
		*cmd = NULL;
		return args->help ? vv_help_show(job, args->json, name) : show_version(&job->out);
	}
	return rc ? rc : run_verb(job, args, *cmd);
}

/* Writes the rest of the output and returns the exit status. Of several ranks the first one
 * reports. */
static int finish(struct vv_verb_context *job, const struct vv_args *args, const struct vv_cmd *cmd, int rc)
{
	int status = rc == VV_EDAMAGED && cmd && cmd->damage_is_error ? 2 : vv_verb_context_status(rc);

	if (!vv_verb_context_is_first(job))
		return status;
	if (rc < 0 && job->out.error != EPIPE)
		report(job, args, rc);
	if (args->json && job->json.depth) {
		vv_json_end(&job->json);
		job->out.buf.failed |= job->json.buf.failed;
		vv_buf_add(&job->out.buf, job->json.buf.p, job->json.buf.n);
		vv_buf_add(&job->out.buf, "\n", 1);
	}
	if (vv_out_finish(&job->out) == 0)
		return status;
	if (job->out.error != EPIPE)
		fprintf(stderr, "varve: %s\n", vv_err_last());
	return 2;
}

int vv_main_run(int argc, char **argv, const struct vv_command_ranks *world)
{
	struct vv_args args;
	struct vv_verb_context job = { .ranks = world };
	const struct vv_cmd *cmd = NULL;
	int rc, status;

	vv_out_guard();
	vv_interrupt_arm();
	rc = vv_args_init(&args, argc, argv);
	if (rc == 0)
		rc = dispatch(&job, &args, &cmd);
	status = finish(&job, &args, cmd, rc);
	vv_verb_context_fini(&job);
	vv_args_fini(&args);
	return status;
}
