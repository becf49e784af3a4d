#include "base/err.h"
#include "cli/bar.h"
#include "cli/job.h"
#include "cli/outfile.h"
#include "engine/export.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static bool ends_in(const char *s, const char *end)
{
	return strlen(s) >= strlen(end) && strcmp(s + strlen(s) - strlen(end), end) == 0;
}

static int to_stdout(struct vv_job *job, const struct vv_lineage *lin, const struct vv_table_region *r, bool npy,
		     const struct vv_progress *progress)
{
	int rc = vv_export_region(lin, r, job->pool, STDOUT_FILENO, npy, progress);

	if (rc)
		vv_out_look(&job->out);
	return rc;
}

static int to_file(struct vv_job *job, const struct vv_lineage *lin, const struct vv_table_region *r, const char *path,
		   bool npy, const struct vv_progress *progress)
{
	struct vv_outfile f;
	int rc = vv_outfile_open(&f, path);

	if (rc)
		return rc;
	rc = vv_export_region(lin, r, job->pool, f.fd, npy, progress);
	if (rc == 0)
		return vv_outfile_commit(&f);
	vv_outfile_abort(&f);
	return rc == VV_EIO || rc == VV_ENOSPC ? vv_err_context(rc, "'%s' was not written", path) : rc;
}

static void put_region(struct vv_json *j, const struct vv_table *t, const struct vv_table_region *r, const char *path,
		       bool npy)
{
	vv_json_number(j, "epoch", t->epoch);
	vv_json_number(j, "rank", t->rank);
	vv_json_text(j, "region", r->name);
	vv_json_text(j, "type", vv_head_type_name(r->shape.type));
	vv_json_array(j, "shape");
	for (unsigned d = 0; d < r->shape.ndim; d++)
		vv_json_number(j, NULL, r->shape.dim[d]);
	vv_json_end(j);
	vv_json_number(j, "bytes", r->shape.len);
	vv_json_text(j, "file", path);
	vv_json_text(j, "format", npy ? "npy" : "raw");
}

static int extract(struct vv_job *job, const struct vv_lineage *lin, const struct vv_table *t, const char *region)
{
	const char *path = vv_args_value(job->args, "output");
	const struct vv_table_region *r = NULL;
	struct vv_bar bar;
	bool npy;
	int rc = vv_table_region(lin, t, region, &r);

	if (rc)
		return rc;
	path = path && strcmp(path, "-") != 0 ? path : NULL;
	npy = vv_args_value(job->args, "npy") || (path && ends_in(path, ".npy"));
	vv_bar_init(&bar, "extract", job->args->quiet);
	rc = path ? to_file(job, lin, r, path, npy, &bar.progress) : to_stdout(job, lin, r, npy, &bar.progress);
	vv_bar_fini(&bar);
	if (rc == 0)
		put_region(&job->json, t, r, path, npy);
	return rc;
}

/* Before anything is opened: can the output be where it is wanted? */
static int check_output(const struct vv_args *args)
{
	const char *path = vv_args_value(args, "output");

	if (path && !path[0])
		return vv_err_set(VV_EINVAL, "extract: the output's name is empty");
	if (path && strcmp(path, "-") != 0)
		return 0;
	if (args->json)
		return vv_err_set(VV_EINVAL, "extract: --json needs the standard output for itself; name a file with -o FILE");
	if (isatty(STDOUT_FILENO))
		return vv_err_set(VV_EINVAL, "extract: a region's bytes are not for a terminal; name a file with -o FILE");
	return 0;
}

static int parse(const struct vv_args *args, struct vv_spec *spec)
{
	bool apart = args->n_operands == 3;
	int rc = vv_spec_parse(args->operand[1], VV_SPEC_EPOCH | (apart ? 0 : VV_SPEC_REGION), spec);

	if (rc == 0 && apart)
		spec->region = args->operand[2];
	if (rc == 0 && (!spec->region || !spec->region[0]))
		rc = vv_err_set(VV_EINVAL, "extract: which region? %s:REGION ('varve show' lists them)", args->operand[1]);
	return rc;
}

/* The rank asked for; where there is only one, it need not be. */
static int choose_rank(const struct vv_args *args, const struct vv_lineage *lin, uint64_t epoch, uint64_t *rank)
{
	struct vv_commit c = { 0 };
	int rc = vv_args_number(args, "rank", 0, VV_MAX_RANKS - 1, rank);

	if (rc || vv_args_value(args, "rank"))
		return rc;
	rc = vv_catalog_commit(lin, epoch, &c);
	if (rc == 0 && c.n_ranks > 1)
		rc = vv_err_set(VV_EINVAL, "extract: epoch %" PRIu64 " of lineage '%s' has %" PRIu32 " ranks, each with regions of its own; "
				"say --rank R, 0 to %" PRIu32, epoch, lin->name, c.n_ranks, c.n_ranks - 1);
	vv_commit_fini(&c);
	return rc;
}

static int run(struct vv_job *job)
{
	struct vv_spec spec;
	struct vv_lineage lin;
	struct vv_table t = { 0 };
	uint64_t epoch = 0, rank = 0;
	int rc = parse(job->args, &spec);

	if (rc == 0)
		rc = check_output(job->args);
	if (rc == 0)
		rc = vv_job_open_store(job);
	if (rc == 0)
		rc = vv_catalog_open(job->store, spec.lineage, false, &lin);
	if (rc == 0)
		rc = vv_job_epoch(&lin, &spec, &epoch);
	if (rc == 0)
		rc = choose_rank(job->args, &lin, epoch, &rank);
	if (rc == 0)
		rc = vv_table_load(&lin, epoch, (uint32_t)rank, &t);
	if (rc == 0)
		rc = vv_job_start_pool(job);
	if (rc == 0)
		rc = extract(job, &lin, &t, spec.region);
	vv_table_fini(&t);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "output", 'o', "FILE", "where to; - or none: the standard output" },
	{ "npy", 0, NULL, "as NumPy's .npy, with type and shape (also if FILE ends in .npy)" },
	{ "rank", 0, "R", "of this rank; must be said if there are several" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_extract = {
	.name = "extract",
	.operands = "STORE LINEAGE[@EPOCH]:REGION",
	.min = 2,
	.max = 3,
	.brief = "takes a region out of an epoch, raw or as .npy",
	.help = "Writes the bytes of a region (of the newest epoch if none is named). The region may also stand apart, as a third\n"
		"operand. FILE appears whole or not at all. Here -o is the output; options are set with --option NAME=VALUE.",
	.option = options,
	.run = run,
};
