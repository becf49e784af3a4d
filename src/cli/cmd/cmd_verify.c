#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/base/bar.h"
#include "cli/base/find_lineages.h"
#include "cli/base/verb_context.h"
#include "cli/base/text.h"
#include "engine/upkeep/last_verify.h"
#include "engine/upkeep/verify.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct check { /* of a whole store */
	struct vv_verb_context *job;
	struct vv_bar bar;
	struct vv_verify_report sum;
	struct affected { /* a lineage with problems */
		char name[VV_NAME_LINEAGE_MAX + 1];
		struct vv_affected_epochs epochs;
	} *affected;
	size_t n_affected, affected_cap;
	struct unread { /* a lineage that this user may not read */
		char name[VV_NAME_LINEAGE_MAX + 1], *why;
	} *unread;
	size_t n_unread, unread_cap;
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
	sum->parity += r->parity;
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

/* One store does not know how many losses its epochs bear. */
static void print_parity(struct check *k, const char *name, const struct vv_verify_report *r)
{
	if (k->job->args->json || k->job->args->quiet)
		return;
	vv_bar_clear(&k->bar);
	vv_out_printf(&k->job->out, "%s: %zu parity object%s; 'varve rebuild --dry-run %s STORE...' over all stores says how many losses each epoch bears\n",
		      name, r->parity, r->parity == 1 ? "" : "s", name);
}

/* Names the epochs that need damaged data, as numbers and ranges, and the newest that does not. */
static void print_affected(struct check *k, const char *name, const struct vv_affected_epochs *a)
{
	struct vv_out *o = &k->job->out;

	if (k->job->args->json || k->job->args->quiet)
		return;
	vv_bar_clear(&k->bar);
	vv_out_printf(o, "%s: affected: %s", name, a->n == 0 ? "no epoch" : a->n == 1 ? "epoch " : "epochs ");
	for (size_t i = 0, last; i < a->n; i = last + 1) {
		for (last = i; last + 1 < a->n && a->v[last + 1] == a->v[last] + 1;)
			last++;
		vv_out_printf(o, "%s%" PRIu64, i ? ", " : "", a->v[i]);
		if (last > i)
			vv_out_printf(o, "..%" PRIu64, a->v[last]);
	}
	if (a->n && a->intact)
		vv_out_printf(o, "; the newest intact epoch is %" PRIu64, a->intact);
	vv_out_printf(o, "%s\n", a->n && !a->intact ? "; none of the checked epochs is intact" : "");
}

static int keep_affected(struct check *k, const char *name, const struct vv_verify_report *r)
{
	int rc = vv_mem_room(&k->affected, k->n_affected, &k->affected_cap, sizeof(*k->affected));

	if (rc) {
		struct vv_affected_epochs left = r->affected;

		vv_affected_epochs_fini(&left);
		return rc;
	}
	k->affected[k->n_affected] = (struct affected){ .epochs = r->affected };
	snprintf(k->affected[k->n_affected++].name, sizeof(k->affected->name), "%s", name);
	print_affected(k, name, &r->affected);
	return 0;
}

static void put_affected(struct check *k)
{
	struct vv_json *j = &k->job->json;

	vv_json_array(j, "affected");
	for (size_t i = 0; i < k->n_affected; i++) {
		vv_json_object(j, NULL);
		vv_json_text(j, "lineage", k->affected[i].name);
		vv_json_numbers(j, "epochs", k->affected[i].epochs.v, k->affected[i].epochs.n);
		vv_json_end(j);
		vv_affected_epochs_fini(&k->affected[i].epochs);
	}
	vv_json_end(j);
	vv_mem_free(k->affected);
}

/* It does not prevent the check of the other lineages. */
static int keep_unread(struct check *k, const char *name)
{
	struct unread *u;
	int rc = vv_mem_room(&k->unread, k->n_unread, &k->unread_cap, sizeof(*k->unread));

	if (rc)
		return rc;
	u = &k->unread[k->n_unread];
	snprintf(u->name, sizeof(u->name), "%s", name);
	u->why = vv_mem_strdup(vv_err_last());
	if (!u->why)
		return VV_ENOMEM;
	k->n_unread++;
	vv_bar_clear(&k->bar);
	if (!k->job->args->json)
		fprintf(stderr, "varve: %s: %s\n", name, u->why);
	return 0;
}

static void put_unread(struct check *k)
{
	struct vv_json *j = &k->job->json;

	vv_json_array(j, "unread");
	for (size_t i = 0; i < k->n_unread; i++) {
		vv_json_object(j, NULL);
		vv_json_text(j, "lineage", k->unread[i].name);
		vv_json_text(j, "error", k->unread[i].why);
		vv_json_end(j);
		vv_mem_free(k->unread[i].why);
	}
	vv_json_end(j);
	vv_mem_free(k->unread);
}

