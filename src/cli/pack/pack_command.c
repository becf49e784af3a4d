#include "cli/pack/pack_command.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/base/bar.h"
#include "cli/pack/purge.h"
#include "cli/base/show_files.h"
#include "cli/base/text.h"
#include "engine/context.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Reports the attributes that cannot be kept: of the folders, and of the files of this rank. */
static void report_left(struct vv_verb_context *job, const struct vv_xattr_left *left)
{
	if (left->n && !job->args->quiet && !job->args->json)
		fprintf(stderr, "varve: %" PRIu64 " extended attribute%s not packed: %s%s\n", left->n, left->n == 1 ? " is" : "s are", vv_text_safe(left->first).s,
			left->n == 1 ? "" : " ...");
}

static void add_cells(struct vv_text_table *t, const struct vv_pack_report *r, double seconds)
{
	vv_text_cell(t, "%" PRIu64, r->epoch);
	vv_text_cell(t, "%" PRIu64, r->files);
	vv_text_cell(t, "%s", vv_text_size(r->raw).s);
	vv_text_cell(t, "%s", vv_text_size(r->fresh).s);
	vv_text_cell(t, "%s", vv_text_size(r->stored).s);
	vv_text_cell(t, "%s", vv_text_size(r->layer).s);
	vv_text_cell(t, "%s", vv_text_ratio(r->raw, r->layer).s);
	vv_text_cell(t, "%.0f", seconds > 0 ? (double)r->raw / 1e6 / seconds : 0);
}

static int say(struct vv_out *o, const struct vv_pack_report *r, double seconds)
{
	static const char *const columns[] = { ">EPOCH", ">FILES", ">BYTES", ">NEW", ">STORED", ">LAYERS", ">RATIO", ">MB/S", NULL };
	struct vv_text_table t;
	int rc;

	vv_text_table_init(&t, columns, "");
	add_cells(&t, r, seconds);
	rc = vv_text_table_print(&t, &o->buf);
	vv_text_table_fini(&t);
	return rc;
}

static void put(struct vv_json *j, const struct vv_pack_report *r, double seconds)
{
	vv_json_number(j, "epoch", r->epoch);
	vv_json_text(j, "scheme", r->manifest.scheme);
	vv_json_text(j, "level", r->manifest.effort);
	vv_json_number(j, "files", r->files);
	vv_json_number(j, "bytes", r->raw);
	vv_json_number(j, "bytes_new", r->fresh);
	vv_json_number(j, "bytes_stored", r->stored);
	vv_json_number(j, "bytes_layer", r->layer);
	vv_json_real(j, "ratio", r->layer ? (double)r->raw / (double)r->layer : 0);
	vv_json_number(j, "links_and_folders", r->manifest.n_entries);
	vv_json_number(j, "attributes_left", r->left.n);
	vv_json_real(j, "seconds", seconds);
	vv_json_real(j, "bytes_per_second", seconds > 0 ? (double)r->raw / seconds : 0);
	vv_show_files_put_kinds(j, &r->manifest);
}

int vv_pack_command_report(struct vv_verb_context *job, const struct vv_pack_report *r, double seconds)
{
	if (!vv_verb_context_is_first(job))
		return 0;
	if (job->args->json) {
		put(&job->json, r, seconds);
		return 0;
	}
	return job->args->quiet ? 0 : say(&job->out, r, seconds);
}

/* The label that --label gives, or with --each the name of the file or folder. Other characters
 * become '_'. "": no label can be made of the name. */
static void make_label(const struct vv_args *args, const char *name, char out[VV_NAME_LABEL_MAX + 1])
{
	const char *given = vv_args_value(args, "label"), *slash = name ? strrchr(name, '/') : NULL;
	bool each = vv_args_value(args, "each") && name;
	size_t n;

	snprintf(out, VV_NAME_LABEL_MAX + 1, "%s", given ? given : !each ? "" : slash ? slash + 1 : name);
	n = strlen(out);
	for (size_t i = 0; !given && i < n; i++)
		if (!isascii((unsigned char)out[i]) || !(isalnum((unsigned char)out[i]) || strchr("._-", out[i])) || (i == 0 && strchr(".-", out[i])) ||
		    (i && out[i] == '.' && out[i - 1] == '.'))
			out[i] = '_';
	if (vv_name_check_label(out) < 0)
		out[0] = '\0';
}

/* Writes one epoch, and measures the time. */
static int write_epoch(struct vv_verb_context *job, struct varve *v, const struct vv_filelist *l, const struct vv_filelist_set *s, const struct vv_pack_options *opt,
		    struct vv_pack_report *r, double *seconds)
{
	char label[VV_NAME_LABEL_MAX + 1];
	struct vv_pack_options with = *opt;
	double start = vv_clock_s();
	struct vv_bar bar;
	int rc;

