#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/base/find_lineages.h"
#include "cli/base/show_labels.h"
#include "cli/base/verb_context.h"
#include "cli/base/text.h"
#include "engine/upkeep/gc.h"
#include <inttypes.h>
#include <string.h>

enum { NEWEST = 20, TRIES = 50 };

static void put_time(struct vv_json *j, uint64_t ns)
{
	vv_json_text(j, "time", vv_text_iso(ns).s);
	vv_json_number(j, "time_ns", ns);
}

/* ---- the lineages of a store ----------------------------------------------------------------- */

static void put_unfinished(struct vv_json *j, const struct vv_gc_unfinished *u)
{
	vv_json_number(j, "unfinished", u->n);
	vv_json_number(j, "bytes_unfinished", u->bytes);
}

static void print_unfinished(struct vv_out *o, const char *lineage, const struct vv_gc_unfinished *u)
{
	if (u->n)
		vv_out_printf(o, "lineage '%s' has %zu unfinished file%s of interrupted writers, %s ('varve gc' removes %s)\n", vv_text_safe(lineage).s, u->n,
			      u->n == 1 ? "" : "s", vv_text_size(u->bytes).s, u->n == 1 ? "it" : "them");
}

/* The newest epoch of a lineage, and the unfinished work after it. *damaged: the epoch exists but
 * cannot be read, or this user may not read it. */
static int newest(struct vv_store *store, const char *name, struct vv_commit *out, struct vv_gc_unfinished *left, bool *damaged)
{
	struct vv_lineage lin;
	uint64_t epoch = 0;
	int rc = vv_catalog_open(store, name, false, &lin);

	/* the writer may drop it in the meantime */
	for (int i = 0; i < TRIES && (rc == 0 || (i && rc == VV_ENOENT)); i++) {
		rc = vv_catalog_newest(&lin, UINT64_MAX, &epoch);
		if (rc == 0 && epoch)
			rc = vv_catalog_commit(&lin, epoch, out);
		if (rc == 0)
			break;
	}
	if (rc == 0)
		rc = vv_gc_find_unfinished(&lin, epoch, left);
	*damaged = rc == VV_EDAMAGED || rc == VV_EDENIED;
	return rc == VV_EDENIED ? 2 : *damaged ? 1 : rc;
}

static void put_lineage(struct vv_json *j, const char *name, const struct vv_commit *c, const struct vv_gc_unfinished *left, uint64_t disk, bool damaged)
{
	vv_json_object(j, NULL);
	vv_json_text(j, "lineage", name);
	if (damaged) {
		vv_json_text(j, "damaged", vv_err_last());
	} else if (!c->epoch) {
		vv_json_text(j, "epoch", NULL);
	} else {
		vv_json_number(j, "epoch", c->epoch);
		put_time(j, c->time_ns);
		vv_json_number(j, "ranks", c->n_ranks);
		vv_json_number(j, "bytes_memory", vv_commit_sum(c).memory);
	}
	vv_json_number(j, "bytes_disk", disk);
	put_unfinished(j, left);
	vv_json_end(j);
}

static void row_lineage(struct vv_text_table *t, const char *name, const struct vv_commit *c, uint64_t disk, bool damaged)
{
	vv_text_cell(t, "%s", vv_text_safe(name).s);
	if (damaged || !c->epoch) {
		vv_text_cell(t, "-");
		vv_text_cell(t, "%s", damaged ? vv_err_last() : "no epoch yet");
		for (int i = 0; i < 3; i++)
			vv_text_cell(t, "%s", "");
		vv_text_cell(t, "%s", damaged ? "" : vv_text_size(disk).s); /* a long message makes no column wider */
		return;
	}
	vv_text_cell(t, "%" PRIu64, c->epoch);
	vv_text_cell(t, "%s", vv_text_time(c->time_ns).s);
	vv_text_cell(t, "%s", vv_text_age(c->time_ns, vv_clock_wall_ns()).s);
	vv_text_cell(t, "%" PRIu32, c->n_ranks);
	vv_text_cell(t, "%s", vv_text_size(vv_commit_sum(c).memory).s);
	vv_text_cell(t, "%s", vv_text_size(disk).s);
}