static void keep_result(const struct vv_lineage *lin, const struct vv_verify_report *r)
{
	struct vv_last_verify last = { .time_ns = vv_clock_wall_ns(), .problems = r->problems, .epochs = r->epochs };

	if (vv_catalog_newest(lin, VV_MAX_EPOCH + 1, &last.newest) == 0)
		vv_last_verify_write(lin, &last);
	vv_err_clear();
}

/* Nothing was verified. If this is the lineage that the user has named, that is an error. */
static int report_empty(struct check *k, const struct vv_lineage *lin, bool named)
{
	if (named)
		return vv_err_set(VV_ENOENT, "lineage '%s' of store '%s' has no epoch: there is nothing to verify", lin->name, lin->store->url);
	if (!k->job->args->json && !k->job->args->quiet) {
		vv_bar_clear(&k->bar);
		vv_out_printf(&k->job->out, "%s: no epoch yet\n", lin->name);
	}
	return 0;
}

/* A lineage with a damaged record is a finding, not a failure of the check. */
static int verify_lineage(struct check *k, const char *name, struct vv_spec *spec)
{
	bool whole = vv_args_value(k->job->args, "whole");
	struct vv_verify_report r = { 0 };
	struct vv_lineage lin;
	uint64_t epoch;
	int rc = vv_find_lineages_open(k->job->store, name, &lin);

	if (rc == 0 && spec)
		rc = vv_spec_look_up(spec, &lin);
	epoch = rc == 0 && spec ? spec->first : 0;
	if (rc == 0 && epoch)
		rc = find_epoch(&lin, epoch);
	if (rc == 0)
		rc = vv_verify_run(&lin, k->job->pool, epoch, whole, report_problem, k, &k->bar.progress, &r);
	if (rc == 0 && !epoch)
		keep_result(&lin, &r);
	if (rc == 0 && r.problems)
		rc = keep_affected(k, name, &r);
	else if (rc == 0 && !r.epochs)
		rc = report_empty(k, &lin, spec != NULL);
	if (rc == VV_EDAMAGED) {
		report_problem(k, vv_err_last());
		r.problems++;
		rc = 0;
	}
	if (rc == 0 && r.elsewhere && !whole)
		print_elsewhere(k, name, &r);
	if (rc == 0 && r.parity)
		print_parity(k, name, &r);
	add(&k->sum, &r);
	return rc;
}

static int verify_all(struct check *k)
{
	struct vv_names names = { 0 };
	int rc = vv_find_lineages(k->job->store, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		rc = verify_lineage(k, names.v[i].name, NULL);
		if (rc == VV_EDENIED)
			rc = keep_unread(k, names.v[i].name);
	}
	vv_names_fini(&names);
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
	vv_json_number(j, "parity", r->parity);
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

/* The findings in the other lineages stay in the output. */
static int fail_unread(struct check *k, size_t n)
{
	int rc = vv_err_set(VV_EDENIED, "%zu lineage%s of '%s' could not be read and %s not checked: run the command as a user who may read %s", n,
			    n == 1 ? "" : "s", k->job->store->url, n == 1 ? "was" : "were", n == 1 ? "it" : "them");

	if (!k->job->args->json) {
		vv_out_flush(&k->job->out);
		fprintf(stderr, "varve: %s\n", vv_err_last());
	}
	vv_json_error(&k->job->json, rc);
	return 2;
}

static int verify(struct check *k, struct vv_spec *spec)
{
	size_t n_unread;
	int rc;

	vv_json_array(&k->job->json, "problems");
	vv_bar_init(&k->bar, "verify", k->job->args->quiet);
	rc = spec ? verify_lineage(k, spec->lineage, spec) : verify_all(k);
	vv_bar_fini(&k->bar);
	vv_json_end(&k->job->json);
	n_unread = k->n_unread;
	put_affected(k);
	put_unread(k);
	if (rc)
		return rc;
	put_sum(&k->job->json, &k->sum);
	if (!k->job->args->json && !k->job->args->quiet)
		print_sum(&k->job->out, &k->sum);
	return n_unread ? fail_unread(k, n_unread) : k->sum.problems ? 1 : 0;
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
		"and checks all checksums and digests. Prints one line per problem, and the\n"
		"affected epochs; exit 1 if there is a problem. If the ranks of a job have local\n"
		"stores, each is verified by itself. Layers in other stores are listed, but are a\n"
		"problem only with --whole. Parity is checked, too. The store keeps the result\n"
		"for 'varve report'.",
	.option = options,
	.run = run,
};
