#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/base/bar.h"
#include "cli/pack/filelist.h"
#include "cli/base/interrupt.h"
#include "cli/base/verb_context.h"
#include "cli/pack/exclude_store.h"
#include "cli/base/show_files.h"
#include "cli/base/text.h"
#include "core/format/digest.h"
#include "engine/files/tree_entries.h"
#include "engine/files/unpack.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct names { /* the requested files, by their names in the epoch */
	char **v;
	size_t n;
};

static void names_fini(struct names *s)
{
	for (size_t i = 0; i < s->n; i++)
		vv_mem_free(s->v[i]);
	vv_mem_free(s->v);
}

static int names_init(struct names *s, const struct vv_args *args)
{
	char name[VV_MANIFEST_NAME];
	int rc = 0;

	s->v = vv_mem_new(args->n_operands, sizeof(*s->v));
	if (!s->v)
		return VV_ENOMEM;
	for (size_t i = 2; rc == 0 && i < args->n_operands; i++) {
		rc = vv_filelist_name(args->operand[i], name, sizeof(name));
		if (rc == 0 && !name[0])
			rc = vv_err_set(VV_EINVAL, "unpack: '%s' is no file's name", args->operand[i]);
		s->v[s->n] = rc ? NULL : vv_mem_strdup(name);
		if (rc == 0 && !s->v[s->n++])
			rc = VV_ENOMEM;
	}
	return rc;
}

/* ---- the list -------------------------------------------------------------------------------- */

static bool is_asked(const struct names *s, const char *name)
{
	bool asked = s->n == 0;

	for (size_t i = 0; !asked && i < s->n; i++) {
		size_t n = strlen(s->v[i]);

		asked = strncmp(name, s->v[i], n) == 0 && (!name[n] || name[n] == '/');
	}
	return asked;
}

static void put_file(struct vv_json *j, const struct vv_unpack_file *f)
{
	vv_json_object(j, NULL);
	vv_show_files_put_file(j, f->file, f->region->shape.len);
	vv_json_number(j, "rank", f->rank);
	vv_json_end(j);
}

static void add_row(struct vv_text_table *t, const struct vv_unpack_file *f)
{
	char bytes[24];

	snprintf(bytes, sizeof(bytes), "%" PRIu64, f->region->shape.len);
	vv_show_files_row(t, f->file, bytes);
}

/* Symbolic links and folders. */
static void list_entries(struct vv_verb_context *job, const struct vv_unpack *u, const struct names *s, struct vv_text_table *t)
{
	for (size_t r = 0; r < u->n_ranks; r++)
		for (size_t i = 0; i < u->rank[r].manifest.n_entries; i++) {
			const struct vv_manifest_entry *e = &u->rank[r].manifest.entry[i];

			if (!is_asked(s, e->name))
				continue;
			if (job->args->json)
				vv_show_files_put_entry(&job->json, e);
			else
				vv_show_files_entry_row(t, e);
		}
}

static void print_lost(const struct vv_unpack *u)
{
	for (size_t i = 0; i < u->n_ranks; i++)
		if (u->rank[i].lost)
			fprintf(stderr, "varve: missing: the files of rank %zu, whose names cannot be read\n", i);
}

static void put_lost(struct vv_json *j, const struct vv_unpack *u)
{
	vv_json_array(j, "lost_ranks");
	for (size_t i = 0; i < u->n_ranks; i++)
		if (u->rank[i].lost)
			vv_json_number(j, NULL, i);
	vv_json_end(j);
}

/* Follows the list of the available files. */
static int list_lost(struct vv_verb_context *job, const struct vv_unpack *u)
{
	put_lost(&job->json, u);
	if (u->n_lost == 0)
		return 0;
	(void)vv_err_restore(&u->lost);
	vv_json_error(&job->json, u->lost.code);
	if (vv_verb_context_is_first(job) && !job->args->json) {
		vv_out_flush(&job->out);
		fprintf(stderr, "varve: %s\n", vv_err_last());
		print_lost(u);
	}
	return vv_verb_context_status(u->lost.code);
}

