#include "base/err.h"
#include "cli/base/bar.h"
#include "cli/base/verb_context.h"
#include "cli/base/outfile.h"
#include "cli/pack/exclude_store.h"
#include "engine/ranks/global_table.h"
#include "engine/read/export.h"
#include "engine/files/extract_variable.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static bool ends_in(const char *s, const char *end)
{
	return strlen(s) >= strlen(end) && strcmp(s + strlen(s) - strlen(end), end) == 0;
}

/* The source: a region, a file, which is also a region, or a variable of a file. */
struct cmd_extract_source {
	const struct vv_lineage *lineage;
	const struct vv_run_table_region *region;
	struct vv_extract_variable_file *file; /* NULL: the region itself */
	const struct vv_variable *variable;
};

static int copy(struct vv_verb_context *job, const struct cmd_extract_source *s, int fd, bool npy, const struct vv_progress *progress)
{
	if (s->file)
		return vv_extract_variable_write(s->file, s->variable, fd, npy, progress);
	return vv_export_region(s->lineage, s->region, job->pool, fd, npy, progress);
}

static int to_stdout(struct vv_verb_context *job, const struct cmd_extract_source *s, bool npy, const struct vv_progress *progress)
{
	int rc;

	job->begun = true;
	rc = copy(job, s, STDOUT_FILENO, npy, progress);
	if (rc)
		vv_out_look(&job->out);
	return rc;
}

static int to_file(struct vv_verb_context *job, const struct cmd_extract_source *s, const char *path, bool npy, const struct vv_progress *progress)
{
	struct vv_outfile f;
	int rc = vv_outfile_open(&f, path);

	if (rc)
		return rc;
	rc = copy(job, s, f.fd, npy, progress);
	if (rc == 0)
		return vv_outfile_commit(&f);
	vv_outfile_abort(&f);
	return rc == VV_EIO || rc == VV_ENOSPC ? vv_err_context(rc, "'%s' was not written", path) : rc;
}

/* Extracts to the requested output; *path is NULL for the standard output. */
static int take_out(struct vv_verb_context *job, const struct cmd_extract_source *s, const char **path, bool *npy)
{
	struct vv_bar bar;
	int rc;

	*path = vv_args_value(job->args, "output");
	*path = *path && strcmp(*path, "-") != 0 ? *path : NULL;
	*npy = vv_args_value(job->args, "npy") || (*path && ends_in(*path, ".npy"));
	vv_bar_init(&bar, "extract", job->args->quiet);
	rc = *path ? to_file(job, s, *path, *npy, &bar.progress) : to_stdout(job, s, *npy, &bar.progress);
	vv_bar_fini(&bar);
	return rc;
}

static void put_region(struct vv_json *j, const struct vv_run_table *t, const struct vv_run_table_region *r, const char *path,
		       bool npy)
{
	vv_json_number(j, "epoch", t->epoch);
	if (t->rank != VV_GLOBAL_RANK)
		vv_json_number(j, "rank", t->rank);
	vv_json_text(j, "region", r->name);
	vv_json_text(j, "type", vv_head_type_name(r->shape.type));
	vv_json_numbers(j, "shape", r->shape.dim, r->shape.ndim);
	vv_json_number(j, "bytes", r->shape.len);
	vv_json_text(j, "file", path);
	vv_json_text(j, "format", npy ? "npy" : "raw");
}

