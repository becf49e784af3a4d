#include "base/err.h"
#include "base/mem.h"
#include "cli/base/bar.h"
#include "cli/base/find_lineages.h"
#include "cli/base/verb_context.h"
#include "cli/base/text.h"
#include "engine/ranks/global_table.h"
#include "engine/upkeep/diff.h"
#include <inttypes.h>
#include <string.h>

struct cmd_diff_side {
	struct vv_store *store;
	struct vv_lineage lineage;
	uint64_t epoch;
	uint32_t ranks;
};

struct cmd_diff_comparison {
	struct vv_verb_context *job;
	struct cmd_diff_side a, b;
	const char **only; /* regions asked for; all if there are none */
	size_t n_only;
	struct vv_bar bar;
	uint32_t rank;
	size_t equal, different; /* regions */
};

/* ---- the report of a region ------------------------------------------------------------------ */

static bool is_equal(const struct vv_diff_region *r)
{
	return r->a && r->b && vv_head_same_shape(r->a, r->b) && r->bytes == 0;
}

static void put_shape(struct vv_json *j, const char *key, const struct vv_shape *s)
{
	if (!s) {
		vv_json_text(j, key, NULL);
		return;
	}
	vv_json_object(j, key);
	vv_json_text(j, "type", vv_head_type_name(s->type));
	vv_json_numbers(j, "shape", s->dim, s->ndim);
	vv_json_number(j, "bytes", s->len);
	vv_json_end(j);
}

static void put_region(struct vv_json *j, uint32_t rank, const struct vv_diff_region *r)
{
	vv_json_object(j, NULL);
	vv_json_text(j, "region", r->name);
	if (rank != VV_GLOBAL_RANK)
		vv_json_number(j, "rank", rank);
	vv_json_bool(j, "equal", is_equal(r));
	put_shape(j, "a", r->a);
	put_shape(j, "b", r->b);
	vv_json_number(j, "bytes", r->bytes);
	if (r->bytes) {
		vv_json_number(j, "first", r->first);
		vv_json_number(j, "last", r->last);
		vv_json_number(j, "ranges", r->ranges);
	}
	if (r->typed) {
		vv_json_number(j, "elements", r->elements);
		vv_json_number(j, "nan", r->nan);
		vv_json_real(j, "max_abs", r->max_abs);
		vv_json_number(j, "max_abs_at", r->max_abs_at);
		vv_json_real(j, "max_rel", r->max_rel);
		vv_json_number(j, "max_rel_at", r->max_rel_at);
		if (r->max_abs_field) {
			vv_json_text(j, "max_abs_field", r->max_abs_field);
			vv_json_text(j, "max_rel_field", r->max_rel_field);
		}
	}
	vv_json_end(j);
}

static void print_shape(struct vv_out *o, const char *word, const struct vv_shape *s)
{
	vv_out_printf(o, "  %s  %s %s, %" PRIu64 " bytes\n", word, vv_head_type_name(s->type), vv_text_shape(s).s, s->len);
}

static void print_elements(struct vv_out *o, const struct vv_diff_region *r)
{
	const struct vv_shape *shape = r->a->len < r->b->len ? r->a : r->b;
	struct vv_shape flat = { .len = shape->len };

	vv_out_printf(o, "  elements  %" PRIu64 " of %" PRIu64 "\n", r->elements, shape->len / vv_head_element_size(r->a));
	if (!vv_head_same_shape(r->a, r->b)) /* an index would be ambiguous */
		shape = &flat;
	if (r->nan)
		vv_out_printf(o, "  NaN       %" PRIu64 " on one side only\n", r->nan);
	if (r->max_abs > 0) {
		vv_out_printf(o, "  max abs   %.9g at %s%s%s\n", r->max_abs, vv_text_index(shape, r->max_abs_at).s, r->max_abs_field ? "." : "",
			      r->max_abs_field ? r->max_abs_field : "");
		vv_out_printf(o, "  max rel   %.9g at %s%s%s\n", r->max_rel, vv_text_index(shape, r->max_rel_at).s, r->max_rel_field ? "." : "",
			      r->max_rel_field ? r->max_rel_field : "");
	}
}

