#include "base/err.h"
#include "base/mem.h"
#include "cli/base/verb_context.h"
#include "cli/base/text.h"
#include "engine/lineage/catalog.h"
#include "engine/epoch/retention.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct dropped { /* the epochs to drop, ascending, each once */
	uint64_t *v;
	size_t n;
	bool all;       /* the lineage has no other epoch */
	bool elsewhere; /* other stores have layers of some epochs, and records of their own */
};

/* ---- which epochs ---------------------------------------------------------------------------- */

/* Marks the epochs of first..last; refuses an epoch, or a range, that does not exist. */
static int mark(const struct vv_lineage *lin, const struct vv_listing *l, uint64_t first, uint64_t last, bool *marked)
{
	bool any = false;

	for (size_t i = 0; i < l->n_epochs; i++)
		if (l->epoch[i] >= first && l->epoch[i] <= last)
			any = marked[i] = true;
	if (any)
		return 0;
	if (first == last)
		return vv_err_set(VV_ENOENT, "lineage '%s' has no epoch %" PRIu64 "; nothing was dropped", lin->name, first);
	return vv_err_set(VV_ENOENT, "lineage '%s' has no epoch from %" PRIu64 " to %" PRIu64 "; nothing was dropped",
			  lin->name, first, last);
}

static int mark_named(const struct vv_args *args, struct vv_spec *spec, const struct vv_lineage *lin,
		      const struct vv_listing *l, bool *marked)
{
	bool has = vv_spec_has_epoch(spec);
	int rc = has ? vv_spec_look_up(spec, lin) : 0;

	if (rc == 0 && has)
		rc = mark(lin, l, spec->first, spec->last, marked);
	for (size_t i = 2; rc == 0 && i < args->n_operands; i++) {
		struct vv_spec more;

		rc = vv_spec_range(args->operand[i], &more);
		if (rc == 0)
			rc = vv_spec_look_up(&more, lin);
		if (rc == 0)
			rc = mark(lin, l, more.first, more.last, marked);
	}
	return rc;
}

/* *whole: the record of the epoch is there and intact. *time: 0 if it is not. Other errors say
 * nothing about the epoch. */
static int look_at(const struct vv_lineage *lin, uint64_t epoch, bool *whole, uint64_t *time)
{
	int rc = vv_catalog_time(lin, epoch, time);

	*whole = rc == 0;
	return rc == VV_EDAMAGED || rc == VV_ENOENT ? 0 : rc;
}

struct cmd_drop_rule { /* keeps the newest `keep`, the multiples of `every`, those of the last `within` seconds */
	uint64_t keep, every;
	double within;
};

static int parse_rule(const struct vv_args *args, struct cmd_drop_rule *out)
{
	static const struct vv_conf_item item = { "keep-within", VV_CONF_DURATION, "0", NULL, 0, 0, NULL };
	struct vv_conf c;
	int rc = vv_args_number(args, "keep", 1, UINT32_MAX, &out->keep);

	if (rc == 0)
		rc = vv_args_number(args, "keep-every", 1, UINT32_MAX, &out->every);
	if (rc)
		return rc;
	rc = vv_args_conf(args, &item, 1, &c);
	if (rc == 0)
		out->within = vv_conf_real(&c, "keep-within");
	vv_conf_fini(&c);
	if (rc == 0 && vv_args_value(args, "keep-within") && out->within <= 0)
		rc = vv_err_set(VV_EINVAL, "drop: --keep-within '%s' is not above 0", vv_args_value(args, "keep-within"));
	return rc;
}

/* The same rule as the options keep, keep-every and keep-within of a session. An epoch with an
 * unreadable record is not one of the newest. */
