#include "base/err.h"
#include "cli/base/verb_context.h"
#include "engine/lineage/label.h"
#include <inttypes.h>
#include <string.h>

/* Two epochs with one label would hide the older one. */
static int check_free(const struct vv_lineage *lin, uint64_t epoch, const char *label)
{
	uint64_t other = 0;
	int rc = vv_label_find(lin, label, &other);

	if (rc == VV_ENOENT || (rc == 0 && other == epoch))
		return 0;
	return rc ? rc : vv_err_set(VV_EINVAL, "label: epoch %" PRIu64 " of lineage '%s' has the label '%s'; take it away first: varve label --remove %s %s@%" PRIu64 " %s",
				    other, lin->name, label, lin->store->url, lin->name, other, label);
}

static int check_there(const struct vv_lineage *lin, uint64_t epoch, const char *label)
{
	struct vv_listing l = { 0 };
	const struct vv_label_name *of;
	size_t n = 0;
	int rc = vv_catalog_list(lin, epoch, &l);

	of = vv_label_of(&l, epoch, &n);
	while (rc == 0 && n && strcmp(of[n - 1].label, label) != 0)
		n--;
	vv_catalog_listing_fini(&l);
	return rc || n ? rc : vv_err_set(VV_ENOENT, "label: epoch %" PRIu64 " of lineage '%s' has no label '%s'", epoch, lin->name, label);
}

static int apply(struct vv_verb_context *job, const struct vv_lineage *lin, uint64_t epoch, const char *label)
{
	bool remove = vv_args_value(job->args, "remove");
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(lin, epoch, &c);

	vv_commit_fini(&c);
	if (rc == 0)
		rc = remove ? check_there(lin, epoch, label) : check_free(lin, epoch, label);
	if (rc == 0)
		rc = remove ? vv_label_remove(lin, epoch, label) : vv_label_put(lin, epoch, label);
	if (rc)
		return rc;
	vv_json_text(&job->json, "lineage", lin->name);
	vv_json_number(&job->json, "epoch", epoch);
	vv_json_text(&job->json, remove ? "removed" : "label", label);
	if (!job->args->quiet && !job->args->json)
		vv_out_printf(&job->out, "epoch %" PRIu64 " of '%s' %s the label %s\n", epoch, lin->name, remove ? "has lost" : "has", label);
	return 0;
}

static int run(struct vv_verb_context *job)
{
	const char *label = job->args->operand[2];
	struct vv_lineage lin;
	struct vv_spec spec;
	uint64_t epoch = 0;
	int rc = vv_spec_parse(job->args->operand[1], VV_SPEC_EPOCH, &spec);

	if (rc == 0)
		rc = vv_name_check_label(label);
	if (rc == 0)
		rc = vv_verb_context_open_lineage(job, &spec, &lin);
	if (rc == 0)
		rc = vv_verb_context_epoch(job, &lin, &spec, &epoch);
	return rc ? rc : apply(job, &lin, epoch, label);
}

static const struct vv_args_option options[] = {
	{ "remove", 0, NULL, "take the label away from the epoch" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_label = {
	.name = "label",
	.operands = "STORE LINEAGE[@EPOCH] LABEL",
	.min = 3,
	.max = 3,
	.brief = "gives an epoch a label",
	.help = "Gives an epoch (by default the newest) a label, and LINEAGE@LABEL then names it.\n"
		"An epoch may have several labels. A label has 1 to 64 letters, digits, '.', '_'\n"
		"and '-', and is neither a number nor 'latest'. It does not keep the epoch from\n"
		"being dropped. The lineage may be in use by a writer.",
	.option = options,
	.run = run,
};