/* A requested file that does not exist is an error, as without --list. */
static int list(struct vv_verb_context *job, const struct vv_unpack *u, const struct names *s)
{
	const struct vv_unpack_options opt = { .test = true, .only = (const char *const *)s->v, .n_only = s->n };
	struct vv_text_table t;
	int rc = vv_unpack_check(u, &opt);

	if (rc)
		return rc;
	vv_show_files_table(&t, "");
	vv_json_array(&job->json, "files");
	for (size_t i = 0; i < u->n_files; i++) {
		struct vv_unpack_file f = vv_unpack_at(u, i);

		if (!is_asked(s, f.file->name))
			continue;
		if (job->args->json)
			put_file(&job->json, &f);
		else
			add_row(&t, &f);
	}
	vv_json_end(&job->json);
	vv_json_array(&job->json, "links_and_folders");
	list_entries(job, u, s, &t);
	vv_json_end(&job->json);
	if (!job->args->json)
		rc = vv_text_table_print(&t, &job->out.buf);
	vv_text_table_fini(&t);
	return rc ? rc : list_lost(job, u);
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static void print_missing(const struct vv_unpack_report *r)
{
	for (size_t i = 0; i < r->n_missing; i++)
		fprintf(stderr, "varve: missing: %s\n", vv_text_safe(r->missing[i]).s);
}

/* over all ranks: files, their bytes, missing ones, links that are copies, attributes that could
 * not be kept */
enum { SUMS = 5 };

static bool is_test(const struct vv_verb_context *job)
{
	return vv_args_value(job->args, "test");
}

static void put_report(struct vv_verb_context *job, const struct vv_unpack *u, const struct vv_unpack_report *r, const uint64_t *sum, double seconds, int rc)
{
	struct vv_json *j = &job->json;

	vv_json_bool(j, "test", is_test(job));
	vv_json_number(j, "files", sum[0]);
	vv_json_number(j, "bytes", sum[1]);
	vv_json_number(j, "links_and_folders", r->entries);
	vv_json_number(j, "links_copied", sum[3]);
	vv_json_number(j, "attributes_left", sum[4]);
	vv_json_real(j, "seconds", seconds);
	vv_json_number(j, "n_missing", sum[2]);
	/* with several ranks, each reports its own on the standard error */
	vv_json_array(j, "missing");
	for (size_t i = 0; i < r->n_missing; i++)
		vv_json_text(j, NULL, r->missing[i]);
	vv_json_end(j);
	put_lost(j, u);
	if (rc)
		vv_json_error(j, rc);
}

/* Prints the attributes that could not be kept on this rank; the files exist. */
static void print_left(struct vv_verb_context *job, const char *of, const struct vv_unpack_report *r)
{
	if (job->args->quiet || job->args->json)
		return;
	if (r->left.n)
		fprintf(stderr, "varve: %s%" PRIu64 " extended attribute%s could not be kept: %s%s\n", of, r->left.n, r->left.n == 1 ? "" : "s",
			vv_text_safe(r->left.first).s, r->left.n == 1 ? "" : " ...");
	if (r->copies)
		fprintf(stderr, "varve: %s%" PRIu64 " hard link%s could not be made there and became %s\n", of, r->copies, r->copies == 1 ? "" : "s",
			r->copies == 1 ? "a file of its own" : "files of their own");
}

/* Names the missing files; the exit status has the reason: 1 for damage. of: a prefix of the
 * messages. sum: files and bytes of all ranks. */
static int report(struct vv_verb_context *job, const char *of, const struct vv_unpack *u, const struct vv_unpack_report *r, double seconds, int rc, uint64_t sum[SUMS])
{
	const char *done = is_test(job) ? "read" : "unpacked";
	bool first = vv_verb_context_is_first(job);

	sum[0] = r->files;
	sum[1] = r->bytes;
	sum[2] = r->n_missing;
	sum[3] = r->copies;
	sum[4] = r->left.n;
	vv_command_ranks_sum(job->ranks, sum, SUMS);
	print_left(job, of, r);
	if (job->args->json)
		put_report(job, u, r, sum, seconds, rc);
	if (rc && (!job->args->json || !first)) {
		vv_out_flush(&job->out);
		if (r->n_missing || !r->n_lost)
			fprintf(stderr, "varve: %s%zu file%s could not be %s: %s\n", of, r->n_missing, r->n_missing == 1 ? "" : "s", done, vv_err_last());
		else
			fprintf(stderr, "varve: %sthe files of %zu rank%s could not be %s: %s\n", of, r->n_lost, r->n_lost == 1 ? "" : "s", done, vv_err_last());
		print_missing(r);
		if (r->n_lost)
			print_lost(u);
	}
	return vv_verb_context_status(rc);
}

static void print_done(struct vv_verb_context *job, const char *of, const uint64_t sum[2], double seconds)
{
	if (vv_verb_context_is_first(job) && !job->args->json && !job->args->quiet)
		vv_out_printf(&job->out, "%" PRIu64 " file%s%s%s, %s in %s\n", sum[0], sum[0] == 1 ? "" : "s", of,
			      is_test(job) ? " read and checked" : "", vv_text_size(sum[1]).s, vv_text_duration(seconds).s);
}

static const char *folder_of(const struct vv_verb_context *job)
{
	const char *folder = vv_args_value(job->args, "directory");

	return folder ? folder : ".";
}

static struct vv_unpack_options options_of(const struct vv_verb_context *job, const struct names *s, const char *folder)
{
	return (struct vv_unpack_options){
		.folder = folder,
		.force = vv_args_value(job->args, "force"),
		.test = is_test(job),
		.only = (const char *const *)s->v,
		.n_only = s->n,
		.share = job->ranks ? job->ranks->rank : 0,
		.shares = job->ranks ? job->ranks->size : 1,
	};
}

/* Rank 0 handles links and folders: it makes the folders before any rank writes into them, and the
 * rest when all ranks have finished. */
static int write_all(struct vv_verb_context *job, const struct vv_unpack *u, const struct vv_unpack_options *opt, struct vv_unpack_report *r)
{
	bool mine = opt->share == 0 && !opt->test;
	struct vv_err_state error = { 0 };
	struct vv_tree_entries e = { .target.fd = -1 };
	int rc = mine ? vv_tree_entries_choose(u, opt, &e) : 0;

	if (rc == 0 && mine)
		rc = vv_tree_entries_begin(&e);
	rc = vv_command_ranks_agree(job->ranks, rc);
	if (rc == 0) {
		rc = vv_unpack_run(u, job->pool, opt, r);
		vv_err_save(rc, &error);
		(void)vv_command_ranks_agree(job->ranks, 0);
		rc = mine ? vv_tree_entries_end(&e, r) : 0;
		rc = error.code ? vv_err_restore(&error) : rc;
	}
	vv_tree_entries_fini(&e);
	return rc;
}

/* Writes the files of an epoch; after a signal the process dies, and no file is half written. */
static int write_files(struct vv_verb_context *job, const struct vv_unpack *u, struct vv_unpack_options opt, struct vv_unpack_report *r)
{
	atomic_bool stop = false;
	struct vv_bar bar;
	int rc;

	vv_bar_init(&bar, opt.test ? "test" : "unpack", job->args->quiet || opt.share);
	opt.progress = bar.progress;
	opt.stop = &stop;
	vv_interrupt_set_stop(&stop);
	rc = write_all(job, u, &opt, r);
	vv_interrupt_set_stop(NULL);
	vv_bar_fini(&bar);
	vv_interrupt_die();
	return rc;
}

/* Files are missing because the epoch is gone. */
static bool was_dropped(const struct vv_verb_context *job, const struct vv_unpack *u, const struct vv_unpack_report *r)
{
	if (job->ranks || !(r->n_missing || r->n_lost) || !vv_catalog_is_dropped(u->lineage, u->epoch))
		return false;
	vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' was dropped by its writer while it was read; %" PRIu64 " of its files are unpacked", u->epoch, u->lineage->name,
		   r->files);
	return true;
}

