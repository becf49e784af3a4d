#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/bar.h"
#include "cli/filelist.h"
#include "cli/interrupt.h"
#include "cli/job.h"
#include "cli/ownstore.h"
#include "cli/text.h"
#include "engine/unpack.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

struct names { /* the files asked for, as they are called in the epoch */
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

/* ---- the list ----------------------------------------------------------------------------------------------------- */

static bool is_asked(const struct names *s, const char *name)
{
	bool asked = s->n == 0;

	for (size_t i = 0; !asked && i < s->n; i++) {
		size_t n = strlen(s->v[i]);

		asked = strncmp(name, s->v[i], n) == 0 && (!name[n] || name[n] == '/');
	}
	return asked;
}

static uint64_t wall_ns(const struct vv_manifest_file *f)
{
	return f->mtime_s < 0 ? 0 : (uint64_t)f->mtime_s * 1000000000 + f->mtime_ns;
}

static void put_file(struct vv_json *j, const struct vv_unpack_file *f)
{
	char mode[8];

	snprintf(mode, sizeof(mode), "%04" PRIo32, f->file->mode);
	vv_json_object(j, NULL);
	vv_json_text(j, "name", f->file->name);
	vv_json_number(j, "bytes", f->region->shape.len);
	vv_json_text(j, "mode", mode);
	vv_json_signed(j, "mtime_s", f->file->mtime_s);
	vv_json_number(j, "mtime_ns", f->file->mtime_ns);
	vv_json_text(j, "format", f->file->format);
	vv_json_number(j, "rank", f->rank);
	vv_json_end(j);
}

static int list(struct vv_job *job, const struct vv_unpack *u, const struct names *s)
{
	static const char *const columns[] = { ">MODE", ">BYTES", "<MODIFIED", "<FORMAT", "<FILE", NULL };
	struct vv_text_table t;
	int rc = 0;

	vv_text_table_init(&t, columns, "");
	vv_json_array(&job->json, "files");
	for (size_t i = 0; i < u->n_files; i++) {
		struct vv_unpack_file f = vv_unpack_at(u, i);

		if (!is_asked(s, f.file->name))
			continue;
		if (job->args->json) {
			put_file(&job->json, &f);
			continue;
		}
		vv_text_cell(&t, "%04" PRIo32, f.file->mode);
		vv_text_cell(&t, "%" PRIu64, f.region->shape.len);
		vv_text_cell(&t, "%s", vv_text_time(wall_ns(f.file)).s);
		vv_text_cell(&t, "%s", vv_text_safe(f.file->format).s);
		vv_text_cell(&t, "%s", vv_text_safe(f.file->name).s);
	}
	vv_json_end(&job->json);
	if (!job->args->json)
		rc = vv_text_table_print(&t, &job->out.buf);
	vv_text_table_fini(&t);
	return rc;
}

/* ---- unpacking ---------------------------------------------------------------------------------------------------- */

static void say_missing(const struct vv_unpack_report *r)
{
	for (size_t i = 0; i < r->n_missing; i++)
		fprintf(stderr, "varve: missing: %s\n", vv_text_safe(r->missing[i]).s);
}

static void put_report(struct vv_job *job, const struct vv_unpack_report *r, const uint64_t *sum, double seconds, int rc)
{
	struct vv_json *j = &job->json;

	vv_json_number(j, "files", sum[0]);
	vv_json_number(j, "bytes", sum[1]);
	vv_json_real(j, "seconds", seconds);
	vv_json_number(j, "n_missing", sum[2]);
	vv_json_array(j, "missing"); /* of several ranks, each says its own on the standard error */
	for (size_t i = 0; i < r->n_missing; i++)
		vv_json_text(j, NULL, r->missing[i]);
	vv_json_end(j);
	if (rc) {
		vv_json_text(j, "error", vv_err_last());
		vv_json_signed(j, "code", rc);
		vv_json_text(j, "meaning", vv_err_name(rc));
	}
}

/* What is missing is named, and the exit status says why: 1 where it is damaged. */
static int report(struct vv_job *job, const struct vv_unpack_report *r, double seconds, int rc)
{
	uint64_t sum[3] = { r->files, r->bytes, r->n_missing };
	bool alone = !job->world || job->world->rank == 0;
	int status = rc == 0 ? 0 : rc == VV_EDAMAGED ? 1 : 2;

	vv_world_sum(job->world, sum, 3);
	if (job->args->json)
		put_report(job, r, sum, seconds, rc);
	else if (alone && !job->args->quiet && sum[0])
		vv_out_printf(&job->out, "%" PRIu64 " file%s, %s in %s\n", sum[0], sum[0] == 1 ? "" : "s", vv_text_size(sum[1]).s,
			      vv_text_duration(seconds).s);
	if (rc && (!job->args->json || !alone)) {
		vv_out_flush(&job->out);
		fprintf(stderr, "varve: %zu file%s could not be unpacked: %s\n", r->n_missing, r->n_missing == 1 ? "" : "s", vv_err_last());
		say_missing(r);
	}
	return status;
}

/* The more files are open together, the fewer blocks are read twice. */
static void allow_files(void)
{
	enum { ENOUGH = 40000 };
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= ENOUGH)
		return;
	r.rlim_cur = r.rlim_max < ENOUGH ? r.rlim_max : ENOUGH;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

static int unpack(struct vv_job *job, const struct vv_unpack *u, const struct names *s)
{
	const char *folder = vv_args_value(job->args, "directory");
	double start = vv_clock_s();
	struct vv_unpack_report r = { 0 };
	atomic_bool stop = false;
	struct vv_bar bar;
	struct vv_unpack_options opt = {
		.folder = folder ? folder : ".",
		.force = vv_args_value(job->args, "force"),
		.only = (const char *const *)s->v,
		.n_only = s->n,
		.share = job->world ? job->world->rank : 0,
		.shares = job->world ? job->world->size : 1,
		.stop = &stop,
	};
	int rc = vv_ownstore_refuse(job->args->operand[0], opt.folder);

	if (rc == 0)
		rc = vv_unpack_check(u, &opt);
	rc = vv_world_agree(job->world, rc);
	if (rc)
		return rc;
	vv_bar_init(&bar, "unpack", job->args->quiet || opt.share);
	opt.progress = bar.progress;
	vv_interrupt_gently(&stop);
	allow_files();
	rc = vv_unpack_run(u, job->pool, &opt, &r);
	vv_interrupt_gently(NULL);
	vv_bar_fini(&bar);
	vv_interrupt_die();
	if (rc == 0 || r.n_missing || job->world)
		rc = report(job, &r, vv_clock_s() - start, rc);
	vv_unpack_report_fini(&r);
	return rc;
}

static int run(struct vv_job *job)
{
	const char *threads = vv_args_value(job->args, "threads");
	struct vv_spec spec;
	struct vv_lineage lin;
	struct vv_unpack u = { 0 };
	struct names s = { 0 };
	uint64_t epoch = 0;
	int rc = vv_spec_parse(job->args->operand[1], VV_SPEC_EPOCH, &spec);

	if (rc == 0)
		rc = names_init(&s, job->args);
	if (rc == 0 && threads)
		rc = vv_job_set_option(job, "threads", threads);
	if (rc == 0)
		rc = vv_job_open_store(job);
	if (rc == 0)
		rc = vv_catalog_open(job->store, spec.lineage, false, &lin);
	if (rc == 0)
		rc = vv_job_epoch(&lin, &spec, &epoch);
	if (rc == 0)
		rc = vv_job_start_pool(job);
	if (rc == 0)
		rc = vv_unpack_open(&lin, epoch, job->pool, &u);
	rc = vv_world_agree(job->world, rc);
	if (rc == 0) {
		vv_json_number(&job->json, "epoch", epoch);
		rc = vv_args_value(job->args, "list") ? list(job, &u, &s) : unpack(job, &u, &s);
	}
	vv_unpack_close(&u);
	names_fini(&s);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "directory", 'C', "DIR", "unpack below this folder, which is made if it is not there (not given: the current one)" },
	{ "force", 0, NULL, "replace files that are there" },
	{ "threads", 'j', "N", "on so many threads" },
	{ "list", 0, NULL, "only say what there is: mode, size, time and format of each file" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_unpack = {
	.name = "unpack",
	.operands = "STORE LINEAGE[@EPOCH] [FILE...]",
	.min = 2,
	.max = SIZE_MAX,
	.brief = "gives back files that were packed",
	.help = "Unpacks all files of an epoch (the newest if none is named), or those named, or all below a folder that is named: byte\n"
		"for byte, with mode and time of modification. Nothing is written if one of them is there already, unless --force is\n"
		"given. Each file appears whole or not at all. Files that are damaged are named, and the others unpacked (exit 1).",
	.option = options,
	.many = true,
	.run = run,
};
