#include "base/err.h"
#include "cli/pack/filelist.h"
#include "cli/base/interrupt.h"
#include "cli/base/verb_context.h"
#include "cli/pack/packed_before.h"
#include "cli/pack/pack_command.h"
#include "cli/pack/file_sets.h"
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the request ----------------------------------------------------------------------------- */

static const char *const schemes[] = { "auto", "agnostic", "agnostic-block", "aware", "aware-block" };
static const char *const efforts[] = { "fast", "default", "max" };

/* Numbers and choices with their limits, for the options of the verb of the same names. */
static const struct vv_conf_item items[] = {
	{ "scheme", VV_CONF_CHOICE, "auto", "auto|agnostic|agnostic-block|aware|aware-block", 0, 0, NULL },
	{ "level", VV_CONF_CHOICE, "default", "fast|default|max", 0, 0, NULL },
	{ "group", VV_CONF_COUNT, "0", NULL, 0, UINT32_MAX, NULL },
	{ "block", VV_CONF_SIZE, "0", NULL, 0, 64 << 20, NULL },
	{ "small", VV_CONF_SIZE, "0", NULL, 0, 1 << 30, NULL },
};

static const char *const paper_only[] = { "group", "block", "single" };

static unsigned number_of(const char *word, const char *const *words, unsigned n)
{
	unsigned i = 0;

	while (i + 1 < n && strcmp(words[i], word) != 0)
		i++;
	return i;
}

static int parse(const struct vv_args *args, struct vv_pack_options *out)
{
	struct vv_conf c;
	int rc = vv_args_conf(args, items, sizeof(items) / sizeof(items[0]), &c);

	if (rc == 0)
		*out = (struct vv_pack_options){
			.scheme = (enum vv_pack_scheme)number_of(vv_conf_text(&c, "scheme"), schemes, sizeof(schemes) / sizeof(schemes[0])),
			.effort = (enum vv_pack_effort)number_of(vv_conf_text(&c, "level"), efforts, sizeof(efforts) / sizeof(efforts[0])),
			.group = (uint32_t)vv_conf_number(&c, "group"),
			.block = vv_conf_number(&c, "block"),
			.small = vv_conf_number(&c, "small"),
			.single = vv_args_value(args, "single"),
			.key = vv_args_value(args, "key"),
			.segments = vv_args_value(args, "segments"),
		};
	vv_conf_fini(&c);
	if (rc == 0 && out->scheme == VV_PACK_AUTO)
		for (size_t i = 0; i < sizeof(paper_only) / sizeof(paper_only[0]); i++)
			if (vv_args_value(args, paper_only[i]))
				return vv_err_set(VV_EINVAL, "pack: --%s is for --scheme agnostic, agnostic-block, aware and aware-block", paper_only[i]);
	return rc;
}

static int sort_out(const struct vv_args *args, struct vv_filelist *l)
{
	const char *regex = vv_args_value(args, "set");
	struct vv_file_sets rule = { 0 };
	int rc = regex ? vv_file_sets_init(&rule, "pack", regex) : 0;

	if (rc == 0 && regex)
		rc = vv_filelist_sort_out(l, &rule);
	vv_file_sets_fini(&rule);
	return rc;
}

static bool is_series(const struct vv_args *args)
{
	return vv_args_value(args, "each") || vv_args_value(args, "set");
}

static int check_label(const struct vv_args *args)
{
	const char *label = vv_args_value(args, "label");

	if (label && is_series(args))
		return vv_err_set(VV_EINVAL, "pack: --label is of one epoch, and --each and --set make several");
	return label ? vv_name_check_label(label) : 0;
}