static int unpack(struct vv_verb_context *job, const struct vv_unpack *u, const struct names *s)
{
	struct vv_unpack_options opt = options_of(job, s, folder_of(job));
	double start = vv_clock_s(), seconds;
	struct vv_unpack_report r = { 0 };
	uint64_t sum[SUMS];
	int rc = vv_command_ranks_agree(job->ranks, vv_unpack_check(u, &opt));

	if (rc)
		return rc;
	rc = write_files(job, u, opt, &r);
	job->begun = r.files && !opt.test && !opt.force;
	job->replaceable = r.files && !opt.test && opt.force;
	if (was_dropped(job, u, &r)) {
		vv_unpack_report_fini(&r);
		return VV_ENOENT;
	}
	if (rc == 0 || r.n_missing || r.n_lost || job->ranks) {
		seconds = vv_clock_s() - start;
		rc = report(job, "", u, &r, seconds, rc, sum);
		print_done(job, "", sum, seconds);
	}
	vv_unpack_report_fini(&r);
	return rc;
}

/* M readers share the files of one list, so all must have read the same list. Compares a number
 * derived from the list. */
static int agree_on(const struct vv_verb_context *job, const struct vv_digest_stream *known, int rc)
{
	uint64_t number = vv_digest_stream_check(known) >> 32, sum = number;

	vv_command_ranks_sum(job->ranks, &sum, 1);
	rc = vv_command_ranks_agree(job->ranks, rc);
	if (rc == 0 && job->ranks && sum != number * job->ranks->size)
		rc = vv_err_set(VV_EIO, "rank %" PRIu32 " cannot read the same epochs and files as the others; is the store the same everywhere, and at rest?",
				job->ranks->rank);
	return vv_command_ranks_agree(job->ranks, rc);
}