static int mark_old(const struct vv_lineage *lin, const struct vv_listing *l, const struct cmd_drop_rule *rule, bool *marked)
{
	uint64_t keep = rule->keep ? rule->keep : 1, newest = 0, time = 0;
	size_t i = l->n_epochs;
	bool whole;
	int rc = 0;

	for (; rc == 0 && keep && i > 0; i--) {
		rc = look_at(lin, l->epoch[i - 1], &whole, &time);
		newest = newest ? newest : time;
		keep -= whole;
	}
	for (; rc == 0 && i > 0; i--) {
		bool within = false;

		if (rule->within > 0)
			rc = look_at(lin, l->epoch[i - 1], &within, &time);
		within = within && vv_retention_is_within(time, newest, rule->within);
		marked[i - 1] = !within && !(rule->every && l->epoch[i - 1] % rule->every == 0);
	}
	return rc ? vv_err_context(rc, "nothing was dropped") : 0;
}

static int look_elsewhere(const struct vv_lineage *lin, const struct vv_listing *l, struct dropped *d)
{
	char ranks[VV_CATALOG_RANKS];
	int rc = 0;

	for (size_t i = 0; rc == 0 && !d->elsewhere && i < d->n; i++) {
		struct vv_commit c = { 0 };
		uint8_t *where = NULL;

		rc = vv_catalog_commit(lin, d->v[i], &c);
		if (rc == 0)
			rc = vv_catalog_locate_layers(l, &c, &where);
		d->elsewhere = rc == 0 && vv_catalog_name_ranks(where, c.n_ranks, VV_CATALOG_ELSEWHERE, ranks);
		rc = rc == VV_EDAMAGED ? 0 : rc;
		vv_mem_free(where);
		vv_commit_fini(&c);
	}
	return rc;
}

static int choose(struct vv_verb_context *job, struct vv_spec *spec, const struct vv_lineage *lin, struct dropped *out)
{
	struct cmd_drop_rule rule = { 0 };
	struct vv_listing l = { 0 };
	bool *marked = NULL;
	int rc = parse_rule(job->args, &rule);

	if (rc == 0)
		rc = vv_catalog_list(lin, 0, &l);
	if (rc == 0) {
		marked = vv_mem_new(l.n_epochs, sizeof(*marked));
		out->v = vv_mem_new(l.n_epochs, sizeof(*out->v));
		rc = marked && out->v ? 0 : VV_ENOMEM;
	}
	if (rc == 0 && (rule.keep || rule.within > 0))
		rc = mark_old(lin, &l, &rule, marked);
	else if (rc == 0)
		rc = mark_named(job->args, spec, lin, &l, marked);
	for (size_t i = 0; rc == 0 && i < l.n_epochs; i++)
		if (marked[i])
			out->v[out->n++] = l.epoch[i];
	out->all = out->n && out->n == l.n_epochs;
	if (rc == 0)
		rc = look_elsewhere(lin, &l, out);
	vv_mem_free(marked);
	vv_catalog_listing_fini(&l);
	return rc;
}

/* ---- dropping them --------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	uint64_t sum = 0;

	if (vv_catalog_commit(lin, epoch, &c) == 0)
		sum = vv_commit_sum(&c).file_len;
	vv_commit_fini(&c);
	return sum;
}

static int drop_epochs(struct vv_verb_context *job, const struct vv_lineage *lin, const struct dropped *d)
{
	bool dry = vv_args_value(job->args, "dry-run"), say = !job->args->json && !job->args->quiet;
	uint64_t sum = 0;
	int rc = 0;

	vv_json_array(&job->json, "dropped");
	for (size_t i = 0; rc == 0 && i < d->n; i++) {
		uint64_t bytes = 0;

		if (dry)
			bytes = bytes_of(lin, d->v[i]);
		else
			rc = vv_catalog_drop_epoch(lin, d->v[i], &bytes);
		if (rc)
			break;
		sum += bytes;
		vv_json_number(&job->json, NULL, d->v[i]);
		if (say)
			vv_out_printf(&job->out, "%s epoch %" PRIu64 "\n", dry ? "would drop" : "dropped", d->v[i]);
	}
	vv_json_end(&job->json);
	vv_json_number(&job->json, "bytes_layer", sum);
	vv_json_bool(&job->json, "dry_run", dry);
	vv_json_bool(&job->json, "elsewhere", d->elsewhere);
	if (say && rc == 0 && d->elsewhere)
		vv_out_printf(&job->out, "this is one of several stores: an epoch that another one still has is there again when the job "
			      "next needs it; drop it in all of them\n");
	if (say && rc == 0)
		vv_out_printf(&job->out, "%zu epoch%s of '%s'%s; layers of %s, as far as no other epoch needs them, go with 'varve gc'\n",
			      d->n, d->n == 1 ? "" : "s", lin->name, dry ? " would go" : "", vv_text_size(sum).s);
	return rc;
}

/* ---- a whole lineage ------------------------------------------------------------------------- */

