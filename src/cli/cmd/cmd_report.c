#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/base/find_lineages.h"
#include "cli/base/outfile.h"
#include "cli/pack/exclude_store.h"
#include "cli/report/report.h"
#include "cli/base/text.h"
#include "cli/report/report_json.h"
#include "cli/report/report_lineage.h"
#include "cli/report/report_page.h"
#include "cli/report/report_png.h"
#include "vv_config.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_OF_ALL = 4000, ROWS_AT_LEAST = 40 };

/* ---- the data -------------------------------------------------------------------------------- */

/* Several lineages share the limits of a single one. */
static struct vv_report_limits share(uint64_t newest, size_t lineages)
{
	struct vv_report_limits l = { .newest = newest, .rows = ROWS_OF_ALL / lineages, .heads = VV_REPORT_HEADS / lineages };

	l.rows = l.rows > VV_REPORT_EPOCHS ? VV_REPORT_EPOCHS : l.rows < ROWS_AT_LEAST ? ROWS_AT_LEAST : l.rows;
	return l;
}

/* An unreadable lineage among several is reported, and the others are still shown. */
static int put_lineage(struct vv_verb_context *job, struct vv_json *j, const char *name, const struct vv_report_limits *limits, bool alone)
{
	struct vv_report_lineage *r = vv_mem_new(1, sizeof(*r));
	int rc = r ? vv_report_lineage_load(r, job, name, limits) : VV_ENOMEM;

	if (rc == 0) {
		vv_report_json_put(r, j);
	} else if (!alone && rc != VV_ENOMEM) {
		vv_json_object(j, NULL);
		vv_json_text(j, "lineage", name);
		vv_json_text(j, "error", vv_err_last());
		vv_json_end(j);
		rc = 0;
	}
	if (r)
		vv_report_lineage_fini(r);
	vv_mem_free(r);
	return rc;
}

static int put_store(struct vv_verb_context *job, struct vv_json *j, uint64_t newest)
{
	struct vv_names names = { 0 };
	struct vv_report_limits limits;
	int rc = vv_find_lineages(job->store, &names);
	size_t n = names.n < VV_REPORT_LINEAGES ? names.n : VV_REPORT_LINEAGES;

	limits = share(newest, n ? n : 1);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = put_lineage(job, j, names.v[i].name, &limits, false);
	vv_json_end(j);
	vv_json_number(j, "lineages_total", names.n);
	vv_names_fini(&names);
	return rc;
}

static int gather(struct vv_verb_context *job, struct vv_json *j, const struct vv_spec *spec, uint64_t newest)
{
	struct vv_report_limits limits = share(newest, 1);
	uint64_t now = vv_clock_wall_ns();
	int rc;

	vv_json_text(j, "varve", VV_VERSION);
	vv_json_text(j, "made", vv_text_iso(now).s);
	vv_json_number(j, "made_ns", now);
	vv_json_text(j, "store", job->store->url);
	vv_json_array(j, "lineages");
	if (!spec)
		return put_store(job, j, newest);
	rc = put_lineage(job, j, spec->lineage, &limits, true);
	vv_json_end(j);
	vv_json_number(j, "lineages_total", 1);
	return rc;
}

/* ---- the output ------------------------------------------------------------------------------ */