	vv_bar_init(&bar, "pack", job->args->quiet || !vv_verb_context_is_first(job));
	with.progress = bar.progress;
	with.entry = l->tree.entry ? l->tree.entry + s->first_entry : NULL;
	with.n_entries = s->n_entries;
	make_label(job->args, s->name, label);
	rc = varve_label(v, label);
	if (rc == 0)
		rc = vv_pack_run(v, l->file + s->from, s->n, &with, r);
	vv_bar_fini(&bar);
	*seconds = vv_clock_s() - start;
	if (rc == 0)
		report_left(job, &r->left);
	return rc;
}

static int pack(struct vv_verb_context *job, struct varve *v, const struct vv_filelist *l, const struct vv_pack_options *opt, bool delete)
{
	const struct vv_filelist_set all = { .n = l->n, .n_entries = l->tree.n_entries };
	struct vv_pack_report r = { 0 };
	double seconds;
	int rc = write_epoch(job, v, l, &all, opt, &r, &seconds);

	vv_json_number(&job->json, "skipped", l->skipped);
	if (rc == 0)
		report_left(job, &l->left);
	if (rc == 0)
		rc = vv_pack_command_report(job, &r, seconds);
	if (rc == 0 && delete)
		rc = vv_purge_run(job, v, l, r.epoch, &r.manifest);
	vv_pack_report_fini(&r);
	return rc;
}

int vv_pack_command_run(struct vv_verb_context *job, const char *lineage, const struct vv_filelist *l, const struct vv_pack_options *opt, bool delete)
{
	struct varve *v = NULL;
	int rc = vv_verb_context_open_session_once(job, job->args->operand[0], lineage, &v);

	return rc ? rc : vv_verb_context_close_session(v, pack(job, v, l, opt, delete));
}

/* ---- several --------------------------------------------------------------------------------- */

static int pack_set(struct vv_verb_context *job, struct varve *v, const struct vv_filelist *l, const struct vv_filelist_set *s,
		    const struct vv_pack_options *opt, bool delete, struct vv_text_table *t)
{
	struct vv_pack_report r = { 0 };
	double seconds;
	int rc = write_epoch(job, v, l, s, opt, &r, &seconds);

	if (rc == 0 && vv_verb_context_is_first(job)) {
		vv_json_object(&job->json, NULL);
		vv_json_text(&job->json, "set", s->name);
		put(&job->json, &r, seconds);
		vv_text_cell(t, "%s", vv_text_safe(s->name).s);
		add_cells(t, &r, seconds);
	}
	if (rc == 0 && delete)
		rc = vv_purge_run(job, v, l, r.epoch, &r.manifest);
	if (r.epoch && vv_verb_context_is_first(job))
		vv_json_end(&job->json);
	vv_pack_report_fini(&r);
	return rc;
}

/* Prints everything besides the table. */
static int conclude(struct vv_verb_context *job, const struct vv_filelist *l, size_t done, struct vv_pack_command_known *known, int rc)
{
	const char *name = done < l->n_sets ? l->set[done].name : "";
	struct vv_json *j = &job->json;

	vv_json_number(j, "passed_over", known->sets);
	vv_json_number(j, "skipped", l->skipped);
	if (known->sets && vv_verb_context_is_first(job) && !job->args->quiet && !job->args->json)
		vv_out_printf(&job->out, "%zu passed over, which the lineage has\n", known->sets);
	vv_purge_report_left(job, &known->count);
	if (rc >= 0)
		return rc;
	vv_json_text(j, "failed", name);
	vv_json_error(j, rc);
	if (vv_verb_context_is_first(job) && !job->args->json) {
		vv_out_flush(&job->out);
		fprintf(stderr, "varve: '%s', %zu of %zu: %s\n", vv_text_safe(name).s, done + 1, l->n_sets, vv_err_last());
		if (done)
			fprintf(stderr, "varve: the %zu before it %s packed; the same command continues from there\n", done, done == 1 ? "is" : "are");
	}
	return vv_verb_context_status(rc);
}

int vv_pack_command_series(struct vv_verb_context *job, const char *lineage, const struct vv_filelist *l, const struct vv_pack_options *opt, bool delete,
		      struct vv_pack_command_known *known)
{
	static const char *const columns[] = { "<SET", ">EPOCH", ">FILES", ">BYTES", ">NEW", ">STORED", ">LAYERS", ">RATIO", ">MB/S", NULL };
	struct vv_text_table t;
	struct varve *v = NULL;
	size_t done = 0;
	int rc = l->n_sets ? vv_verb_context_open_session(job, job->args->operand[0], lineage, &v) : 0;

	if (rc)
		return rc;
	vv_text_table_init(&t, columns, "");
	vv_json_array(&job->json, "epochs");
	while (rc == 0 && done < l->n_sets) {
		rc = pack_set(job, v, l, &l->set[done], opt, delete, &t);
		done += rc == 0;
	}
	vv_json_end(&job->json);
	if (v)
		rc = vv_verb_context_close_session(v, rc);
	if (t.n && vv_verb_context_is_first(job) && !job->args->quiet && !job->args->json)
		(void)vv_text_table_print(&t, &job->out.buf);
	vv_text_table_fini(&t);
	report_left(job, &l->left);
	return conclude(job, l, done, known, rc);
}