/* Adds the identity of an epoch, and the name, length and rank of each of its files. */
static void add_known(struct vv_digest_stream *known, const struct vv_unpack *u)
{
	vv_digest_stream_add(known, &u->epoch, sizeof(u->epoch));
	for (size_t i = 0; i < u->n_ranks; i++)
		vv_digest_stream_add(known, &u->rank[i].lost, sizeof(u->rank[i].lost));
	for (size_t i = 0; i < u->n_files; i++) {
		struct vv_unpack_file f = vv_unpack_at(u, i);

		vv_digest_stream_add(known, f.file->name, strlen(f.file->name) + 1);
		vv_digest_stream_add(known, &f.region->shape.len, sizeof(f.region->shape.len));
		vv_digest_stream_add(known, &f.rank, sizeof(f.rank));
	}
}

static int unpack_one(struct vv_verb_context *job, const struct vv_lineage *lin, struct vv_spec *spec, const struct names *s)
{
	struct vv_digest_stream known;
	struct vv_unpack u = { 0 };
	uint64_t epoch = 0;
	int rc = vv_verb_context_epoch(job, lin, spec, &epoch);

	if (rc == 0)
		rc = vv_unpack_open_rest(lin, epoch, job->pool, &u);
	vv_digest_stream_init(&known);
	add_known(&known, &u);
	rc = agree_on(job, &known, rc);
	if (rc == 0) {
		vv_json_number(&job->json, "epoch", epoch);
		rc = vv_args_value(job->args, "list") ? list(job, &u, s) : unpack(job, &u, s);
	}
	vv_unpack_close(&u);
	return rc;
}