static int list_files(const struct vv_args *args, struct vv_filelist *l)
{
	const char *from = vv_args_value(args, "files-from");
	int rc = 0;

	l->folder = vv_args_value(args, "directory");
	l->store = args->operand[0];
	l->quiet = args->quiet || args->json;
	l->each = vv_args_value(args, "each");
	if (l->each && vv_args_value(args, "set"))
		return vv_err_set(VV_EINVAL, "pack: --each makes an epoch of each operand, --set of files with like names: only one of them can be");
	for (size_t i = 2; rc == 0 && i < args->n_operands; i++)
		rc = vv_filelist_add(l, args->operand[i]);
	if (rc == 0 && from)
		rc = vv_filelist_read(l, from);
	if (rc == 0 && l->n == 0 && (from || args->n_operands > 2))
		rc = vv_err_set(VV_EINVAL, "pack: there is no file to pack in what was named: no epoch was stored");
	else if (rc == 0 && l->n == 0)
		rc = vv_err_set(VV_EINVAL, "pack: which files? name some, or a folder of them, or --files-from LIST");
	if (rc == 0)
		rc = vv_filelist_check(l);
	if (rc == 0)
		rc = sort_out(args, l);
	if (rc == 0 && is_series(args) && l->n_sets == 0)
		rc = vv_err_set(VV_EINVAL, "pack: no file is of a set: '%s' is to match a part of their names", vv_args_value(args, "set"));
	return rc;
}

/* ---- the contents of the lineage ------------------------------------------------------------- */

struct cmd_pack_known {
	struct vv_verb_context *job;
	struct vv_filelist *list;
	bool delete;
	struct vv_pack_command_known found;
};

static bool is_in(const struct vv_pack_file *file, const struct vv_unpack *u)
{
	struct vv_unpack_file f;
	struct stat st;

	return vv_unpack_has(u, file->name, &f) && stat(file->path, &st) == 0 && vv_packed_before_is(&f, (uint64_t)st.st_size, st.st_mtim);
}

static int pass_over(void *arg, const struct vv_unpack *u)
{
	struct cmd_pack_known *k = arg;
	struct vv_filelist *l = k->list;
	int rc = 0;

	for (size_t s = 0; rc == 0 && s < l->n_sets;) {
		size_t at = l->set[s].from, end = at + l->set[s].n;
		bool has;

		while (at < end && is_in(&l->file[at], u))
			at++;
		has = at == end;
		if (has && k->delete)
			rc = vv_purge_left(k->job, u, &l->file[l->set[s].from], l->set[s].n, &k->found.count, &has);
		if (!has) {
			s++;
			continue;
		}
		vv_filelist_drop_set(l, s);
		k->found.sets++;
	}
	return rc;
}

/* Files must not be deleted if the only epoch that holds them may be dropped. With the option keep,
 * there may be no more sets than epochs are kept. Sets *left if no epochs are dropped, so that
 * files of older epochs may be deleted. */
static int check_keep(const struct vv_verb_context *job, size_t sets, bool *left)
{
	uint64_t keep = vv_conf_number(&job->conf, "keep");

	bool within = vv_conf_real(&job->conf, "keep-within") > 0;

	*left = keep == 0 && !within;
	if (keep == 0 && within && sets > 1)
		return vv_err_set(VV_EINVAL, "pack: keep-within = %s may drop epochs whose files --delete has deleted; say -c keep-within=0, or pack without --delete",
				  vv_conf_text(&job->conf, "keep-within"));
	if (keep == 0 || sets <= keep)
		return 0;
	return vv_err_set(VV_EINVAL, "pack: of %zu sets keep = %" PRIu64 " would leave the newest, and --delete no file of the others; say -c keep=0, or pack without "
			  "--delete", sets, keep);
}

/* Rank 0 makes the list and sends it to the others, so that all have the same list if folders
 * change. Sets that are in an epoch already are left out. Their safely packed files are deleted,
 * too, if that is requested. */