/* Removes the objects of a folder: commit records first, so that no epoch is ever left without its
 * layers. */
static int remove_folder(const struct vv_lineage *lin, const char *dir, uint64_t *bytes, size_t *objects)
{
	struct vv_names names = { 0 };
	int rc = vv_store_list(lin->store, dir, &names);

	for (int pass = 0; rc == 0 && pass < 2; pass++)
		for (size_t i = 0; rc == 0 && i < names.n; i++) {
			size_t n = strlen(names.v[i].name);
			bool commit = n > 7 && strcmp(names.v[i].name + n - 7, ".commit") == 0;
			char *object;

			if (names.v[i].is_dir || commit != (pass == 0))
				continue;
			object = vv_mem_printf("%s/%s", dir, names.v[i].name);
			rc = object ? vv_store_remove(lin->store, object) : VV_ENOMEM;
			vv_mem_free(object);
			*bytes += names.v[i].size;
			*objects += 1;
		}
	vv_names_fini(&names);
	if (rc == 0)
		rc = vv_store_sweep(lin->store, dir);
	if (rc == 0)
		vv_store_remove_dir(lin->store, dir);
	return rc;
}

/* Removes folders from the newest down, then the rest; the record and the lock last, so that an
 * interrupted removal can be repeated. */
static int remove_all(const struct vv_lineage *lin, uint64_t *bytes, size_t *objects)
{
	struct vv_names names = { 0 };
	char object[VV_NAME_MAX];
	int rc = vv_store_list(lin->store, lin->name, &names);

	for (size_t i = names.n; rc == 0 && i-- > 0;) {
		int64_t folder = names.v[i].is_dir ? vv_name_parse_folder(names.v[i].name) : -1;

		if (folder < 0)
			continue;
		vv_name_folder(object, lin->name, (uint64_t)folder);
		rc = remove_folder(lin, object, bytes, objects);
	}
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		const char *name = names.v[i].name;

		if (names.v[i].is_dir || (strncmp(name, "index.", 6) != 0 && strcmp(name, "ended") != 0 && strcmp(name, "verified") != 0))
			continue;
		snprintf(object, sizeof(object), "%s/%.60s", lin->name, names.v[i].name);
		rc = vv_store_remove(lin->store, object);
		*bytes += names.v[i].size;
		*objects += 1;
	}
	vv_names_fini(&names);
	if (rc == 0)
		rc = vv_store_sweep(lin->store, lin->name);
	vv_name_record(object, lin->name);
	if (rc == 0)
		rc = vv_store_remove(lin->store, object);
	vv_name_lock(object, lin->name);
	if (rc == 0)
		rc = vv_store_remove(lin->store, object);
	return rc;
}