static int list_lineages(struct vv_verb_context *job)
{
	static const char *const columns[] = { "<LINEAGE", ">NEWEST", "<TIME", ">AGE", ">RANKS", ">MEMORY", ">DISK", NULL };
	struct vv_names names = { 0 };
	struct vv_out after = { 0 };
	struct vv_text_table t;
	int worst = 0;
	uint64_t total = 0;
	int rc = vv_find_lineages(job->store, &names);

	vv_text_table_init(&t, columns, "");
	t.spare = "RANKS;MEMORY";
	t.bare = job->args->quiet;
	vv_json_array(&job->json, "lineages");
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		struct vv_gc_unfinished left = { 0 };
		struct vv_commit c = { 0 };
		bool damaged = false;
		uint64_t disk = 0;

		rc = vv_store_usage(job->store, names.v[i].name, &disk);
		total += disk;
		/* last, because the table shows its error */
		if (rc == 0 || rc == VV_EDENIED)
			rc = newest(job->store, names.v[i].name, &c, &left, &damaged);
		worst = rc > worst ? rc : worst;
		rc = rc > 0 ? 0 : rc;
		if (rc == 0 && job->args->json)
			put_lineage(&job->json, names.v[i].name, &c, &left, disk, damaged);
		else if (rc == 0)
			row_lineage(&t, names.v[i].name, &c, disk, damaged);
		if (rc == 0 && !job->args->json && !job->args->quiet)
			print_unfinished(&after, names.v[i].name, &left);
		vv_commit_fini(&c);
	}
	vv_json_end(&job->json);
	vv_json_number(&job->json, "bytes_disk", total);
	if (rc == 0 && !job->args->json)
		rc = vv_text_table_print(&t, &job->out.buf);
	if (rc == 0 && !job->args->json && !job->args->quiet && names.n > 1)
		vv_out_printf(&job->out, "%zu lineages, %s on disk\n", names.n, vv_text_size(total).s);
	vv_buf_add(&job->out.buf, after.buf.p, after.buf.n);
	vv_buf_fini(&after.buf);
	vv_text_table_fini(&t);
	vv_names_fini(&names);
	return rc ? rc : worst;
}

/* ---- the epochs of a lineage ----------------------------------------------------------------- */

/* Puts an older epoch before the ones in the listing. */
static int prepend(struct vv_listing *l, uint64_t epoch)
{
	uint64_t *p = vv_mem_grow(l->epoch, l->n_epochs + 1, sizeof(*p));

	if (!p)
		return VV_ENOMEM;
	for (size_t i = l->n_epochs++; i > 0; i--)
		p[i] = p[i - 1];
	p[0] = epoch;
	l->epoch = p;
	return 0;
}

/* Collects the newest n epochs: reads the newest folders once, and then descends one by one if
 * numbers are missing. *older: there are more. Older epochs are not accessed. */
static int collect(const struct vv_lineage *lin, uint64_t n, struct vv_listing *l, bool *older)
{
	struct vv_listing labels = { 0 };
	uint64_t epoch = 0;
	size_t listed;
	int rc = vv_catalog_newest(lin, UINT64_MAX, &epoch);

	if (rc == 0 && epoch)
		rc = vv_catalog_list(lin, epoch >= n ? epoch - n + 1 : 0, l);
	listed = l->n_epochs;
	while (rc == 0 && epoch) {
		rc = vv_catalog_newest(lin, l->n_epochs ? l->epoch[0] : epoch + 1, &epoch);
		if (rc == 0 && epoch && l->n_epochs >= n) {
			*older = true;
			break;
		}
		if (rc == 0 && epoch)
			rc = prepend(l, epoch);
	}
	if (rc || l->n_epochs == listed)
		return rc;
	rc = vv_catalog_list(lin, l->epoch[0], &labels);
	vv_mem_free(l->label);
	l->label = labels.label;
	l->n_labels = labels.n_labels;
	labels.label = NULL;
	vv_catalog_listing_fini(&labels);
	return rc;
}

