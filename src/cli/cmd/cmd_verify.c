#include "base/err.h"
#include "cli/base/bar.h"
#include "cli/base/find_lineages.h"
#include "cli/base/verb_context.h"
#include "cli/base/text.h"
#include "engine/upkeep/verify.h"
#include <string.h>

struct check { /* of a whole store */
	struct vv_verb_context *job;
	struct vv_bar bar;
	struct vv_verify_report sum;
};

static void report_problem(void *arg, const char *problem)
{
	struct check *k = arg;

	if (k->job->args->json) {
		vv_json_text(&k->job->json, NULL, problem);
		return;
	}
	vv_bar_clear(&k->bar);
	vv_out_printf(&k->job->out, "%s\n", vv_text_safe(problem).s);
	vv_out_flush(&k->job->out);
}

static void add(struct vv_verify_report *sum, const struct vv_verify_report *r)
{
	sum->epochs += r->epochs;
	sum->layers += r->layers;
	sum->blocks += r->blocks;
	sum->bytes += r->bytes;
	sum->problems += r->problems;
	sum->orphans += r->orphans;
	sum->unfinished.n += r->unfinished.n;
	sum->unfinished.bytes += r->unfinished.bytes;
	sum->elsewhere += r->elsewhere;
}

/* A named epoch that does not exist is a mistake of the caller, not damage. */
static int find_epoch(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(lin, epoch, &c);

	vv_commit_fini(&c);
	return rc == VV_ENOENT ? rc : 0;
}

static void print_elsewhere(struct check *k, const char *name, const struct vv_verify_report *r)
{
	if (k->job->args->json || k->job->args->quiet)
		return;
	vv_bar_clear(&k->bar);
	vv_out_printf(&k->job->out, "%s: this is one of several stores: layers of rank%s %s of %u lie in others and were not read\n", name,
		      strpbrk(r->elsewhere_ranks, "-,") ? "s" : "", r->elsewhere_ranks, r->ranks);
}

/* A lineage with a damaged record is a finding, not a failure of the check. */
static int verify_lineage(struct check *k, const char *name, uint64_t epoch)
{
	bool whole = vv_args_value(k->job->args, "whole");
	struct vv_verify_report r = { 0 };
	struct vv_lineage lin;
	int rc = vv_catalog_open(k->job->store, name, false, &lin);

	if (rc == 0 && epoch)
		rc = find_epoch(&lin, epoch);
	if (rc == 0)
		rc = vv_verify_run(&lin, k->job->pool, epoch, whole, report_problem, k, &k->bar.progress, &r);
	if (rc == VV_EDAMAGED) {
		report_problem(k, vv_err_last());
		r.problems++;
		rc = 0;
	}
	if (rc == 0 && r.elsewhere && !whole)
		print_elsewhere(k, name, &r);
	add(&k->sum, &r);
	return rc;
}

static int verify_all(struct check *k)
{
	struct vv_names names = { 0 };
	int rc = vv_find_lineages(k->job->store, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++)
		rc = verify_lineage(k, names.v[i].name, 0);
	vv_store_names_fini(&names);
	return rc;
}

static void put_sum(struct vv_json *j, const struct vv_verify_report *r)
{
	vv_json_number(j, "n_problems", r->problems);
	vv_json_number(j, "epochs", r->epochs);
	vv_json_number(j, "layers", r->layers);
	vv_json_number(j, "blocks", r->blocks);
	vv_json_number(j, "bytes", r->bytes);
	vv_json_number(j, "orphans", r->orphans);
	vv_json_number(j, "unfinished", r->unfinished.n);
	vv_json_number(j, "bytes_unfinished", r->unfinished.bytes);
	vv_json_number(j, "elsewhere", r->elsewhere);
}

static void print_sum(struct vv_out *o, const struct vv_verify_report *r)
{
	vv_out_printf(o, "%zu epoch%s, %zu layer%s, %zu block%s, %s read: ", r->epochs, r->epochs == 1 ? "" : "s", r->layers,
		      r->layers == 1 ? "" : "s", r->blocks, r->blocks == 1 ? "" : "s", vv_text_size(r->bytes).s);
	if (r->problems)
		vv_out_printf(o, "%zu problem%s\n", r->problems, r->problems == 1 ? "" : "s");
	else
		vv_out_printf(o, "no problem\n");
	if (r->orphans)
		vv_out_printf(o, "%zu layer%s no epoch needs ('varve gc' takes the space back)\n", r->orphans,
			      r->orphans == 1 ? " that" : "s that");
	if (r->unfinished.n)
		vv_out_printf(o, "%zu unfinished file%s of interrupted writers, %s ('varve gc' removes %s)\n", r->unfinished.n, r->unfinished.n == 1 ? "" : "s",
			      vv_text_size(r->unfinished.bytes).s, r->unfinished.n == 1 ? "it" : "them");
}

static int verify(struct check *k, const struct vv_spec *spec)
{
	int rc;

	vv_json_array(&k->job->json, "problems");
	vv_bar_init(&k->bar, "verify", k->job->args->quiet);
	rc = spec ? verify_lineage(k, spec->lineage, spec->first) : verify_all(k);
	vv_bar_fini(&k->bar);
	vv_json_end(&k->job->json);
	if (rc)
		return rc;
	put_sum(&k->job->json, &k->sum);
	if (!k->job->args->json && !k->job->args->quiet)
		print_sum(&k->job->out, &k->sum);
	return k->sum.problems ? 1 : 0;
}

static int run(struct vv_verb_context *job)
{
	struct check k = { .job = job };
	struct vv_spec spec;
	bool one = job->args->n_operands == 2;
	int rc = one ? vv_spec_parse(job->args->operand[1], VV_SPEC_EPOCH, &spec) : 0;

	if (rc == 0)
		rc = vv_verb_context_open_store(job);
	if (rc == 0)
		rc = vv_verb_context_start_pool(job);
	if (rc)
		return rc;
	vv_json_text(&job->json, "store", job->store->url);
	return verify(&k, one ? &spec : NULL);
}

static const struct vv_args_option options[] = {
	{ "whole", 0, NULL, "layers that are not in this store are a problem" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_verify = {
	.name = "verify",
	.operands = "STORE [LINEAGE[@EPOCH]]",
	.min = 1,
	.max = 2,
	.brief = "reads everything and reports damage",
	.help = "Reads every byte of a store, of a lineage, or of the data that one epoch needs,\n"
		"and checks all checksums and digests. Prints one line per problem; exit 1 if\n"
		"there is one. If the ranks of a job have local stores, each is verified by\n"
		"itself. Layers in other stores are listed, but are a problem only with --whole.",
	.option = options,
	.run = run,
};