static int extract_region(struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_run_table *t, const char *region)
{
	struct cmd_extract_source s = { .lineage = lin };
	const char *path;
	bool npy;
	int rc = vv_run_table_region(lin, t, region, &s.region);

	if (rc == 0)
		rc = take_out(job, &s, &path, &npy);
	if (rc == 0)
		put_region(&job->json, t, s.region, path, npy);
	return rc;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* FILE, FILE:VARIABLE, or the variable as a separate operand. The longest existing name is taken,
 * because names may contain colons. */
static int find_file(const struct vv_unpack *u, const char *text, const char *apart, struct vv_unpack_file *out, const char **variable)
{
	char name[VV_MANIFEST_NAME];
	size_t n = strlen(text);

	for (size_t end = n; end > 0 && !apart; end--) {
		if (end < n && text[end] != ':')
			continue;
		if (end >= sizeof(name))
			continue;
		memcpy(name, text, end);
		name[end] = '\0';
		*variable = end < n ? text + end + 1 : NULL;
		if (vv_unpack_has(u, name, out))
			return 0;
	}
	*variable = apart;
	return vv_unpack_find(u, text, out);
}

static void put_file(struct vv_json *j, const struct vv_unpack *u, const struct vv_unpack_file *f, const struct vv_variable *v, const char *path,
		     bool npy)
{
	uint64_t bytes = f->region->shape.len;

	if (v)
		(void)vv_extract_variable_bytes(v, &bytes);
	vv_json_number(j, "epoch", u->epoch);
	vv_json_number(j, "rank", f->rank);
	vv_json_text(j, "source", f->file->name);
	if (v) {
		vv_json_text(j, "variable", v->name);
		vv_json_text(j, "type", vv_head_type_name(vv_extract_variable_type(v)));
		vv_json_bool(j, "big_endian", vv_extract_variable_swapped(v));
		vv_json_numbers(j, "shape", v->dim, v->ndim);
	}
	vv_json_number(j, "bytes", bytes);
	vv_json_text(j, "file", path);
	vv_json_text(j, "format", npy ? "npy" : "raw");
}

static int extract_file(struct vv_verb_context *job, const struct vv_unpack *u, const char *text, const char *apart)
{
	struct cmd_extract_source s = { .lineage = u->lineage };
	struct vv_unpack_file f;
	const char *name = NULL, *path;
	bool npy;
	int rc = find_file(u, text, apart, &f, &name);

	if (rc)
		return rc;
	s.region = f.region;
	if (name)
		rc = vv_extract_variable_open(u, job->pool, &f, &s.file);
	if (rc == 0 && name)
		rc = vv_extract_variable_find(s.file, name, &s.variable);
	if (rc == 0)
		rc = take_out(job, &s, &path, &npy);
	if (rc == 0)
		put_file(&job->json, u, &f, s.variable, path, npy);
	vv_extract_variable_close(s.file);
	return rc;
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* Checks, before anything is opened, whether the output can be at the requested place. */
static int check_output(const struct vv_args *args)
{
	const char *path = vv_args_value(args, "output");

	if (path && !path[0])
		return vv_err_set(VV_EINVAL, "extract: the output's name is empty");
	if (path && strcmp(path, "-") != 0)
		return vv_exclude_store_refuse(args->operand[0], path);
	if (args->json)
		return vv_err_set(VV_EINVAL, "extract: --json needs the standard output for itself; name a file with -o FILE");
	if (isatty(STDOUT_FILENO))
		return vv_err_set(VV_EINVAL, "extract: a region's bytes are not for a terminal; name a file with -o FILE");
	return 0;
}

/* LINEAGE:REGION, or separate operands; LINEAGE:FILE VARIABLE, or all separate. */
static int parse(const struct vv_args *args, struct vv_spec *spec, const char **variable)
{
	int rc = vv_spec_parse(args->operand[1], VV_SPEC_EPOCH | (args->n_operands < 4 ? VV_SPEC_REGION : 0), spec);
	size_t next = 2;

	if (rc)
		return rc;
	if (!spec->region && next < args->n_operands)
		spec->region = args->operand[next++];
	*variable = next < args->n_operands ? args->operand[next] : NULL;
	if (!spec->region || !spec->region[0])
		return vv_err_set(VV_EINVAL, "extract: which region? %s:REGION ('varve show' lists them)", args->operand[1]);
	return 0;
}

/* Is it an epoch of files? The requested rank decides, or the first readable one. A name that is a
 * region of a rank means the region. */
static int is_of_files(const struct vv_args *args, const struct vv_lineage *lin, uint64_t epoch, const char *name, bool *out)
{
	struct vv_commit c = { 0 };
	struct vv_run_table t = { 0 };
	uint64_t rank = 0;
	bool asked = vv_args_value(args, "rank");
	int rc = vv_args_number(args, "rank", 0, VV_MAX_RANKS - 1, &rank);

	if (rc == 0)
		rc = vv_catalog_commit(lin, epoch, &c);
	if (rc == 0)
		rc = vv_run_table_load(lin, epoch, (uint32_t)rank, NULL, &t);
	while (vv_unpack_is_of_one_rank(rc) && !asked && ++rank < c.n_ranks)
		rc = vv_run_table_load(lin, epoch, (uint32_t)rank, NULL, &t);
	*out = rc == 0 && vv_run_table_find(&t, VV_MANIFEST_REGION) < t.n && !(asked && vv_run_table_find(&t, name) < t.n);
	vv_run_table_fini(&t);
	vv_commit_fini(&c);
	return rc;
}

/* An array of all ranks, a list or a shared region. */
static int run_global(struct vv_verb_context *job, const struct vv_lineage *lin, uint64_t epoch, const char *region, const char *variable)
{
	struct vv_run_table t = { 0 };
	int rc = 0;

	if (variable || vv_args_value(job->args, "rank"))
		return vv_err_set(VV_EINVAL, "extract: --global goes neither with a variable of a file nor with --rank");
	rc = vv_global_table_load(lin, job->pool, epoch, region, &t);
	if (rc == 0)
		rc = extract_region(job, lin, &t, region);
	vv_run_table_fini(&t);
	return rc;
}

/* The requested rank; it is optional if there is only one rank. */
static int choose_rank(const struct vv_args *args, const struct vv_lineage *lin, uint64_t epoch, uint64_t *rank)
{
	struct vv_commit c = { 0 };
	int rc = vv_args_number(args, "rank", 0, VV_MAX_RANKS - 1, rank);

	if (rc || vv_args_value(args, "rank"))
		return rc;
	rc = vv_catalog_commit(lin, epoch, &c);
	if (rc == 0 && c.n_ranks > 1)
		rc = vv_err_set(VV_EINVAL, "extract: epoch %" PRIu64 " of lineage '%s' has %" PRIu32 " ranks, each with regions of its own; "
				"say --rank R, 0 to %" PRIu32 ", or --global for what all ranks have together", epoch, lin->name, c.n_ranks, c.n_ranks - 1);
	vv_commit_fini(&c);
	return rc;
}

static int run_region(struct vv_verb_context *job, const struct vv_lineage *lin, uint64_t epoch, const char *region, const char *variable)
{
	struct vv_run_table t = { 0 };
	uint64_t rank = 0;
	int rc = variable ? vv_err_set(VV_EINVAL, "extract: '%s' is one word too many: epoch %" PRIu64 " was not packed from files", variable,
				       epoch) : choose_rank(job->args, lin, epoch, &rank);

	if (rc == 0)
		rc = vv_run_table_load(lin, epoch, (uint32_t)rank, NULL, &t);
	if (rc == 0)
		rc = extract_region(job, lin, &t, region);
	vv_run_table_fini(&t);
	return rc;
}

static int run_file(struct vv_verb_context *job, const struct vv_lineage *lin, uint64_t epoch, const char *file, const char *variable)
{
	struct vv_unpack u = { 0 };
	uint64_t rank = 0;
	int rc = vv_args_number(job->args, "rank", 0, VV_MAX_RANKS - 1, &rank);

	if (rc == 0 && vv_args_value(job->args, "rank"))
		rc = vv_unpack_open_rank(lin, epoch, (uint32_t)rank, job->pool, &u);
	else if (rc == 0)
		rc = vv_unpack_open_rest(lin, epoch, job->pool, &u);
	if (rc == 0)
		rc = extract_file(job, &u, file, variable);
	vv_unpack_close(&u);
	return rc;
}

static int run(struct vv_verb_context *job)
{
	const char *variable = NULL;
	struct vv_spec spec;
	struct vv_lineage lin;
	uint64_t epoch = 0;
	bool files = false, global = vv_args_value(job->args, "global") != NULL;
	int rc = parse(job->args, &spec, &variable);

	if (rc == 0)
		rc = check_output(job->args);
	if (rc == 0)
		rc = vv_verb_context_open_lineage(job, &spec, &lin);
	if (rc == 0)
		rc = vv_verb_context_epoch(job, &lin, &spec, &epoch);
	if (rc == 0 && !global)
		rc = is_of_files(job->args, &lin, epoch, spec.region, &files);
	if (rc == 0)
		rc = vv_verb_context_start_pool(job);
	if (rc == 0 && global)
		return run_global(job, &lin, epoch, spec.region, variable);
	if (rc == 0)
		rc = files ? run_file(job, &lin, epoch, spec.region, variable) : run_region(job, &lin, epoch, spec.region, variable);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "output", 'o', "FILE", "output file (-: the standard output)" },
	{ "npy", 0, NULL, "NumPy's .npy (also if FILE ends in .npy)" },
	{ "rank", 0, "R", "this rank; required for regions of several ranks" },
	{ "global", 0, NULL, "the array, list or shared region of all ranks" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_extract = {
	.name = "extract",
	.operands = "STORE LINEAGE[@EPOCH]:REGION|FILE[:VARIABLE]",
	.min = 2,
	.max = 4,
	.brief = "extracts a region or a variable of a packed file, raw or as .npy",
	.help = "Writes the bytes of a region (by default of the newest epoch). For an epoch of\n"
		"packed files, writes a file or a variable of it, and reads only the necessary\n"
		"parts. Region, file and variable may also be separate operands. The output is\n"
		"written completely or not at all.",
	.option = options,
	.run = run,
};