static int agree_on_files(struct vv_verb_context *job, const char *lineage, struct vv_filelist *l, struct vv_pack_command_known *known)
{
	struct cmd_pack_known k = { .job = job, .list = l, .delete = vv_args_value(job->args, "delete") };
	struct vv_buf b = { 0 };
	bool mine = vv_verb_context_is_first(job);
	int rc = mine ? list_files(job->args, l) : 0;

	if (rc == 0 && mine && is_series(job->args) && k.delete)
		rc = check_keep(job, l->n_sets, &k.delete);
	if (rc == 0 && mine && is_series(job->args))
		rc = vv_packed_before_each(job, lineage, k.delete, NULL, pass_over, &k);
	rc = vv_command_ranks_agree(job->ranks, rc);
	*known = k.found;
	if (rc == 0 && job->ranks) {
		if (mine)
			vv_filelist_put(l, &b);
		rc = vv_command_ranks_share(job->ranks, &b);
		rc = vv_command_ranks_agree(job->ranks, rc || mine ? rc : vv_filelist_get(l, &b));
	}
	vv_buf_fini(&b);
	return rc;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int run(struct vv_verb_context *job)
{
	struct vv_pack_options opt;
	struct vv_filelist l = { 0 };
	struct vv_spec spec;
	struct vv_pack_command_known known = { 0 };
	atomic_bool stop = false;
	int rc = vv_spec_parse(job->args->operand[1], 0, &spec);

	if (rc == 0)
		rc = parse(job->args, &opt);
	if (rc == 0)
		rc = check_label(job->args);
	if (rc == 0)
		rc = vv_verb_context_hand_on_settings(job);
	if (rc == 0)
		rc = vv_verb_context_take_option(job, "threads", "threads");
	rc = vv_command_ranks_agree(job->ranks, rc);
	if (rc == 0)
		rc = agree_on_files(job, spec.lineage, &l, &known);
	opt.stop = &stop;
	/* an unfinished epoch is removed, and then the process dies */
	vv_interrupt_set_stop(&stop);
	if (rc == 0 && is_series(job->args))
		rc = vv_pack_command_series(job, spec.lineage, &l, &opt, vv_args_value(job->args, "delete"), &known);
	else if (rc == 0)
		rc = vv_pack_command_run(job, spec.lineage, &l, &opt, vv_args_value(job->args, "delete"));
	vv_interrupt_set_stop(NULL);
	vv_interrupt_die();
	vv_filelist_fini(&l);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "scheme", 0, "auto|agnostic|agnostic-block|aware|aware-block", "all but auto are for comparison" },
	{ "level", 0, "fast|default|max", "speed or size" },
	{ "group", 0, "N", "merge N files, in the four schemes (0: all)" },
	{ "block", 0, "SIZE", "block of each file, in the -block schemes (4096)" },
	{ "small", 0, "SIZE", "smaller variables are part of the bytes around\n                               them (64)" },
	{ "single", 0, NULL, "one pass of compression, in the four schemes" },
	{ "key", 0, "RULE", "which variables correspond: none, or REGEX=TEXT\n                               (paths that differ in runs of digits only)" },
	{ "segments", 0, "RULES", "SEGMENT=CUT[+CODE],... of images (all=pages+auto)" },
	{ "threads", 'j', "N", "number of threads" },
	{ "directory", 'C', "DIR", "names are relative to this folder" },
	{ "files-from", 0, "LIST", "read names from a file, or from stdin with -;\n                               separated by NUL or newline" },
	{ "label", 0, "LABEL", "the label of the epoch" },
	{ "each", 0, NULL, "one epoch for each FILE or folder, except those\n                               that the lineage has; the name is its label" },
	{ "set", 0, "REGEX", "one epoch for each set of files in whose names\n                               the groups match the same text" },
	{ "delete", 0, NULL, "delete the files when they are durable, read back\n                               and found equal" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_pack = {
	.name = "pack",
	.operands = "STORE LINEAGE FILE...",
	.min = 2,
	.max = SIZE_MAX,
	.brief = "stores files as an epoch",
	.help = "Stores a set of files as one epoch, each file as a region. The variables of\n"
		"HDF5, netCDF, NumPy and Fortran files are compressed by type. Images of\n"
		"processes (core files, CRIU's) are separated into segments. Content of earlier\n"
		"epochs of the lineage, or of other files, is not stored again. Folders are\n"
		"packed with all files below them. The store and the lineage are created if they\n"
		"do not exist. With --each or --set the files become several epochs, one after\n"
		"the other. If one fails, the earlier ones stay, and the same command continues\n"
		"there. 'varve unpack' restores the files.",
	.option = options,
	.many = true,
	.run = run,
};
