#include "base/err.h"
#include "cli/base/bar.h"
#include "cli/base/find_lineages.h"
#include "cli/base/verb_context.h"
#include "cli/base/text.h"
#include "engine/upkeep/gc.h"
#include <stdio.h>

static void put_report(struct vv_json *j, const char *lineage, const struct vv_gc_report *r)
{
	vv_json_object(j, NULL);
	vv_json_text(j, "lineage", lineage);
	vv_json_number(j, "bytes_before", r->bytes_before);
	vv_json_number(j, "bytes_after", r->bytes_after);
	vv_json_number(j, "bytes_needed", r->bytes_needed);
	vv_json_number(j, "removed", r->removed);
	vv_json_number(j, "rewritten", r->rewritten);
	vv_json_number(j, "kept", r->kept);
	vv_json_number(j, "unfinished", r->unfinished.n);
	vv_json_number(j, "bytes_unfinished", r->unfinished.bytes);
	vv_json_end(j);
}

static void print_report(struct vv_out *o, const char *lineage, const struct vv_gc_report *r, bool dry)
{
	vv_out_printf(o, "%s: %s -> %s (%s needed); layers: %zu %sremoved, %zu rewritten, %zu kept\n", lineage,
		      vv_text_size(r->bytes_before).s, vv_text_size(r->bytes_after).s, vv_text_size(r->bytes_needed).s,
		      r->removed, dry ? "to be " : "", r->rewritten, r->kept);
	if (r->unfinished.n)
		vv_out_printf(o, "%s: %zu unfinished file%s of interrupted writers, %s, %sremoved\n", lineage, r->unfinished.n, r->unfinished.n == 1 ? "" : "s",
			      vv_text_size(r->unfinished.bytes).s, dry ? "to be " : "");
}

static int collect(struct vv_verb_context *job, const char *name)
{
	bool dry = vv_args_value(job->args, "dry-run");
	struct vv_gc_report r = { 0 };
	struct vv_lineage lin;
	struct vv_bar bar;
	int rc = vv_find_lineages_open(job->store, name, &lin);

	if (rc == 0)
		rc = vv_verb_context_lock(job, &lin);
	if (rc)
		return rc;
	vv_bar_init(&bar, "gc", job->args->quiet);
	rc = vv_gc_run(&lin, 0, dry ? VV_GC_DRY_RUN : VV_GC_THOROUGH, &bar.progress, &r);
	vv_bar_fini(&bar);
	vv_verb_context_unlock(job);
	if (rc == 0 && job->args->json)
		put_report(&job->json, name, &r);
	else if (rc == 0 && !job->args->quiet)
		print_report(&job->out, name, &r, dry);
	return rc;
}

/* A lineage that is in use or damaged does not prevent the cleaning of the others. */
static int collect_all(struct vv_verb_context *job)
{
	struct vv_names names = { 0 };
	int rc = vv_find_lineages(job->store, &names), worst = 0;

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		int one = collect(job, names.v[i].name);

		if (one == 0)
			continue;
		worst = vv_verb_context_status(one) > worst ? vv_verb_context_status(one) : worst;
		if (job->args->json) {
			vv_json_object(&job->json, NULL);
			vv_json_text(&job->json, "lineage", names.v[i].name);
			vv_json_text(&job->json, "error", vv_err_last());
			vv_json_signed(&job->json, "code", one);
			vv_json_end(&job->json);
		} else {
			vv_out_flush(&job->out);
			fprintf(stderr, "varve: %s: %s\n", names.v[i].name, vv_err_last());
		}
	}
	vv_names_fini(&names);
	return rc ? rc : worst;
}

static int run(struct vv_verb_context *job)
{
	struct vv_spec spec;
	bool one = job->args->n_operands == 2;
	int rc = one ? vv_spec_parse(job->args->operand[1], 0, &spec) : 0;

	if (rc == 0)
		rc = vv_verb_context_open_store(job);
	if (rc == 0)
		rc = vv_verb_context_start_pool(job);
	if (rc)
		return rc;
	vv_json_text(&job->json, "store", job->store->url);
	vv_json_bool(&job->json, "dry_run", vv_args_value(job->args, "dry-run"));
	vv_json_array(&job->json, "lineages");
	rc = one ? collect(job, spec.lineage) : collect_all(job);
	vv_json_end(&job->json);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "dry-run", 0, NULL, "only list the changes" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_gc = {
	.name = "gc",
	.operands = "STORE [LINEAGE]",
	.min = 1,
	.max = 2,
	.brief = "reclaims the space that no epoch needs",
	.help = "Removes layers that no epoch needs, and rewrites layers with few needed bytes.\n"
		"No process may write the lineage during the command. Every epoch stays intact,\n"
		"even after a crash. A store with the layers of some ranks only is refused: only\n"
		"the job knows which layers the other stores need (option keep).",
	.option = options,
	.run = run,
};
