#include "cli/main/complete.h"
#include "base/err.h"
#include "cli/main/main.h"
#include "engine/lineage/catalog.h"
#include "engine/options.h"
#include "store/store.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS = 1000 }; /* as many numbers below the newest epoch are completed */

struct completion {
	struct vv_verb_context *job;
	struct vv_args args; /* the words before the completed one */
	const struct vv_cmd *cmd;
	const char *word;
	size_t at; /* candidates begin at this character of the word */
};

static void offer(const struct completion *c, const char *text, const char *end, const char *meaning)
{
	if (strncmp(text, c->word + c->at, strlen(c->word + c->at)) == 0)
		vv_out_printf(&c->job->out, "%.*s%s%s\t%.*s\n", (int)c->at, c->word, text, end,
			      (int)strcspn(meaning, "\n"), meaning);
}

/* ---- the store on the line ------------------------------------------------------------------- */

/* The word i of the usage line; the last one, if it may be repeated; or NULL. */
static const char *placeholder(const struct vv_cmd *cmd, size_t i)
{
	const char *p = cmd->operands, *last = NULL;

	p += strncmp(p, "-- ", 3) == 0 ? 3 : 0;
	for (; *p && strncmp(p, "[--", 3) != 0; p += strspn(p, " |")) {
		if (i-- == 0)
			return p;
		last = p;
		p += strcspn(p, " ");
	}
	return last && !*p && strstr(last, "...") ? last : NULL;
}

/* The operand that the usage line calls by this name, or the option of this name, or NULL. */
static const char *given(const struct completion *c, const char *operand, const char *option)
{
	const char *p;

	for (size_t i = 0; i < c->args.n_operands && (p = placeholder(c->cmd, i)); i++)
		if (strncmp(p + (*p == '['), operand, strlen(operand)) == 0)
			return c->args.operand[i];
	return vv_args_value(&c->args, option);
}

/* Replaces ~ and $NAME at the beginning, which the shell has not done yet. */
static void expand(const char *text, char out[PATH_MAX])
{
	const char *value = NULL, *rest = text;
	char name[64];

	if (text[0] == '~' && (text[1] == '/' || !text[1])) {
		value = getenv("HOME");
		rest = text + 1;
	} else if (text[0] == '$' && sscanf(text + 1, "%*1[{]%63[A-Za-z0-9_]", name) == 1) {
		value = getenv(name);
		rest = text + 2 + strlen(name) + (text[2 + strlen(name)] == '}');
	} else if (text[0] == '$' && sscanf(text + 1, "%63[A-Za-z0-9_]", name) == 1) {
		value = getenv(name);
		rest = text + 1 + strlen(name);
	}
	snprintf(out, PATH_MAX, "%s%s", value ? value : "", value ? rest : text);
}

/* Only a folder answers quickly enough. */
static int open_store(const struct completion *c, struct vv_store **out)
{
	const char *url = given(c, "STORE", "store");
	char path[PATH_MAX];

	if (!url)
		return VV_ENOENT;
	expand(url, path);
	return strncmp(path, "s3:", 3) == 0 ? VV_ENOENT : vv_verb_context_open_other(c->job, path, out);
}

static void offer_epochs(const struct completion *c, const char *lineage)
{
	struct vv_store *store = NULL;
	struct vv_lineage lin;
	struct vv_listing l = {0};
	uint64_t newest = 0;

	if (open_store(c, &store))
		return;
	if (vv_catalog_open(store, lineage, false, &lin) == 0 && vv_catalog_highest(&lin, &newest) == 0 &&
	    vv_catalog_list(&lin, newest > EPOCHS ? newest - EPOCHS : 0, &l) == 0)
		for (size_t i = l.n_epochs; i-- > 0;) {
			char number[24];

			snprintf(number, sizeof(number), "%" PRIu64, l.epoch[i]);
			offer(c, number, "", "");
		}
	vv_catalog_listing_fini(&l);
	vv_store_close(store);
}

/* ---- the kinds of words ---------------------------------------------------------------------- */

static void list_files(struct completion *c)
{
	vv_out_printf(&c->job->out, ":files\n");
}

static void list_folders(struct completion *c)
{
	vv_out_printf(&c->job->out, ":folders\n");
}

static void list_commands(struct completion *c)
{
	vv_out_printf(&c->job->out, ":commands\n");
}

static void list_epochs(struct completion *c)
{
	const char *name = given(c, "LINEAGE", "lineage");
	char lineage[VV_NAME_LINEAGE_MAX + 1];

	if (!name)
		return;
	snprintf(lineage, sizeof(lineage), "%.*s", (int)strcspn(name, "@:"), name);
	offer_epochs(c, lineage);
}

/* LINEAGE, then @EPOCH or @FIRST..LAST. */
static void list_lineages(struct completion *c)
{
	const char *word = c->word + c->at, *mark = strchr(word, '@'), *range = mark ? strstr(mark, "..") : NULL;
	struct vv_store *store = NULL;
	struct vv_names names = {0};

	if (mark) {
		char lineage[VV_NAME_LINEAGE_MAX + 1];

		snprintf(lineage, sizeof(lineage), "%.*s", (int)(mark - word), word);
		c->at = (size_t)((range ? range + 2 : mark + 1) - c->word);
		offer_epochs(c, lineage);
		return;
	}
	if (open_store(c, &store))
		return;
	if (vv_catalog_lineages(store, &names) == 0)
		for (size_t i = 0; i < names.n; i++)
			offer(c, names.v[i].name, "", "");
	vv_names_fini(&names);
	vv_store_close(store);
}

