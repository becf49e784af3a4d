#include "base/cpu.h"
#include "base/err.h"
#include "base/did_you_mean.h"
#include "cli/base/verb_context.h"
#include "cli/base/text.h"
#include "codec/codec.h"
#include "engine/options.h"
#include "vv_config.h"
#include <string.h>
#include <strings.h>

static const char *architecture(void)
{
#if defined(__aarch64__)
	return "aarch64";
#elif defined(__x86_64__)
	return "x86_64";
#else
	return "other";
#endif
}

static const char *const digests[] = { "xxh3", "sha256", NULL };
static const char *const stores[] = { "dir", "mem", "ram", VV_HAVE_CURL ? "s3" : NULL, NULL };
static const char *const comms[] = { "plug", VV_HAVE_MPI ? "mpi" : NULL, NULL };
static const char *const languages[] = { "c", "c++", VV_HAVE_FORTRAN ? "fortran" : NULL, NULL };
static const char *const reports[] = { "json", VV_HAVE_REPORT ? "page" : NULL, NULL };
static const char *const spaces[] = { "host", VV_HAVE_CUDA ? "cuda" : NULL, NULL };
static const char *const captures[] = { "regions", VV_HAVE_JEMALLOC ? "heap" : NULL, NULL };

static const char *const tiers[] = { "everyday", "tuning", "comparison" };

static void put_item(struct vv_json *j, const struct vv_conf *c, size_t i)
{
	vv_json_object(j, NULL);
	vv_json_text(j, "name", c->item[i].name);
	vv_json_text(j, "value", c->value[i].text);
	vv_json_text(j, "origin", c->value[i].origin);
	vv_json_text(j, "default", c->item[i].initial);
	if (c->item[i].words)
		vv_json_text(j, "choices", c->item[i].words);
	vv_json_text(j, "help", c->item[i].help);
	vv_json_text(j, "tier", tiers[vv_options_tier(c->item[i].name)]);
	vv_json_end(j);
}

static void put_list(struct vv_json *j, const char *key, const char *const *word)
{
	vv_json_array(j, key);
	for (; *word; word++)
		vv_json_text(j, NULL, *word);
	vv_json_end(j);
}

static void put_built(struct vv_json *j)
{
	vv_json_text(j, "version", VV_VERSION);
	vv_json_text(j, "architecture", architecture());
	vv_json_array(j, "codecs");
	vv_json_text(j, NULL, "none");
	for (const struct vv_codec *const *c = vv_codec_all(); *c; c++)
		vv_json_text(j, NULL, (*c)->name);
	vv_json_end(j);
	put_list(j, "digests", digests);
	put_list(j, "stores", stores);
	put_list(j, "comms", comms);
	put_list(j, "spaces", spaces);
	put_list(j, "captures", captures);
	put_list(j, "languages", languages);
	put_list(j, "reports", reports);
	vv_json_object(j, "vectors");
	vv_json_text(j, "processor", vv_cpu_name(vv_cpu_most()));
	vv_json_text(j, "used", vv_cpu_name(vv_cpu_choose()));
	vv_json_end(j);
}

static void print_list(struct vv_out *o, const char *const *word)
{
	for (; *word; word++)
		vv_out_printf(o, " %s", *word);
	vv_out_printf(o, "\n");
}

static void print_built(struct vv_out *o)
{
	vv_out_printf(o, "\nvarve %s for %s\n  codecs   none", VV_VERSION, architecture());
	for (const struct vv_codec *const *c = vv_codec_all(); *c; c++)
		vv_out_printf(o, " %s", (*c)->name);
	vv_out_printf(o, "\n  digests ");
	print_list(o, digests);
	vv_out_printf(o, "  stores  ");
	print_list(o, stores);
	vv_out_printf(o, "  comms   ");
	print_list(o, comms);
	vv_out_printf(o, "  spaces  ");
	print_list(o, spaces);
	vv_out_printf(o, "  captures");
	print_list(o, captures);
	vv_out_printf(o, "  for     ");
	print_list(o, languages);
	vv_out_printf(o, "  reports ");
	print_list(o, reports);
	vv_out_printf(o, "  vectors  %s", vv_cpu_name(vv_cpu_choose()));
	if (vv_cpu_level() < vv_cpu_most())
		vv_out_printf(o, ", held there by VARVE_CPU: the processor has %s", vv_cpu_name(vv_cpu_most()));
	vv_out_printf(o, "\n");
}

/* Shows options that every user needs, and those that have been set. */
static bool is_shown(const struct vv_conf *c, size_t i, bool all)
{
	return all || vv_options_tier(c->item[i].name) == VV_OPTIONS_EVERYDAY || strcmp(c->value[i].origin, "default") != 0;
}