static int write_page(const struct vv_buf *page, const char *path)
{
	struct vv_outfile f;
	size_t done = 0;
	int rc = vv_outfile_open(&f, path);

	if (rc)
		return rc;
	while (rc == 0 && done < page->n) {
		ssize_t n = write(f.fd, page->p + done, page->n - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			rc = vv_err_sys(errno, "cannot write '%s'", path);
	}
	if (rc == 0)
		return vv_outfile_commit(&f);
	vv_outfile_abort(&f);
	return rc;
}

static int make_page(struct vv_verb_context *job, const struct vv_spec *spec, uint64_t newest, struct vv_buf *page)
{
	struct vv_json j = { 0 };
	int rc;

	vv_json_object(&j, NULL);
	rc = gather(job, &j, spec, newest);
	vv_json_end(&j);
	if (rc == 0)
		rc = vv_buf_check(&j.buf);
	if (rc == 0)
		rc = vv_report_page_make(&j.buf, page);
	vv_json_fini(&j);
	return rc;
}

static int deliver(struct vv_verb_context *job, const struct vv_buf *page, const char *output, const char *png)
{
	size_t n = 0;
	int rc = 0;

	if (output && strcmp(output, "-") == 0) {
		vv_buf_add(&job->out.buf, page->p, page->n);
	} else if (output) {
		rc = write_page(page, output);
		if (rc == 0 && !job->args->quiet)
			vv_out_printf(&job->out, "%s: %s\n", vv_text_safe(output).s, vv_text_size(page->n).s);
	}
	if (rc == 0 && png)
		rc = vv_report_png_write(page, png, &n);
	if (rc == 0 && png && !job->args->quiet)
		vv_out_printf(&job->out, "%s: %zu pictures\n", vv_text_safe(png).s, n);
	return rc;
}

static int check_output(const char *store, const char *output, const char *png)
{
	int rc = output && strcmp(output, "-") != 0 ? vv_exclude_store_refuse(store, output) : 0;

	if (rc == 0 && !output && !png)
		rc = vv_err_set(VV_EINVAL, "report: where to? -o FILE.html, --png FOLDER, or --json for the data alone");
	return rc == 0 && png ? vv_exclude_store_refuse(store, png) : rc;
}

static int run(struct vv_verb_context *job)
{
	const char *output = vv_args_value(job->args, "output"), *png = vv_args_value(job->args, "png");
	struct vv_buf page = { 0 };
	bool one = job->args->n_operands == 2;
	struct vv_spec spec;
	uint64_t newest = 0;
	int rc = one ? vv_spec_parse(job->args->operand[1], 0, &spec) : 0;

	if (rc == 0)
		rc = vv_args_number(job->args, "newest", 1, VV_MAX_EPOCH, &newest);
	if (rc == 0 && vv_args_value(job->args, "all"))
		newest = VV_MAX_EPOCH;
	if (rc == 0 && !job->args->json)
		rc = vv_report_page_check();
	if (rc == 0 && !job->args->json)
		rc = check_output(job->args->operand[0], output, png);
	if (rc == 0 && !job->args->json && png && !one)
		rc = vv_err_set(VV_EINVAL, "report: --png draws one lineage: say which");
	if (rc == 0)
		rc = vv_verb_context_open_store(job);
	if (rc == 0)
		rc = vv_verb_context_start_pool(job);
	if (rc == 0 && job->args->json)
		return gather(job, &job->json, one ? &spec : NULL, newest);
	if (rc == 0)
		rc = make_page(job, one ? &spec : NULL, newest, &page);
	if (rc == 0)
		rc = deliver(job, &page, output, png);
	vv_buf_fini(&page);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "output", 'o', "FILE", "file of the page; - is the standard output" },
	{ "png", 0, "FOLDER", "write each chart as a picture (needs chromium)" },
	{ "newest", 0, "N", "the newest N epochs (all, up to 65536 layers)" },
	{ "newest", 'n', "N", NULL },
	{ "all", 0, NULL, "all epochs, without this limit" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_report = {
	.name = "report",
	.operands = "STORE [LINEAGE]",
	.min = 1,
	.max = 2,
	.brief = "writes an HTML page about a store: changes, cost, restart",
	.help = "Writes one HTML page that any browser opens from a file, without a network. It\n"
		"shows the bytes of each epoch (in memory, new, duplicate, stored), the time that\n"
		"the program was blocked, the changes of each region, and the balance of the\n"
		"ranks. It also shows the bytes that a restart would read and gc would free.\n"
		"Nothing is locked or changed, and the program may be running. --json prints the\n"
		"data without the page.",
	.option = options,
	.run = run,
};