static int drop_lineage(struct vv_verb_context *job, const struct vv_lineage *lin)
{
	bool dry = vv_args_value(job->args, "dry-run");
	struct vv_listing l = { 0 };
	uint64_t bytes = 0;
	size_t objects = 0;
	int rc = vv_catalog_list(lin, 0, &l);

	if (rc == 0 && dry)
		for (size_t i = 0; i < l.n_layers; i++)
			bytes += l.layer[i].size;
	else if (rc == 0)
		rc = remove_all(lin, &bytes, &objects);
	if (rc == 0 && !dry) {
		vv_verb_context_unlock(job);
		vv_store_remove_dir(lin->store, lin->name);
	}
	vv_json_number(&job->json, "epochs", l.n_epochs);
	vv_json_number(&job->json, "bytes", bytes);
	vv_json_bool(&job->json, "dry_run", dry);
	if (rc == 0 && !job->args->json && !job->args->quiet)
		vv_out_printf(&job->out, "%s lineage '%s': %zu epoch%s, %s\n", dry ? "would drop" : "dropped", lin->name,
			      l.n_epochs, l.n_epochs == 1 ? "" : "s", vv_text_size(bytes).s);
	vv_catalog_listing_fini(&l);
	return rc;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int check(const struct vv_args *args, const struct vv_spec *spec)
{
	bool whole = vv_args_value(args, "whole-lineage"), keep = vv_args_value(args, "keep") || vv_args_value(args, "keep-within");
	bool dry = vv_args_value(args, "dry-run"), named = vv_spec_has_epoch(spec) || args->n_operands > 2;

	if (vv_args_value(args, "keep-every") && !keep)
		return vv_err_set(VV_EINVAL, "drop: --keep-every goes with --keep N or --keep-within TIME");
	if (named + whole + keep > 1)
		return vv_err_set(VV_EINVAL, "drop: epochs, --keep or --keep-within, and --whole-lineage exclude each other");
	if (!named && !whole && !keep)
		return vv_err_set(VV_EINVAL, "drop: which epochs? %s@EPOCH, --keep N, or --whole-lineage for all of it",
				  spec->lineage);
	if (whole && !dry && !vv_args_value(args, "yes"))
		return vv_err_set(VV_EINVAL, "drop: --whole-lineage removes all of '%s' for ever; say --yes as well", spec->lineage);
	return 0;
}

static int run(struct vv_verb_context *job)
{
	struct vv_spec spec;
	struct vv_lineage lin;
	struct dropped d = { 0 };
	int rc = vv_spec_parse(job->args->operand[1], VV_SPEC_EPOCH | VV_SPEC_RANGE, &spec);

	if (rc == 0)
		rc = check(job->args, &spec);
	if (rc == 0)
		rc = vv_verb_context_open_lineage(job, &spec, &lin);
	/* a writer must not lose the epoch it continues from */
	if (rc == 0 && !vv_args_value(job->args, "dry-run"))
		rc = vv_verb_context_lock(job, &lin);
	if (rc)
		return rc;
	vv_json_text(&job->json, "store", job->store->url);
	vv_json_text(&job->json, "lineage", lin.name);
	if (vv_args_value(job->args, "whole-lineage"))
		return drop_lineage(job, &lin);
	rc = choose(job, &spec, &lin, &d);
	if (rc == 0 && d.all && !vv_args_value(job->args, "dry-run") && !vv_args_value(job->args, "yes"))
		rc = vv_err_set(VV_EINVAL, "drop: these are all epochs of '%s', and no restart is possible without them; say --yes as well", lin.name);
	if (rc == 0)
		rc = drop_epochs(job, &lin, &d);
	vv_mem_free(d.v);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "keep", 0, "N", "drop all but the newest N epochs" },
	{ "keep-every", 0, "M", "with --keep: keep also multiples of M" },
	{ "keep-within", 0, "TIME", "keep those that are at most so much older than\n                               the newest (7d; units s, m, h, d, w), and --keep" },
	{ "whole-lineage", 0, NULL, "drop the whole lineage with all its objects" },
	{ "lineage", 0, NULL, NULL },
	{ "yes", 0, NULL, "confirms --whole-lineage, or all epochs" },
	{ "dry-run", 0, NULL, "only list the epochs" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_drop = {
	.name = "drop",
	.operands = "STORE LINEAGE[@EPOCH] [EPOCH | FIRST..LAST]...",
	.min = 2,
	.max = SIZE_MAX,
	.brief = "drops epochs of a lineage, or a whole lineage",
	.help = "Drops the given epochs, or all that --keep does not keep. Each epoch may be a\n"
		"range FIRST..LAST. Data that other epochs need are kept, and 'varve gc' reclaims\n"
		"the rest. If one of the epochs does not exist, nothing is dropped.",
	.option = options,
	.run = run,
};