/* ---- all epochs ------------------------------------------------------------------------------ */

struct cmd_unpack_series {
	struct vv_unpack *u; /* of the epochs that can be read */
	char **folder;       /* of each */
	size_t n;
	uint64_t sum[2];     /* files and bytes that are unpacked */
	int status;          /* the exit status that is due */
};

static void series_fini(struct cmd_unpack_series *e)
{
	for (size_t i = 0; i < e->n; i++) {
		vv_unpack_close(&e->u[i]);
		vv_mem_free(e->folder[i]);
	}
	vv_mem_free(e->u);
	vv_mem_free(e->folder);
}

static void report_lost(struct vv_verb_context *job, uint64_t epoch, int rc)
{
	struct vv_json *j = &job->json;

	vv_json_object(j, NULL);
	vv_json_number(j, "epoch", epoch);
	vv_json_error(j, rc);
	vv_json_end(j);
	if (vv_verb_context_is_first(job) && !job->args->json)
		fprintf(stderr, "varve: epoch %" PRIu64 " could not be %s: %s\n", epoch, is_test(job) ? "read" : "unpacked", vv_err_last());
}

/* Opens all epochs, which stay open until all are unpacked, because nothing is written before all
 * were checked. A damaged or unreachable epoch does not affect the others. */
static int series_open(struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_spec *spec, struct cmd_unpack_series *e)
{
	bool apart = vv_args_value(job->args, "by-epoch");
	struct vv_listing l = { 0 };
	int rc = vv_catalog_list(lin, 0, &l);

	e->u = rc ? NULL : vv_mem_new(l.n_epochs + 1, sizeof(*e->u));
	e->folder = e->u ? vv_mem_new(l.n_epochs + 1, sizeof(*e->folder)) : NULL;
	if (rc == 0 && !e->folder)
		rc = VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < l.n_epochs; i++) {
		if (spec->first && (l.epoch[i] < spec->first || l.epoch[i] > spec->last))
			continue;
		rc = vv_unpack_open_rest(lin, l.epoch[i], job->pool, &e->u[e->n]);
		if (vv_unpack_is_of_one_rank(rc) && !spec->first && vv_catalog_is_dropped(lin, l.epoch[i])) {
			rc = 0; /* dropped since it was listed */
		} else if (vv_unpack_is_of_one_rank(rc)) {
			report_lost(job, l.epoch[i], rc);
			e->status = vv_verb_context_status(rc) > e->status ? vv_verb_context_status(rc) : e->status;
			rc = 0;
		} else if (rc == 0) {
			e->folder[e->n] = apart ? vv_mem_printf("%s/%" PRIu64, folder_of(job), l.epoch[i]) : vv_mem_strdup(folder_of(job));
			rc = e->folder[e->n++] ? 0 : VV_ENOMEM;
		}
	}
	if (rc == 0 && e->n == 0 && !e->status && !spec->first)
		rc = vv_verb_context_list_again(job, lin);
	if (rc == 0 && e->n == 0 && !e->status)
		rc = vv_err_set(VV_ENOENT, "lineage '%s' has no %sepoch", lin->name, spec->first ? "such " : "");
	vv_catalog_listing_fini(&l);
	return rc;
}

static int check_name(const struct cmd_unpack_series *e, const struct names *s, size_t k, const char *name, struct vv_map *seen)
{
	size_t other = is_asked(s, name) ? vv_map_get(seen, name) : k;

	if (other == VV_MAP_NONE)
		return vv_map_put(seen, name, k);
	if (other == k)
		return 0;
	return vv_err_set(VV_EINVAL, "epochs %" PRIu64 " and %" PRIu64 " both have '%s': --by-epoch gives each a folder of its own", e->u[other].epoch,
			  e->u[k].epoch, name);
}