static int print_table(struct vv_out *o, const struct vv_conf *c, bool all, bool comparison)
{
	static const char *const columns[] = { "<OPTION", "<VALUE", "<FROM", "<FOR", "<MEANING", NULL };
	struct vv_text_table t;
	size_t shown = 0;
	int rc;

	vv_text_table_init(&t, columns, "");
	for (size_t i = 0; i < c->n; i++) {
		enum vv_options_tier tier = vv_options_tier(c->item[i].name);

		if (!is_shown(c, i, all) || (tier == VV_OPTIONS_COMPARISON) != comparison)
			continue;
		vv_text_cell(&t, "%s", c->item[i].name);
		vv_text_cell(&t, "%s", c->value[i].text[0] ? vv_text_safe(c->value[i].text).s : "-");
		vv_text_cell(&t, "%s", vv_text_safe(c->value[i].origin).s);
		vv_text_cell(&t, "%s", tiers[tier]);
		vv_text_cell(&t, "%s", c->item[i].help);
		shown++;
	}
	if (shown && comparison)
		vv_out_printf(o, "\nFor comparison with published algorithms:\n");
	rc = shown ? vv_text_table_print(&t, &o->buf) : 0;
	vv_text_table_fini(&t);
	return rc;
}

static int print_all(struct vv_out *o, const struct vv_conf *c, bool all)
{
	size_t hidden = 0;
	int rc = print_table(o, c, all, false);

	if (rc == 0)
		rc = print_table(o, c, all, true);
	for (size_t i = 0; i < c->n; i++)
		hidden += !is_shown(c, i, all);
	if (rc == 0 && hidden)
		vv_out_printf(o, "... and %zu for tuning and for comparison with papers (--all shows them)\n", hidden);
	if (rc == 0)
		print_built(o);
	return rc;
}

static void print_one(struct vv_out *o, const struct vv_conf *c, size_t i)
{
	vv_out_printf(o, "%s = %s\n", c->item[i].name, vv_text_safe(c->value[i].text).s);
	vv_out_printf(o, "  from     %s\n", vv_text_safe(c->value[i].origin).s);
	vv_out_printf(o, "  default  %s\n", c->item[i].initial[0] ? c->item[i].initial : "-");
	if (c->item[i].words)
		vv_out_printf(o, "  choices  %s\n", c->item[i].words);
	vv_out_printf(o, "  %s\n", c->item[i].help);
}

/* ---- a store --------------------------------------------------------------------------------- */

enum { LARGE = 64 << 20 }; /* a file of this size is large for every store */

/* The way that large files take to the disk. It begins to write one, and gives it up. */
static int try_store(struct vv_verb_context *job, const char *url, const char **way)
{
	bool buffered = strcmp(vv_conf_text(&job->conf, "io"), "buffered") == 0;
	struct vv_put *p = NULL;
	int rc = vv_verb_context_open_other(job, url, &job->store);

	if (rc == 0)
		rc = vv_store_put_open(job->store, "check", LARGE, &p);
	if (rc)
		return rc;
	*way = job->store->is_remote ? "in parts, several at a time"
	       : p->unit             ? "past the page cache"
	       : buffered            ? "through the page cache, as io=buffered asks"
				     : "through the page cache: this file system cannot write past it";
	vv_store_put_abort(p);
	return 0;
}

static int show_store(struct vv_verb_context *job, const char *url)
{
	const char *way = NULL;
	int rc = try_store(job, url, &way);

	if (rc)
		return rc;
	if (job->args->json) {
		vv_json_text(&job->json, "store", url);
		vv_json_text(&job->json, "large_files", way);
		return 0;
	}
	vv_out_printf(&job->out, "store '%s'\n  io           %s\n  large files  %s\n", vv_text_safe(url).s, vv_conf_text(&job->conf, "io"), way);
	return 0;
}

static int find(const struct vv_conf *c, const char *name, size_t *out)
{
	const char *best = NULL;

	for (size_t i = 0; i < c->n; i++) {
		if (strcasecmp(c->item[i].name, name) == 0) {
			*out = i;
			return 0;
		}
		best = vv_did_you_mean_best(name, c->item[i].name, best);
	}
	return vv_err_set(VV_EINVAL, "config: unknown option '%s'%s%s%s ('varve config --all' lists them all)", name,
			  best ? "; did you mean '" : "", best ? best : "", best ? "'?" : "");
}

static int run(struct vv_verb_context *job)
{
	const char *store = vv_args_value(job->args, "store");
	bool one = job->args->n_operands == 1;
	size_t which = 0;
	int rc = one ? find(&job->conf, job->args->operand[0], &which) : 0;

	if (rc)
		return rc;
	if (store)
		return show_store(job, store);
	if (job->args->json) {
		vv_json_array(&job->json, "options");
		for (size_t i = 0; i < job->conf.n; i++)
			if (!one || i == which)
				put_item(&job->json, &job->conf, i);
		vv_json_end(&job->json);
		put_built(&job->json);
		return 0;
	}
	if (!one)
		return print_all(&job->out, &job->conf, vv_args_value(job->args, "all") != NULL);
	print_one(&job->out, &job->conf, which);
	return 0;
}

static const struct vv_args_option options[] = {
	{ "all", 0, NULL, "every option, also for tuning and comparison" },
	{ "store", 0, "STORE", "try how large files of this store reach the disk" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_config = {
	.name = "config",
	.operands = "[NAME]",
	.min = 0,
	.max = 1,
	.brief = "shows options with their values and origins",
	.help = "Shows the everyday options and those that are set, or all, or one. Later sources\n"
		"win: built-in defaults, /etc/varve.conf, ~/.config/varve.conf, ./varve.conf (or\n"
		"$VARVE_CONF), the environment (VARVE_*), and -c NAME=VALUE. Also shows the\n"
		"built-in features and the vector units in use.",
	.option = options,
	.run = run,
};
