#include "cli/packing.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/bar.h"
#include "cli/purge.h"
#include "cli/show_files.h"
#include "cli/text.h"
#include "engine/session.h"
#include <inttypes.h>

static int say(struct vv_out *o, const struct vv_pack_report *r, double seconds)
{
	static const char *const columns[] = { ">EPOCH", ">FILES", ">BYTES", ">NEW", ">STORED", ">LAYERS", ">RATIO", ">MB/S", NULL };
	struct vv_text_table t;
	int rc;

	vv_text_table_init(&t, columns, "");
	vv_text_cell(&t, "%" PRIu64, r->epoch);
	vv_text_cell(&t, "%" PRIu64, r->files);
	vv_text_cell(&t, "%s", vv_text_size(r->raw).s);
	vv_text_cell(&t, "%s", vv_text_size(r->fresh).s);
	vv_text_cell(&t, "%s", vv_text_size(r->stored).s);
	vv_text_cell(&t, "%s", vv_text_size(r->layer).s);
	vv_text_cell(&t, "%s", vv_text_ratio(r->raw, r->layer).s);
	vv_text_cell(&t, "%.0f", seconds > 0 ? (double)r->raw / 1e6 / seconds : 0);
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
	vv_json_real(j, "seconds", seconds);
	vv_json_real(j, "bytes_per_second", seconds > 0 ? (double)r->raw / seconds : 0);
	vv_show_files_put_kinds(j, &r->manifest);
}

int vv_packing_tell(struct vv_job *job, const struct vv_pack_report *r, double seconds)
{
	if (job->world && job->world->rank)
		return 0;
	if (job->args->json) {
		put(&job->json, r, seconds);
		return 0;
	}
	return job->args->quiet ? 0 : say(&job->out, r, seconds);
}

static int pack(struct vv_job *job, struct varve *v, const struct vv_filelist *l, const struct vv_pack_options *opt, bool delete)
{
	struct vv_pack_options with = *opt;
	struct vv_pack_report r = { 0 };
	double start = vv_clock_s(), seconds;
	struct vv_bar bar;
	int rc;

	vv_bar_init(&bar, "pack", job->args->quiet || (job->world && job->world->rank));
	with.progress = bar.progress;
	rc = vv_pack_run(v, l->file, l->n, &with, &r);
	vv_bar_fini(&bar);
	seconds = vv_clock_s() - start;
	vv_json_number(&job->json, "skipped", l->skipped);
	if (rc == 0)
		rc = vv_packing_tell(job, &r, seconds);
	if (rc == 0 && delete)
		rc = vv_purge_run(job, v, l, r.epoch, &r.manifest);
	vv_pack_report_fini(&r);
	return rc;
}

int vv_packing_run(struct vv_job *job, const char *lineage, const struct vv_filelist *l, const struct vv_pack_options *opt, bool delete)
{
	struct vv_err_state error;
	struct varve *v = NULL;
	int rc = vv_job_open_session(job, job->args->operand[0], lineage, &v), closed;

	if (rc)
		return rc;
	rc = pack(job, v, l, opt, delete);
	vv_err_save(rc, &error);
	closed = varve_close(v);
	return rc < 0 ? vv_err_restore(&error) : closed < 0 ? closed : rc;
}