static void print_region(struct vv_out *o, const struct cmd_diff_comparison *c, const struct vv_diff_region *r)
{
	uint64_t common;

	vv_out_printf(o, "region '%s'", vv_text_safe(r->name).s);
	if (c->a.ranks > 1 && c->rank != VV_GLOBAL_RANK)
		vv_out_printf(o, " of rank %" PRIu32, c->rank);
	if (!r->a || !r->b) {
		vv_out_printf(o, ": only in %s@%" PRIu64 "\n", r->a ? c->a.lineage.name : c->b.lineage.name,
			      r->a ? c->a.epoch : c->b.epoch);
		return;
	}
	vv_out_printf(o, "%s\n", vv_head_same_shape(r->a, r->b) ? "" : ": not the same shape");
	if (!vv_head_same_shape(r->a, r->b)) {
		print_shape(o, "first   ", r->a);
		print_shape(o, "second  ", r->b);
	}
	common = r->a->len < r->b->len ? r->a->len : r->b->len;
	vv_out_printf(o, "  bytes     %" PRIu64 " of %" PRIu64 " (%s)", r->bytes, common, vv_text_share(r->bytes, common).s);
	if (r->bytes)
		vv_out_printf(o, " in %" PRIu64 " stretch%s, from %" PRIu64 " to %" PRIu64, r->ranges,
			      r->ranges == 1 ? "" : "es", r->first, r->last);
	vv_out_printf(o, "\n");
	if (r->typed)
		print_elements(o, r);
}

static void report_region(void *arg, const struct vv_diff_region *r)
{
	struct cmd_diff_comparison *c = arg;
	bool equal = is_equal(r);

	*(equal ? &c->equal : &c->different) += 1;
	if (c->job->args->json) {
		put_region(&c->job->json, c->rank, r);
	} else if (!equal && !c->job->args->quiet) {
		print_region(&c->job->out, c, r);
	}
}

/* ---- the regions asked for ------------------------------------------------------------------- */

static bool asked_for(const struct cmd_diff_comparison *c, const char *name)
{
	for (size_t i = 0; i < c->n_only; i++)
		if (strcmp(c->only[i], name) == 0)
			return true;
	return c->n_only == 0;
}

/* A table of the requested regions; it borrows them from `from`. */
static int narrow(const struct cmd_diff_comparison *c, const struct vv_run_table *from, struct vv_run_table *out)
{
	int rc;

	*out = *from;
	out->n = 0;
	out->by_name = (struct vv_map){ 0 };
	out->region = vv_mem_new(from->n, sizeof(*out->region));
	if (!out->region)
		return VV_ENOMEM;
	rc = vv_map_reserve(&out->by_name, from->n);
	for (size_t i = 0; rc == 0 && i < from->n; i++)
		if (asked_for(c, from->region[i].name)) {
			out->region[out->n] = from->region[i];
			rc = vv_map_put(&out->by_name, from->region[i].name, out->n++);
		}
	return rc;
}

static void narrow_fini(struct vv_run_table *t)
{
	vv_mem_free(t->region);
	vv_map_fini(&t->by_name);
}

/* Each requested region must be on at least one side; the error lists the regions of the first. */
static int check_names(const struct cmd_diff_comparison *c, const struct vv_run_table *a, const struct vv_run_table *b)
{
	const struct vv_run_table_region *r;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n_only; i++)
		if (vv_run_table_find(b, c->only[i]) == b->n)
			rc = vv_run_table_region(&c->a.lineage, a, c->only[i], &r);
	return rc;
}

static int compare_tables(struct cmd_diff_comparison *c, const struct vv_run_table *a, const struct vv_run_table *b)
{
	struct vv_run_table some_a = { 0 }, some_b = { 0 };
	struct vv_diff_side x = { &c->a.lineage, &some_a }, y = { &c->b.lineage, &some_b };
	bool differ = false;
	int rc = check_names(c, a, b);

	if (rc == 0)
		rc = narrow(c, a, &some_a);
	if (rc == 0)
		rc = narrow(c, b, &some_b);
	if (rc == 0)
		rc = vv_diff_run(&x, &y, c->job->pool, report_region, c, &c->bar.progress, &differ);
	narrow_fini(&some_a);
	narrow_fini(&some_b);
	return rc ? rc : differ;
}

static int compare_rank(struct cmd_diff_comparison *c, uint32_t rank)
{
	struct vv_run_table a = { 0 }, b = { 0 };
	int rc = vv_run_table_load(&c->a.lineage, c->a.epoch, rank, NULL, &a);

	c->rank = rank;
	if (rc == 0)
		rc = vv_run_table_load(&c->b.lineage, c->b.epoch, rank, NULL, &b);
	if (rc == 0)
		rc = compare_tables(c, &a, &b);
	vv_run_table_fini(&a);
	vv_run_table_fini(&b);
	return rc;
}