static void put_epoch(struct vv_json *j, uint64_t epoch, const struct vv_commit *c, const struct vv_listing *l, bool damaged)
{
	struct vv_commit_sums s = vv_commit_sum(c);

	vv_json_object(j, NULL);
	vv_json_number(j, "epoch", epoch);
	if (damaged) {
		vv_json_text(j, "damaged", vv_err_last());
	} else {
		vv_json_number(j, "parent", c->parent);
		put_time(j, c->time_ns);
		vv_json_number(j, "ranks", c->n_ranks);
		vv_json_number(j, "bytes_memory", s.memory);
		vv_json_number(j, "bytes_stored", s.stored);
		vv_json_number(j, "bytes_layer", s.file_len);
	}
	vv_show_labels_put(j, l, epoch);
	vv_json_end(j);
}

static void row_epoch(struct vv_text_table *t, uint64_t epoch, const struct vv_commit *c, bool damaged)
{
	struct vv_commit_sums s = vv_commit_sum(c);

	vv_text_cell(t, "%" PRIu64, epoch);
	if (damaged) {
		vv_text_cell(t, "%s", vv_err_last());
		for (int i = 0; i < 6; i++)
			vv_text_cell(t, "%s", "");
		return;
	}
	vv_text_cell(t, "%s", vv_text_time(c->time_ns).s);
	vv_text_cell(t, "%s", vv_text_age(c->time_ns, vv_clock_wall_ns()).s);
	if (c->parent)
		vv_text_cell(t, "%" PRIu64, c->parent);
	else
		vv_text_cell(t, "-");
	vv_text_cell(t, "%" PRIu32, c->n_ranks);
	vv_text_cell(t, "%s", vv_text_size(s.memory).s);
	vv_text_cell(t, "%s", vv_text_size(s.stored).s);
	vv_text_cell(t, "%s", vv_text_size(s.file_len).s);
}

/* Returns 1 if a commit record is damaged. Epochs that have been dropped are removed from the
 * listing. */
static int each_epoch(struct vv_verb_context *job, const struct vv_lineage *lin, struct vv_listing *l,
		      struct vv_text_table *t)
{
	bool any_damage = false;
	size_t n = 0;

	for (size_t i = 0; i < l->n_epochs; i++) {
		struct vv_commit c = { 0 };
		int rc = vv_catalog_commit(lin, l->epoch[i], &c);

		if (rc == VV_ENOENT) /* dropped since it was listed */
			continue;
		if (rc && rc != VV_EDAMAGED)
			return rc;
		any_damage |= rc != 0;
		if (job->args->json)
			put_epoch(&job->json, l->epoch[i], &c, l, rc != 0);
		else
			row_epoch(t, l->epoch[i], &c, rc != 0);
		vv_commit_fini(&c);
		if (!job->args->json && l->n_labels && vv_show_labels_cell(t, l, l->epoch[i]) < 0)
			return VV_ENOMEM;
		l->epoch[n++] = l->epoch[i];
	}
	l->n_epochs = n;
	return any_damage;
}

