#include "cli/base/args.h"
#include "base/err.h"
#include "base/did_you_mean.h"
#include "base/mem.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON, QUIET, OPTION, OLD_OPTION, HELP, VERSION };

static const struct vv_args_option shared[] = {
	[JSON] = { "json", 0, NULL, "print one JSON object, also for errors" },
	[QUIET] = { "quiet", 'q', NULL, "no progress bar, no summaries" },
	[OPTION] = { "option", 'c', "NAME=VALUE", "set an option; 'varve config' lists them" },
	[OLD_OPTION] = { "option", 'o', "NAME=VALUE", NULL },
	[HELP] = { "help", 'h', NULL, "show this help" },
	[VERSION] = { "version", 0, NULL, "show the version" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_args_option *vv_args_shared(void)
{
	return shared;
}

int vv_args_init(struct vv_args *a, int argc, char **argv)
{
	*a = (struct vv_args){ .argc = argc, .argv = argv, .at = 1 };
	a->operand = vv_mem_new((size_t)argc + 1, sizeof(*a->operand));
	/* known before anything can fail, because errors take its form */
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		a->json |= strcmp(argv[i], "--json") == 0;
	return a->operand ? 0 : VV_ENOMEM;
}

void vv_args_fini(struct vv_args *a)
{
	vv_mem_free(a->operand);
	vv_mem_free(a->own_operand);
	*a = (struct vv_args){ 0 };
}

static const char *nearest_in(const struct vv_args_option *table, const char *name, const char *best)
{
	for (; table && table->name; table++)
		if (vv_args_is_shown(table))
			best = vv_did_you_mean_best(name, table->name, best);
	return best;
}

/* ---- parsing --------------------------------------------------------------------------------- */

static int complain(const struct vv_args *a, const char *what, const char *word, const char *meant)
{
	return vv_err_set(VV_EINVAL, "%s%s%s '%s'%s%s%s ('varve%s%s --help' shows what there is)", a->verb ? a->verb : "",
			  a->verb ? ": " : "", what, word, meant ? "; did you mean '--" : "", meant ? meant : "",
			  meant ? "'?" : "", a->verb ? " " : "", a->verb ? a->verb : "");
}

static const struct vv_args_option *find(const struct vv_args_option *table, const char *name, size_t len, char letter)
{
	for (; table && table->name; table++)
		if (name ? strlen(table->name) == len && memcmp(table->name, name, len) == 0 :
			   table->letter && table->letter == letter)
			return table;
	return NULL;
}

static const struct vv_args_option *find_any(const struct vv_args *a, const char *name, size_t len, char letter)
{
	const struct vv_args_option *o = find(a->option, name, len, letter);

	return o ? o : find(shared, name, len, letter);
}

static bool is_shared(const struct vv_args_option *o)
{
	return o >= shared && o < shared + sizeof(shared) / sizeof(shared[0]);
}

static int store(struct vv_args *a, const struct vv_args_option *o, bool by_letter, const char *value)
{
	const struct vv_args_option *given = o;

	while (!o->help)
		o--;
	if (!is_shared(o)) {
		a->value[o - a->option] = value;
		a->given[o - a->option] = given;
		a->by_letter[o - a->option] = by_letter;
		return 0;
	}
	if (o == &shared[OPTION]) {
		if (!strchr(value, '=') || value[0] == '=')
			return vv_err_set(VV_EINVAL, "option '%s' is not of the form name=value", value);
		if (a->n_settings == VV_ARGS_SETTINGS)
			return vv_err_set(VV_EINVAL, "more than %d options", VV_ARGS_SETTINGS);
		a->setting[a->n_settings++] = value;
	}
	a->json |= o == &shared[JSON];
	a->quiet |= o == &shared[QUIET];
	a->help |= o == &shared[HELP];
	a->version |= o == &shared[VERSION];
	return 0;
}

enum { TYPED = 64 };

/* The option in the form that the user typed. */
static const char *typed(const struct vv_args_option *o, bool by_letter, char out[TYPED])
{
	if (by_letter)
		snprintf(out, TYPED, "-%c", o->letter);
	else
		snprintf(out, TYPED, "--%s", o->name);
	return out;
}

/* Takes the value of an option: the text joined to it, or the next word. */
static int take(struct vv_args *a, const struct vv_args_option *o, bool by_letter, const char *joined)
{
	char name[TYPED];

	if (!o->value)
		return store(a, o, by_letter, "");
	if (joined)
		return store(a, o, by_letter, joined);
	a->open = a->at == a->argc ? o : NULL;
	if (a->open)
		return vv_err_set(VV_EINVAL, "%s%soption '%s' needs a value (%s)", a->verb ? a->verb : "", a->verb ? ": " : "", typed(o, by_letter, name),
				  o->value);
	return store(a, o, by_letter, a->argv[a->at++]);
}

static int parse_long(struct vv_args *a, const char *word)
{
	size_t len = strcspn(word + 2, "=");
	const char *value = word[2 + len] ? word + 2 + len + 1 : NULL;
	const struct vv_args_option *o = find_any(a, word + 2, len, 0);
	char name[64];

	if (!o) {
		snprintf(name, sizeof(name), "%.*s", (int)len, word + 2);
		return complain(a, "unknown option", word,
				nearest_in(shared, name, nearest_in(a->option, name, NULL)));
	}
	if (value && !o->value)
		return vv_err_set(VV_EINVAL, "option '--%s' takes no value, but was given '%s'", o->name, value);
	return take(a, o, false, value);
}

static int parse_short(struct vv_args *a, const char *word)
{
	int rc = 0;

	for (const char *p = word + 1; rc == 0 && *p; p++) {
		const struct vv_args_option *o = find_any(a, NULL, 0, *p);

		if (!o)
			return complain(a, "unknown option", word, nearest_in(a->option, word + 1, NULL));
		rc = take(a, o, true, p[1] ? p + 1 : NULL);
		if (o->value)
			break;
	}
	return rc;
}

/* No option is a digit, and -2 is an epoch. */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !isdigit((unsigned char)word[1]);
}

static int parse_option(struct vv_args *a)
{
	const char *word = a->argv[a->at++];

	return word[1] == '-' ? parse_long(a, word) : parse_short(a, word);
}

int vv_args_parse_front(struct vv_args *a)
{
	int rc = 0;

	while (rc == 0 && a->at < a->argc && is_option(a->argv[a->at]) && strcmp(a->argv[a->at], "--") != 0)
		rc = parse_option(a);
	return rc;
}

int vv_args_parse_rest(struct vv_args *a, const char *verb, const struct vv_args_option *option)
{
	bool ended = false;
	int rc = 0;

	a->verb = verb;
	a->option = option;
	while (rc == 0 && a->at < a->argc) {
		if (ended || !is_option(a->argv[a->at])) {
			a->operand[a->n_operands++] = a->argv[a->at++];
		} else if (strcmp(a->argv[a->at], "--") == 0) {
			ended = true;
			a->at++;
		} else {
			rc = parse_option(a);
		}
	}
	return rc;
}

/* ---- the given values ------------------------------------------------------------------------ */

const char *vv_args_value(const struct vv_args *a, const char *name)
{
	const struct vv_args_option *o = find(a->option, name, strlen(name), 0);

	return o ? a->value[o - a->option] : NULL;
}

static const char *name_of(const struct vv_args *a, const char *name, char out[TYPED])
{
	const struct vv_args_option *o = find(a->option, name, strlen(name), 0);

	return typed(a->given[o - a->option], a->by_letter[o - a->option], out);
}

int vv_args_set(const struct vv_args *a, const char *name, struct vv_conf *c, const char *item)
{
	const char *text = vv_args_value(a, name);
	char allowed[VV_CONF_WORDS], word[TYPED];

	if (!text)
		return 0;
	if (!vv_conf_fits(c, item, text, allowed))
		return vv_err_set(VV_EINVAL, "%s: %s '%.80s' is not %s", a->verb, name_of(a, name, word), text, allowed);
	return vv_conf_set(c, item, text, "command line");
}

int vv_args_conf(const struct vv_args *a, const struct vv_conf_item *item, size_t n, struct vv_conf *out)
{
	int rc = vv_conf_init(out, item, n);

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = vv_args_set(a, item[i].name, out, item[i].name);
	return rc;
}

int vv_args_number(const struct vv_args *a, const char *name, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *text = vv_args_value(a, name);
	unsigned long long v;
	char *end = NULL, word[TYPED];

	if (!text)
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || v < min || v > max)
		return vv_err_set(VV_EINVAL, "%s: %s '%s' is not a whole number from %llu to %llu", a->verb, name_of(a, name, word), text,
				  (unsigned long long)min, (unsigned long long)max);
	*out = v;
	return 0;
}