/* Would two epochs write the same file or link? */
static int check_names(const struct cmd_unpack_series *e, const struct names *s)
{
	struct vv_map seen = { 0 };
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < e->n; k++) {
		const struct vv_unpack *u = &e->u[k];

		for (size_t i = 0; rc == 0 && i < u->n_files; i++)
			rc = check_name(e, s, k, vv_unpack_at(u, i).file->name, &seen);
		for (size_t r = 0; r < u->n_ranks; r++)
			for (size_t i = 0; rc == 0 && i < u->rank[r].manifest.n_entries; i++)
				if (u->rank[r].manifest.entry[i].type == VV_MANIFEST_LINK)
					rc = check_name(e, s, k, u->rank[r].manifest.entry[i].name, &seen);
	}
	vv_map_fini(&seen);
	return rc;
}

static int series_check(const struct vv_verb_context *job, const struct cmd_unpack_series *e, const struct names *s)
{
	int rc = vv_args_value(job->args, "by-epoch") || is_test(job) ? 0 : check_names(e, s);

	for (size_t k = 0; rc == 0 && k < e->n; k++) {
		struct vv_unpack_options opt = options_of(job, s, e->folder[k]);

		rc = vv_unpack_check(&e->u[k], &opt);
	}
	return rc;
}

/* A lack of space or memory would affect the following epochs, too, so it ends the series. A fault
 * of one epoch does not. */
static int unpack_next(struct vv_verb_context *job, struct cmd_unpack_series *e, size_t k, const struct names *s)
{
	struct vv_unpack_report r = { 0 };
	double start = vv_clock_s();
	int rc = write_files(job, &e->u[k], options_of(job, s, e->folder[k]), &r), status;
	uint64_t sum[SUMS];
	char of[48];

	if (was_dropped(job, &e->u[k], &r)) {
		report_lost(job, e->u[k].epoch, VV_ENOENT);
		e->status = vv_verb_context_status(VV_ENOENT);
		vv_unpack_report_fini(&r);
		return 0;
	}
	snprintf(of, sizeof(of), "epoch %" PRIu64 ": ", e->u[k].epoch);
	vv_json_object(&job->json, NULL);
	vv_json_number(&job->json, "epoch", e->u[k].epoch);
	status = report(job, of, &e->u[k], &r, vv_clock_s() - start, rc, sum);
	vv_json_end(&job->json);
	e->status = status > e->status ? status : e->status;
	e->sum[0] += sum[0];
	e->sum[1] += sum[1];
	vv_unpack_report_fini(&r);
	rc = vv_command_ranks_agree(job->ranks, rc);
	return vv_unpack_is_of_one_rank(rc) ? 0 : rc;
}

/* Reports the epochs that were not begun, file by file. */
static void report_rest(struct vv_verb_context *job, const struct cmd_unpack_series *e, size_t k, const struct names *s)
{
	struct vv_json *j = &job->json;
	const struct vv_unpack *u = &e->u[k];

	vv_json_object(j, NULL);
	vv_json_number(j, "epoch", u->epoch);
	vv_json_number(j, "files", 0);
	vv_json_array(j, "missing");
	for (size_t i = 0; i < u->n_files; i++) {
		const char *name = vv_unpack_at(u, i).file->name;

		if (!is_asked(s, name))
			continue;
		vv_json_text(j, NULL, name);
		if (vv_verb_context_is_first(job) && !job->args->json)
			fprintf(stderr, "varve: missing: %s of epoch %zu, which was not begun\n", vv_text_safe(name).s, (size_t)u->epoch);
	}
	vv_json_end(j);
	put_lost(j, u);
	vv_json_end(j);
	if (u->n_lost && vv_verb_context_is_first(job) && !job->args->json)
		print_lost(u);
}