static int print_epochs(struct vv_verb_context *job, const struct vv_lineage *lin, struct vv_listing *l, bool older)
{
	static const char *const columns[] = { ">EPOCH", "<TIME",   ">AGE",    ">PARENT", ">RANKS",
					       ">MEMORY", ">STORED", ">LAYER", NULL };
	static const char *const labelled[] = { ">EPOCH", "<TIME",   ">AGE",   ">PARENT", ">RANKS",
						">MEMORY", ">STORED", ">LAYER", "<LABELS", NULL };
	struct vv_text_table t;
	int rc, found;

	vv_text_table_init(&t, l->n_labels ? labelled : columns, "");
	t.spare = "PARENT;RANKS;LAYER";
	t.bare = job->args->quiet;
	vv_json_text(&job->json, "lineage", lin->name);
	vv_json_array(&job->json, "epochs");
	found = rc = each_epoch(job, lin, l, &t);
	if (rc >= 0 && l->n_epochs == 0)
		rc = vv_verb_context_list_again(job, lin);
	vv_json_end(&job->json);
	vv_json_bool(&job->json, "older", older);
	if (rc >= 0 && !job->args->json && !job->args->quiet && l->n_epochs == 0)
		vv_out_printf(&job->out, "lineage '%s' has no epoch yet\n", lin->name);
	if (rc >= 0 && !job->args->json && !job->args->quiet && older && l->n_epochs)
		vv_out_printf(&job->out, "... epochs before %" PRIu64 " are not shown (--all shows them)\n", l->epoch[0]);
	if (rc >= 0 && !job->args->json && l->n_epochs)
		rc = vv_text_table_print(&t, &job->out.buf);
	vv_text_table_fini(&t);
	return rc < 0 ? rc : found;
}

static int list_epochs(struct vv_verb_context *job, uint64_t n)
{
	struct vv_lineage lin;
	struct vv_listing l = { 0 };
	struct vv_gc_unfinished left;
	bool older = false;
	const char *at = strchr(job->args->operand[1], '@');
	int rc;

	if (at)
		return vv_err_set(VV_EINVAL, "ls: it lists all epochs of '%.*s'; leave out '%s' ('varve show' shows one epoch)",
				  (int)(at - job->args->operand[1]), job->args->operand[1], at);
	rc = vv_find_lineages_open(job->store, job->args->operand[1], &lin);

	if (rc)
		return rc;
	if (vv_args_value(job->args, "all"))
		rc = vv_catalog_list(&lin, 0, &l);
	else
		rc = collect(&lin, n, &l, &older);
	if (rc == 0)
		rc = vv_gc_find_unfinished(&lin, l.n_epochs ? l.epoch[l.n_epochs - 1] : 0, &left);
	if (rc == 0)
		rc = print_epochs(job, &lin, &l, older);
	vv_catalog_listing_fini(&l);
	if (rc >= 0 && job->args->json)
		put_unfinished(&job->json, &left);
	else if (rc >= 0 && !job->args->quiet)
		print_unfinished(&job->out, lin.name, &left);
	return rc;
}

static int run(struct vv_verb_context *job)
{
	uint64_t n = NEWEST;
	int rc = vv_args_number(job->args, "newest", 1, VV_MAX_EPOCH, &n);

	if (rc == 0)
		rc = vv_verb_context_open_store(job);
	if (rc)
		return rc;
	vv_json_text(&job->json, "store", job->store->url);
	return job->args->n_operands == 1 ? list_lineages(job) : list_epochs(job, n);
}

static const struct vv_args_option options[] = {
	{ "all", 0, NULL, "all epochs, not just the newest 20" },
	{ "newest", 0, "N", "the newest N epochs" },
	{ "newest", 'n', "N", NULL },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_ls = {
	.name = "ls",
	.operands = "STORE [LINEAGE]",
	.min = 1,
	.max = 2,
	.brief = "lists a store's lineages, or a lineage's epochs",
	.help = "Lists the lineages of a store, each with its newest epoch, or the epochs of a\n"
		"lineage, newest last. MEMORY is the size of the regions, STORED the size of the\n"
		"new data after compression, LAYER the size of the layer files, DISK the space\n"
		"of all files of a lineage. LABELS are shown if there are any. With -q there are\n"
		"no headings.",
	.option = options,
	.run = run,
};