/* The arrays of all ranks, whatever number of ranks wrote them. */
static int compare_global(struct cmd_diff_comparison *c)
{
	struct vv_run_table a = { 0 }, b = { 0 };
	int rc = vv_global_table_load(&c->a.lineage, c->job->pool, c->a.epoch, NULL, &a);

	c->rank = VV_GLOBAL_RANK;
	if (rc == 0)
		rc = vv_global_table_load(&c->b.lineage, c->job->pool, c->b.epoch, NULL, &b);
	if (rc == 0 && !a.n && !b.n)
		rc = vv_err_set(VV_ENOENT, "neither epoch has a global array, a list or a shared region");
	if (rc == 0)
		rc = compare_tables(c, &a, &b);
	vv_run_table_fini(&a);
	vv_run_table_fini(&b);
	return rc;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int open_side(struct vv_verb_context *job, struct cmd_diff_side *s, const char *text)
{
	struct vv_spec spec;
	struct vv_commit commit = { 0 };
	int rc = vv_spec_parse(text, VV_SPEC_EPOCH, &spec);

	if (rc == 0)
		rc = vv_find_lineages_open(s->store, spec.lineage, &s->lineage);
	if (rc == 0)
		rc = vv_verb_context_epoch(job, &s->lineage, &spec, &s->epoch);
	if (rc == 0)
		rc = vv_catalog_commit(&s->lineage, s->epoch, &commit);
	s->ranks = commit.n_ranks;
	vv_commit_fini(&commit);
	return rc;
}

/* Compares rank by rank; a rank on one side only is a difference. */
static int compare_ranks(struct cmd_diff_comparison *c)
{
	uint64_t one = VV_MAX_RANKS;
	uint32_t common = c->a.ranks < c->b.ranks ? c->a.ranks : c->b.ranks;
	bool differ = c->a.ranks != c->b.ranks;
	int rc = vv_args_number(c->job->args, "rank", 0, VV_MAX_RANKS - 1, &one);

	if (rc == 0 && one < VV_MAX_RANKS)
		return compare_rank(c, (uint32_t)one);
	for (uint32_t r = 0; rc >= 0 && r < common; r++) {
		rc = compare_rank(c, r);
		differ |= rc == 1;
	}
	if (rc >= 0 && c->a.ranks != c->b.ranks && !c->job->args->json && !c->job->args->quiet)
		vv_out_printf(&c->job->out, "ranks: %" PRIu32 " and %" PRIu32 "\n", c->a.ranks, c->b.ranks);
	return rc < 0 ? rc : differ;
}

static void put_side(struct vv_json *j, const char *key, const struct cmd_diff_side *s)
{
	vv_json_object(j, key);
	vv_json_text(j, "store", s->store->url);
	vv_json_text(j, "lineage", s->lineage.name);
	vv_json_number(j, "epoch", s->epoch);
	vv_json_number(j, "ranks", s->ranks);
	vv_json_end(j);
}

static int compare(struct cmd_diff_comparison *c)
{
	struct vv_verb_context *job = c->job;
	int rc;

	put_side(&job->json, "a", &c->a);
	put_side(&job->json, "b", &c->b);
	vv_json_array(&job->json, "regions");
	vv_bar_init(&c->bar, "diff", job->args->quiet);
	rc = vv_args_value(job->args, "global") ? compare_global(c) : compare_ranks(c);
	vv_bar_fini(&c->bar);
	vv_json_end(&job->json);
	if (rc < 0)
		return rc;
	vv_json_bool(&job->json, "equal", rc == 0);
	if (!job->args->json && !job->args->quiet)
		vv_out_printf(&job->out, "%zu region%s equal, %zu different\n", c->equal, c->equal == 1 ? "" : "s",
			      c->different);
	return rc;
}

static int run(struct vv_verb_context *job)
{
	const char *with = vv_args_value(job->args, "with");
	struct cmd_diff_comparison c = { .job = job, .only = job->args->operand + 3, .n_only = job->args->n_operands - 3 };
	struct vv_store *other = NULL;
	int rc = vv_args_value(job->args, "rank") && vv_args_value(job->args, "global") ? vv_err_set(VV_EINVAL, "diff: either --rank or --global") :
											  vv_verb_context_open_store(job);

	if (rc == 0 && with)
		rc = vv_verb_context_open_other(job, with, &other);
	c.a.store = job->store;
	c.b.store = other ? other : job->store;
	if (rc == 0)
		rc = open_side(job, &c.a, job->args->operand[1]);
	if (rc == 0)
		rc = open_side(job, &c.b, job->args->operand[2]);
	if (rc == 0)
		rc = vv_verb_context_start_pool(job);
	if (rc == 0)
		rc = compare(&c);
	vv_store_close(other);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "with", 0, "STORE2", "the second epoch is in this store" },
	{ "rank", 0, "R", "only this rank" },
	{ "global", 0, NULL, "arrays, lists and shared regions of all ranks" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_diff = {
	.name = "diff",
	.operands = "STORE LINEAGE[@EPOCH] LINEAGE[@EPOCH] [REGION...]",
	.min = 3,
	.max = SIZE_MAX,
	.brief = "compares two epochs, region by region",
	.help = "Compares all regions of two epochs, or the given ones: differing bytes and their\n"
		"positions, and for arrays the differing elements and the largest differences.\n"
		"Exit 0: equal, 1: different, 2: any error, including damage.",
	.option = options,
	.damage_is_error = true,
	.run = run,
};
