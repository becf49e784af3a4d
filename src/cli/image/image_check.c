#include "cli/image/image_check.h"
#include "base/err.h"
#include "cli/base/text.h"
#include "cli/image/image_targets.h"
#include "image/check/check.h"
#include "image/save/dump.h"

static void put_finding(void *arg, bool grave, const char *text)
{
	struct vv_verb_context *job = arg;

	if (!job->args->json) {
		vv_out_printf(&job->out, "%s: %s\n", grave ? "cannot be saved" : "note", vv_text_safe(text).s);
		return;
	}
	vv_json_object(&job->json, NULL);
	vv_json_text(&job->json, "text", text);
	vv_json_bool(&job->json, "grave", grave);
	vv_json_end(&job->json);
}

/* criu is the authority; its refusal is a finding like others. */
static int try_all(struct vv_check *c, const struct vv_image_targets *targets)
{
	const struct vv_dump_options opt = {
		.pid = targets->pid,
		.n_pids = targets->n,
		.leave_running = true,
		.memory = 64 << 20, /* discarded repeatedly */
		.shell_job = c->shell_job,
		.extra = c->arg_list,
		.n_extra = c->n_args,
	};
	int rc = vv_dump_check(&opt);

	if (rc == 0 && vv_dump_try(&opt) < 0)
		vv_check_report(c, true, "%s", vv_err_last());
	return rc;
}

int vv_image_check_run(struct vv_verb_context *job)
{
	const struct vv_args *args = job->args;
	struct vv_check c = {
		.arg = job,
		.report = put_finding,
		.arg_list = args->operand + 1,
		.n_args = args->n_operands - 1,
		.shell_job = vv_args_value(args, "shell-job"),
	};
	struct vv_image_targets targets = { 0 };
	int rc = vv_image_targets_get(job, &targets);
	bool named;

	named = targets.n;
	if (rc == 0 && c.n_args && c.arg_list[0][0] != '-')
		rc = vv_err_set(VV_EINVAL, "image check: '%s' is no option of criu (which stand behind '--')", c.arg_list[0]);
	if (rc == 0 && vv_args_value(args, "try") && !named)
		rc = vv_err_set(VV_EINVAL, "image check: --try which process? --pid PID, or --pid-file FILE");
	vv_json_array(&job->json, "findings");
	if (rc == 0)
		rc = vv_check_criu(&c);
	for (size_t i = 0; rc == 0 && i < targets.n; i++)
		rc = vv_check_process(&c, targets.pid[i]);
	if (rc == 0 && vv_args_value(args, "try") && !c.grave)
		rc = try_all(&c, &targets);
	vv_image_targets_fini(&targets);
	if (rc)
		return rc;
	vv_json_end(&job->json);
	vv_json_number(&job->json, "grave", c.grave);
	if (!job->args->json && !job->args->quiet && !c.grave)
		vv_out_printf(&job->out, "%s\n", named ? "nothing was found that could not be saved" : "processes can be saved and restored here");
	return c.grave ? 1 : 0;
}
