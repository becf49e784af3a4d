#include "base/err.h"
#include "base/mem.h"
#include "cli/base/bar.h"
#include "cli/base/text.h"
#include "cli/base/verb_context.h"
#include "cli/pack/exclude_store.h"
#include "engine/options.h"
#include "engine/upkeep/copy_lineage.h"
#include <inttypes.h>

struct cp {
	struct vv_verb_context *job;
	struct vv_bar bar;
	struct vv_store *to;
	struct vv_copy_range *range;
	size_t n_ranges;
};

static void report_problem(void *arg, const char *problem)
{
	struct cp *c = arg;

	if (c->job->args->json) {
		vv_json_text(&c->job->json, NULL, problem);
		return;
	}
	vv_bar_clear(&c->bar);
	vv_out_printf(&c->job->out, "%s\n", vv_text_safe(problem).s);
	vv_out_flush(&c->job->out);
}

static int add_range(struct cp *c, const struct vv_lineage *lin, struct vv_spec *spec)
{
	int rc = vv_spec_look_up(spec, lin);

	if (rc == 0)
		c->range[c->n_ranges++] = (struct vv_copy_range){ spec->first, spec->last };
	return rc;
}

static int read_ranges(struct cp *c, const struct vv_lineage *lin, struct vv_spec *spec)
{
	const struct vv_args *args = c->job->args;
	int rc;

	if (!vv_spec_has_epoch(spec) && args->n_operands > 3)
		return vv_err_set(VV_EINVAL, "cp: name the lineage before the first epoch: varve cp %s %s %s@%s",
				  args->operand[0], args->operand[1], spec->lineage, args->operand[3]);
	if (!vv_spec_has_epoch(spec))
		return 0;
	c->range = vv_mem_new(args->n_operands, sizeof(*c->range));
	rc = c->range ? add_range(c, lin, spec) : VV_ENOMEM;
	for (size_t i = 3; rc == 0 && i < args->n_operands; i++) {
		struct vv_spec more;

		rc = vv_spec_range(args->operand[i], &more);
		if (rc == 0)
			rc = add_range(c, lin, &more);
	}
	return rc;
}

/* With --dry-run a store that does not exist is not made. */
static int open_target(struct cp *c, bool dry)
{
	struct vv_store_options opt = vv_options_store(&c->job->conf, !dry);
	int rc = vv_store_open(c->job->args->operand[1], &opt, &c->to);

	if (rc == VV_ENOENT && dry) {
		vv_err_clear();
		rc = 0;
	}
	if (rc == 0 && vv_store_is_same(c->job->store, c->to))
		rc = vv_err_set(VV_EINVAL, "cp: '%s' and '%s' are one store: name another one for the copy", c->job->args->operand[0],
				c->job->args->operand[1]);
	return rc;
}

static void put_report(struct vv_json *j, const struct vv_copy_report *r)
{
	vv_json_number(j, "n_problems", r->damaged);
	vv_json_number(j, "epochs", r->epochs);
	vv_json_number(j, "epochs_there", r->there);
	vv_json_number(j, "epochs_damaged", r->damaged);
	vv_json_number(j, "layers", r->layers);
	vv_json_number(j, "bytes", r->bytes);
	vv_json_number(j, "elsewhere", r->elsewhere);
}

static void print_report(struct vv_out *o, const char *lineage, const struct vv_copy_report *r, bool dry)
{
	vv_out_printf(o, "%s: %zu epoch%s%s copied (%zu layer%s, %s)", lineage, r->epochs, r->epochs == 1 ? "" : "s",
		      dry ? " to be" : "", r->layers, r->layers == 1 ? "" : "s", vv_text_size(r->bytes).s);
	if (r->there)
		vv_out_printf(o, ", %zu there already", r->there);
	if (r->damaged)
		vv_out_printf(o, ", %zu damaged and not copied", r->damaged);
	vv_out_printf(o, "\n");
	if (r->elsewhere)
		vv_out_printf(o, "%s: the source is one of several stores: copy from the others as well\n", lineage);
}

static int copy(struct cp *c, const struct vv_lineage *lin, bool dry)
{
	struct vv_copy_request q = {.from = lin,
				    .to = c->to,
				    .range = c->range,
				    .n_ranges = c->n_ranges,
				    .dry_run = dry,
				    .pool = c->job->pool,
				    .progress = &c->bar.progress,
				    .tell = report_problem,
				    .arg = c};
	struct vv_copy_report r = {0};
	int rc;

	vv_json_array(&c->job->json, "problems");
	vv_bar_init(&c->bar, "cp", c->job->args->quiet);
	rc = vv_copy_lineage_run(&q, &r);
	vv_bar_fini(&c->bar);
	vv_json_end(&c->job->json);
	if (rc)
		return rc;
	put_report(&c->job->json, &r);
	if (!c->job->args->json && !c->job->args->quiet)
		print_report(&c->job->out, lin->name, &r, dry);
	return r.damaged ? 1 : 0;
}

static int run(struct vv_verb_context *job)
{
	struct cp c = {.job = job};
	bool dry = vv_args_value(job->args, "dry-run");
	struct vv_spec spec;
	struct vv_lineage lin;
	int rc = vv_spec_parse(job->args->operand[2], VV_SPEC_EPOCH | VV_SPEC_RANGE, &spec);

	if (rc == 0)
		rc = vv_verb_context_open_lineage(job, &spec, &lin);
	if (rc == 0)
		rc = read_ranges(&c, &lin, &spec);
	if (rc == 0)
		rc = vv_verb_context_start_pool(job);
	if (rc == 0)
		rc = vv_exclude_store_refuse_store(job->args->operand[0], job->args->operand[1]);
	if (rc == 0)
		rc = open_target(&c, dry);
	if (rc == 0) {
		vv_json_text(&job->json, "source", job->store->url);
		vv_json_text(&job->json, "destination", job->args->operand[1]);
		vv_json_text(&job->json, "lineage", lin.name);
		vv_json_bool(&job->json, "dry_run", dry);
		rc = copy(&c, &lin, dry);
	}
	vv_store_close(c.to);
	vv_mem_free(c.range);
	return rc;
}

static const struct vv_args_option options[] = {
	{"dry-run", 0, NULL, "only count the epochs, layers and bytes"},
	{NULL, 0, NULL, NULL},
};

const struct vv_cmd vv_cmd_cp = {
	.name = "cp",
	.operands = "STORE STORE2 LINEAGE[@EPOCH] [EPOCH]...",
	.min = 3,
	.max = SIZE_MAX,
	.brief = "copies a lineage, or some of its epochs, to another store",
	.help = "Copies the given epochs, or all of the lineage, with all layers that they need.\n"
		"Each epoch may be a range FIRST..LAST. Layers that STORE2 has are not copied\n"
		"again, so an interrupted copy can be repeated. Every byte is checked on the way.\n"
		"Epochs that need damaged layers are named and left out; then the exit status is\n"
		"1. A program may write the lineage in STORE during the command, but not in\n"
		"STORE2. Labels are copied with their epochs. The copy can be restarted and\n"
		"continued like the original.",
	.option = options,
	.run = run,
};