static int unpack_each(struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_spec *spec, const struct names *s)
{
	struct cmd_unpack_series e = { 0 };
	double start = vv_clock_s();
	struct vv_digest_stream known;
	char of[48];
	size_t k = 0;
	int rc, going;

	vv_json_array(&job->json, "epochs");
	rc = series_open(job, lin, spec, &e);
	vv_digest_stream_init(&known);
	for (size_t i = 0; i < e.n; i++)
		add_known(&known, &e.u[i]);
	rc = agree_on(job, &known, rc);
	if (rc == 0)
		rc = vv_command_ranks_agree(job->ranks, series_check(job, &e, s));
	for (going = rc; going == 0 && k < e.n; k++)
		going = unpack_next(job, &e, k, s);
	for (size_t i = k; rc == 0 && i < e.n; i++)
		report_rest(job, &e, i, s);
	vv_json_end(&job->json);
	snprintf(of, sizeof(of), " of %zu epoch%s", k, k == 1 ? "" : "s");
	print_done(job, of, e.sum, vv_clock_s() - start);
	series_fini(&e);
	return rc ? rc : e.status;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static bool is_series(const struct vv_args *args)
{
	return vv_args_value(args, "each") || vv_args_value(args, "by-epoch");
}

static int run(struct vv_verb_context *job)
{
	bool listing = vv_args_value(job->args, "list"), each = is_series(job->args);
	struct vv_spec spec;
	struct vv_lineage lin;
	struct names s = { 0 };
	int rc = vv_spec_parse(job->args->operand[1], each ? VV_SPEC_RANGE : VV_SPEC_EPOCH, &spec);

	if (rc == 0 && each && listing)
		rc = vv_err_set(VV_EINVAL, "unpack: --list is of one epoch");
	if (rc == 0 && is_test(job) && listing)
		rc = vv_err_set(VV_EINVAL, "unpack: --list reads no files, and --test does nothing else");
	if (rc == 0)
		rc = names_init(&s, job->args);
	if (rc == 0)
		rc = vv_verb_context_take_option(job, "threads", "threads");
	if (rc == 0 && !listing && !is_test(job))
		rc = vv_exclude_store_refuse(job->args->operand[0], folder_of(job));
	if (rc == 0)
		rc = vv_verb_context_open_lineage(job, &spec, &lin);
	if (rc == 0)
		rc = vv_verb_context_start_pool(job);
	if (rc == 0 && each)
		rc = vv_spec_look_up(&spec, &lin);
	rc = vv_command_ranks_agree(job->ranks, rc);
	vv_verb_context_allow_files(); /* the more files are open at the same time, the fewer blocks are read twice */
	if (rc == 0)
		rc = each ? unpack_each(job, &lin, &spec, &s) : unpack_one(job, &lin, &spec, &s);
	names_fini(&s);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "directory", 'C', "DIR", "target folder, created if necessary (.)" },
	{ "force", 0, NULL, "replace existing files" },
	{ "threads", 'j', "N", "number of threads" },
	{ "each", 0, NULL, "all epochs, or @FIRST..LAST, oldest first, if\n                               they have no file name in common" },
	{ "by-epoch", 0, NULL, "the same, each epoch in a folder of its number" },
	{ "test", 0, NULL, "read, decompress and check only; write nothing" },
	{ "list", 0, NULL, "only list mode, size, time and format of files" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_unpack = {
	.name = "unpack",
	.operands = "STORE LINEAGE[@EPOCH] [FILE...]",
	.min = 2,
	.max = SIZE_MAX,
	.brief = "restores packed files",
	.help = "Restores all files of an epoch, or the given ones, or all below a given folder.\n"
		"The default is the newest epoch. Files are restored byte for byte, with mode,\n"
		"time of modification and attributes. Links are restored as links, and none is\n"
		"followed. If one of the files already exists, nothing is written, unless --force\n"
		"is given. Each file is written completely or not at all. Damaged files are\n"
		"reported, and the others are unpacked (exit 1).\n"
		"--each and --by-epoch unpack all epochs of the lineage. --test writes nothing\n"
		"and reports the same damage.",
	.option = options,
	.many = true,
	.run = run,
};