static void list_names(struct completion *c)
{
	for (size_t i = 0; i < c->job->conf.n; i++)
		offer(c, c->job->conf.item[i].name, "", c->job->conf.item[i].help);
}

/* The choices of a table of options: word|word[:N]|... */
static void offer_choices(const struct completion *c, const char *words)
{
	for (; words && *words; words += strcspn(words, "|"), words += *words == '|') {
		char word[64];

		snprintf(word, sizeof(word), "%.*s", (int)strcspn(words, "|["), words);
		offer(c, word, "", "");
	}
}

static void list_settings(struct completion *c)
{
	const struct vv_conf *conf = &c->job->conf;
	const char *word = c->word + c->at, *eq = strchr(word, '=');

	for (size_t i = 0; !eq && i < conf->n; i++)
		offer(c, conf->item[i].name, "=", conf->item[i].help);
	for (size_t i = 0; eq && i < conf->n; i++) {
		const struct vv_conf_item *o = &conf->item[i];

		if (strlen(o->name) != (size_t)(eq - word) || strncmp(o->name, word, (size_t)(eq - word)) != 0)
			continue;
		c->at = (size_t)(eq + 1 - c->word);
		offer_choices(c, o->kind == VV_CONF_BOOL ? "yes|no" : o->words);
		return;
	}
}

static const struct {
	const char *name; /* in a usage line, or as the placeholder of an option's value */
	void (*list)(struct completion *c);
} kinds[] = {
	{"STORE", list_folders}, {"STORE2", list_folders}, {"DIR", list_folders},	  {"FOLDER", list_folders},
	{"FILE", list_files},	 {"LIST", list_files},	   {"COMMAND", list_commands},	  {"LINEAGE", list_lineages},
	{"EPOCH", list_epochs},	 {"FIRST", list_epochs},   {"NAME=VALUE", list_settings}, {"NAME", list_names},
};

/* Completes by a placeholder: a kind, or several kinds and literal words, separated by |. */
static void list_by(struct completion *c, const char *p)
{
	bool choice = false;

	for (; p && *p && *p != ' '; p += strcspn(p, "| "), p += *p == '|') {
		size_t n, k;
		char word[32];

		p += *p == '[';
		n = strcspn(p, "[]@:.| ");
		for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			if (strlen(kinds[k].name) == n && strncmp(kinds[k].name, p, n) == 0)
				break;
		choice |= p[n] == '|';
		if (k < sizeof(kinds) / sizeof(kinds[0])) {
			kinds[k].list(c);
			if (kinds[k].list == list_lineages)
				return;
		} else if (choice) {
			snprintf(word, sizeof(word), "%.*s", (int)n, p);
			offer(c, word, "", "");
		}
	}
}

/* ---- the place on the line ------------------------------------------------------------------- */

static void list_options(const struct completion *c, const struct vv_args_option *o)
{
	char name[80];

	for (; o && o->name; o++) {
		if (!vv_args_is_shown(o))
			continue;
		snprintf(name, sizeof(name), "--%s", o->name);
		offer(c, name, "", o->help);
		if (o->letter && c->word[1] != '-')
			offer(c, (char[]){'-', o->letter, 0}, "", o->help);
	}
}

static void list_verbs(const struct completion *c)
{
	const struct vv_cmd *cmd;

	for (size_t i = 0; (cmd = vv_main_verb(i)); i++)
		offer(c, cmd->name, "", cmd->brief);
}

/* --NAME=VALUE: the option of this name, with c->at behind the sign. */
static const struct vv_args_option *find_joined(struct completion *c, const struct vv_args_option *o)
{
	size_t n = strcspn(c->word, "=");

	for (; n > 2 && c->word[n] && o && o->name; o++)
		if (o->value && strlen(o->name) == n - 2 && strncmp(o->name, c->word + 2, n - 2) == 0) {
			c->at = n + 1;
			return o;
		}
	return NULL;
}

static void list_here(struct completion *c, bool ended)
{
	const struct vv_args_option *own = c->cmd ? c->cmd->option : NULL, *joined;

	if (c->args.open) {
		list_by(c, c->args.open->value);
	} else if (c->word[0] == '-' && !ended) {
		joined = find_joined(c, own);
		joined = joined ? joined : find_joined(c, vv_args_shared());
		if (joined) {
			list_by(c, joined->value);
			return;
		}
		list_options(c, own);
		list_options(c, vv_args_shared());
	} else if (!c->cmd) {
		list_verbs(c);
		offer(c, "help", "", "shows more about a verb");
	} else if (ended && (c->args.n_operands || c->cmd->operands[0] != '-')) {
		list_files(c);
	} else {
		list_by(c, placeholder(c->cmd, c->args.n_operands));
	}
}

void vv_complete_print(struct vv_verb_context *job, int argc, char **argv)
{
	struct completion c = {.job = job, .word = argv[argc - 1]};
	bool ended = false;
	int rc;

	for (int i = 1; i < argc - 1; i++)
		ended |= strcmp(argv[i], "--") == 0;
	rc = vv_args_init(&c.args, argc - 1, argv);
	rc = rc ? rc : vv_args_parse_front(&c.args);
	if (rc == 0 && c.args.at < c.args.argc) {
		const char *verb = argv[c.args.at++];

		if (strcmp(verb, "help") == 0)
			list_verbs(&c);
		rc = vv_main_find(verb, &c.cmd);
		rc = rc ? rc : vv_args_parse_rest(&c.args, verb, c.cmd->option);
	}
	if (rc == 0 || c.args.open)
		list_here(&c, ended);
	vv_args_fini(&c.args);
}
