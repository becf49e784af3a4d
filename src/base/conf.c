#include "base/conf.h"
#include "base/did_you_mean.h"
#include "base/env.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/did_you_mean.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 20, MAX_VALUE = 4096, ENV_NAME = 128 };

/* A number with a unit out of a list; the whole text must match. */
struct conf_unit {
	const char *name;
	double scale;
};

/* Parses digits, perhaps a point and more digits. Not by strtod, because the result must not depend
 * on the application's locale. */
static bool parse_decimal(const char **text, double *out)
{
	const char *s = *text;
	double v = 0, scale = 1;

	for (; isdigit((unsigned char)*s); s++)
		v = v * 10 + (*s - '0');
	if (*s == '.')
		for (s++; isdigit((unsigned char)*s); s++)
			v += (*s - '0') * (scale /= 10);
	if (s == *text || (s == *text + 1 && **text == '.'))
		return false;
	*text = s;
	*out = v;
	return true;
}

static bool parse_units(const char *text, const struct conf_unit *units, double *out)
{
	double v;

	if (!parse_decimal(&text, &v))
		return false;
	while (*text == ' ')
		text++;
	for (; units->name; units++)
		if (strcasecmp(text, units->name) == 0) {
			*out = v * units->scale;
			return isfinite(*out);
		}
	return false;
}

static const struct conf_unit sizes[] = {
	{ "", 1 },           { "B", 1 },          { "K", 1024.0 },     { "KB", 1024.0 },
	{ "KiB", 1024.0 },   { "M", 0x1p20 },     { "MB", 0x1p20 },    { "MiB", 0x1p20 },
	{ "G", 0x1p30 },     { "GB", 0x1p30 },    { "GiB", 0x1p30 },   { "T", 0x1p40 },
	{ "TB", 0x1p40 },    { "TiB", 0x1p40 },   { NULL, 0 },
};
static const struct conf_unit durations[] = {
	{ "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "m", 60 }, { "min", 60 }, { "h", 3600 }, { "d", 86400 }, { "w", 604800 }, { NULL, 0 },
};
static const struct conf_unit fractions[] = { { "", 1 }, { "%", 0.01 }, { NULL, 0 } };
static const struct conf_unit percents[] = { { "%", 0.01 }, { NULL, 0 } };
static const struct conf_unit counts[] = { { "", 1 }, { NULL, 0 } };

static bool parse_bool(const char *text, bool *out)
{
	static const char *const yes[] = { "yes", "true", "on", "1" }, *const no[] = { "no", "false", "off", "0" };

	for (size_t i = 0; i < 4; i++)
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			*out = strcasecmp(text, yes[i]) == 0;
			return true;
		}
	return false;
}

/* Does text match one alternative of "none|lz4|zstd[:N]|auto"? */
static bool is_choice(const char *words, const char *text)
{
	for (const char *w = words; w; w = strchr(w, '|') ? strchr(w, '|') + 1 : NULL) {
		size_t n = strcspn(w, "|["), arg = strcspn(text, ":");

		if (arg != n || strncmp(w, text, n) != 0)
			continue;
		if (text[n] == '\0')
			return true;
		if (w[n] == '[' && isdigit((unsigned char)text[n + 1]) &&
		    strspn(text + n + 1, "0123456789") == strlen(text + n + 1) && strlen(text + n + 1) < 6)
			return true;
	}
	return false;
}

static bool in_range(const struct vv_conf_item *it, double v)
{
	return v >= (double)it->min && (!it->max || v <= (double)it->max) && v <= 0x1p63 && v == floor(v);
}

static void kind_words(const struct vv_conf_item *it, char *out, size_t cap)
{
	static const char *const words[] = {
		[VV_CONF_TEXT] = "text",
		[VV_CONF_BOOL] = "yes or no",
		[VV_CONF_COUNT] = "a whole number",
		[VV_CONF_SIZE] = "a size such as 4096, 64KiB or 2GiB",
		[VV_CONF_DURATION] = "a time such as 90, 10m or 2h",
		[VV_CONF_FRACTION] = "a share up to 100% such as 2% or 0.02",
		[VV_CONF_SHARE] = "a share up to 100% such as 5%, or a size such as 4096, 64KiB or 2GiB",
		[VV_CONF_CHOICE] = "one of ",
	};
	bool sized = it->kind == VV_CONF_COUNT || it->kind == VV_CONF_SIZE || it->kind == VV_CONF_SHARE;

	if (sized && it->max)
		snprintf(out, cap, "%s from %llu to %llu", words[it->kind], (unsigned long long)it->min,
			 (unsigned long long)it->max);
	else if (it->kind == VV_CONF_SHARE && it->words)
		snprintf(out, cap, "%s, or %s", words[it->kind], it->words);
	else
		snprintf(out, cap, "%s%s", words[it->kind], it->kind == VV_CONF_CHOICE ? it->words : "");
}

static bool valid(const struct vv_conf_item *it, const char *text)
{
	double v = 0;
	bool b;

	switch (it->kind) {
	case VV_CONF_BOOL:
		return parse_bool(text, &b);
	case VV_CONF_COUNT:
		return parse_units(text, counts, &v) && in_range(it, v);
	case VV_CONF_SIZE:
		return parse_units(text, sizes, &v) && in_range(it, v);
	case VV_CONF_DURATION:
		return parse_units(text, durations, &v);
	case VV_CONF_FRACTION:
		return parse_units(text, fractions, &v) && v <= 1;
	case VV_CONF_SHARE:
		if (it->words && is_choice(it->words, text))
			return true;
		return parse_units(text, percents, &v) ? v <= 1 : parse_units(text, sizes, &v) && in_range(it, v);
	case VV_CONF_CHOICE:
		return is_choice(it->words, text);
	case VV_CONF_TEXT:
		return strlen(text) < MAX_VALUE;
	}
	return false;
}

/* Names may be written with '-' or '_', in any case. */
static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		char x = *a == '_' ? '-' : (char)tolower((unsigned char)*a);
		char y = *b == '_' ? '-' : (char)tolower((unsigned char)*b);

		if (x != y)
			return false;
	}
	return *a == *b;
}

static const struct vv_conf_item *find(const struct vv_conf *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (same_name(c->item[i].name, name))
			return &c->item[i];
	return NULL;
}

static int store(struct vv_conf_value *v, const char *text, const char *origin)
{
	char *t = vv_mem_strdup(text), *o = vv_mem_strdup(origin);

	if (!t || !o) {
		vv_mem_free(t);
		vv_mem_free(o);
		return VV_ENOMEM;
	}
	vv_mem_free(v->text);
	vv_mem_free(v->origin);
	*v = (struct vv_conf_value){ t, o };
	return 0;
}

int vv_conf_init(struct vv_conf *c, const struct vv_conf_item *item, size_t n)
{
	int rc = 0;

	*c = (struct vv_conf){ .item = item, .n = n, .value = vv_mem_new(n, sizeof(*c->value)) };
	if (!c->value)
		return VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = store(&c->value[i], item[i].initial, "default");
	if (rc)
		vv_conf_fini(c);
	return rc;
}

void vv_conf_fini(struct vv_conf *c)
{
	for (size_t i = 0; c->value && i < c->n; i++) {
		vv_mem_free(c->value[i].text);
		vv_mem_free(c->value[i].origin);
	}
	vv_mem_free(c->value);
	*c = (struct vv_conf){ 0 };
}

static int unknown(const struct vv_conf *c, const char *name, const char *origin)
{
	const char *best = NULL;

	for (size_t i = 0; i < c->n; i++)
		best = vv_did_you_mean_best(name, c->item[i].name, best);
	return vv_err_set(VV_EINVAL, "%s: unknown option '%.60s'%s%s%s ('varve config --all' lists them all)", origin, name,
			  best ? "; did you mean '" : "", best ? best : "", best ? "'?" : "");
}

int vv_conf_set(struct vv_conf *c, const char *name, const char *text, const char *origin)
{
	const struct vv_conf_item *it = find(c, name);
	char allowed[VV_CONF_WORDS];

	if (!it)
		return unknown(c, name, origin);
	if (!vv_conf_fits(c, name, text, allowed))
		return vv_err_set(VV_EINVAL, "%s: %s = '%.80s' is not %s", origin, it->name, text, allowed);
	return store(&c->value[it - c->item], text, origin);
}

bool vv_conf_fits(const struct vv_conf *c, const char *name, const char *text, char allowed[VV_CONF_WORDS])
{
	const struct vv_conf_item *it = find(c, name);

	kind_words(it, allowed, VV_CONF_WORDS);
	return valid(it, text);
}

static char *trim(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return s;
}

/* Splits "name = value" in place. */
static int set_pair(struct vv_conf *c, char *pair, const char *origin)
{
	char *eq = strchr(pair, '=');

	if (!eq)
		return vv_err_set(VV_EINVAL, "%s: '%.60s' is not of the form name = value", origin, pair);
	*eq = '\0';
	return vv_conf_set(c, trim(pair), trim(eq + 1), origin);
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'';
}

/* The end of a text in quotes that begins here: its closing quote, or the end of the line. A
 * backslash is before a quote or a backslash that belongs to the text. */
static char *find_quote(char *p)
{
	char quote = *p;

	for (p++; *p && *p != quote; p++)
		if (*p == '\\' && p[1])
			p++;
	return p;
}

static void cut_comment(char *s)
{
	bool value = false; /* a quote that comes next begins the value */

	for (char *p = s; *p; p++) {
		if ((*p == '#' || *p == ';') && (p == s || isspace((unsigned char)p[-1]))) {
			*p = '\0';
			return;
		}
		if (value && is_quote(*p))
			p = find_quote(p);
		if (!*p)
			return;
		value = *p == '=' || (value && isspace((unsigned char)*p));
	}
}

/* Removes the quotes of "a text" or 'a text', in place. *rest: after the closing quote; NULL: there
 * is none. */
static void unquote(char *p, char **rest)
{
	char *to = p, *end = find_quote(p);

	*rest = *end ? end + 1 : NULL;
	for (char *from = p + 1; from < end; from++) {
		from += *from == '\\' && from + 1 < end;
		*to++ = *from;
	}
	*to = '\0';
}

static int no_quote(const char *pair, const char *origin)
{
	return vv_err_set(VV_EINVAL, "%s: the quote in '%.60s' is not closed", origin, pair);
}

/* "name = value", where the value may be in quotes. */
static int set_line(struct vv_conf *c, char *pair, const char *origin)
{
	char *eq = strchr(pair, '='), *value = eq ? trim(eq + 1) : NULL, *rest;

	if (!value || !is_quote(*value))
		return set_pair(c, pair, origin);
	if (!*find_quote(value))
		return no_quote(pair, origin);
	*eq = '\0';
	unquote(value, &rest);
	if (*rest)
		return vv_err_set(VV_EINVAL, "%s: %.60s: '%.60s' follows the closing quote", origin, pair, rest);
	return vv_conf_set(c, trim(pair), value, origin);
}

static int parse_line(struct vv_conf *c, char *line, const char *origin)
{
	char *s = trim(line);

	cut_comment(s);
	s = trim(s);
	if (!*s)
		return 0;
	if (*s == '[')
		return s[strlen(s) - 1] == ']' ? 0 : vv_err_set(VV_EINVAL, "%s: ']' is missing in '%.60s'", origin, s);
	return set_line(c, s, origin);
}

int vv_conf_parse(struct vv_conf *c, const char *text, size_t n, const char *origin)
{
	const char *end = text + n;
	int rc = 0;

	for (unsigned line = 1; rc == 0 && text < end; line++) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((eol ? eol : end) - text);
		char where[300], copy[MAX_VALUE];

		snprintf(where, sizeof(where), "%.250s:%u", origin, line);
		if (len >= sizeof(copy) || memchr(text, 0, len))
			return vv_err_set(VV_EINVAL, "%s: not a line of text", where);
		memcpy(copy, text, len);
		copy[len] = '\0';
		rc = parse_line(c, copy, where);
		text += len + 1;
	}
	return rc;
}

/* The path leads to no file, as far as this user can see: a folder of it may be another user's. */
static bool is_absent(const char *path, int why)
{
	struct stat st;

	return why == ENOENT || why == ENOTDIR || (why == EACCES && stat(path, &st) < 0);
}

int vv_conf_read_file(struct vv_conf *c, const char *path, bool must_exist)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
	struct stat st;
	char *text = NULL;
	ssize_t n = 0;

	if (fd < 0)
		rc = errno;
	if (fd < 0)
		return !must_exist && is_absent(path, rc) ? 0 : vv_err_sys(rc, "cannot open '%s'", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE)
		rc = vv_err_set(VV_EINVAL, "'%s' is not a configuration file (a text of at most 1 MiB)", path);
	if (rc == 0) {
		text = vv_mem_new((size_t)st.st_size + 1, 1);
		rc = text ? 0 : VV_ENOMEM;
	}
	if (rc == 0) {
		n = read(fd, text, (size_t)st.st_size);
		rc = n < 0 ? vv_err_sys(errno, "cannot read '%s'", path) : vv_conf_parse(c, text, (size_t)n, path);
	}
	vv_mem_free(text);
	close(fd);
	return rc;
}

/* The name in the environment: VARVE_KEEP_EVERY. 0: too long for one. */
static size_t env_name(const char *prefix, const char *name, char *out, size_t cap)
{
	size_t n = (size_t)snprintf(out, cap, "%s%s", prefix, name);

	for (size_t k = 0; n < cap && k < n; k++)
		out[k] = out[k] == '-' ? '_' : (char)toupper((unsigned char)out[k]);
	return n < cap ? n : 0;
}

/* Warns of a variable that resembles an option and is none: it has no effect, which the user may
 * not expect. Other programs may use the prefix for other names. */
static void warn_of_slips(const struct vv_conf *c, const char *prefix)
{
	static atomic_bool said;
	size_t skip = strlen(prefix);

	for (char **e = environ; e && *e && !atomic_load(&said); e++) {
		char word[ENV_NAME], name[ENV_NAME], best[ENV_NAME] = "";
		size_t n = strcspn(*e, "=");
		bool known = false;

		if (strncmp(*e, prefix, skip) != 0 || n >= sizeof(word))
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)n, *e);
		for (size_t i = 0; i < c->n && !known; i++) {
			if (!env_name(prefix, c->item[i].name, name, sizeof(name)))
				continue;
			known = strcmp(word, name) == 0;
			if (vv_did_you_mean_best(word + skip, name + skip, best[0] ? best + skip : NULL) == name + skip)
				memcpy(best, name, sizeof(best));
		}
		if (known || !best[0])
			continue;
		vv_log_warn("%s in the environment is no option, and does nothing; did you mean %s?", word, best);
		atomic_store(&said, true);
	}
}

int vv_conf_read_env(struct vv_conf *c, const char *prefix)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->n; i++) {
		char var[ENV_NAME];
		const char *text = env_name(prefix, c->item[i].name, var, sizeof(var)) ? vv_env_get(var) : NULL;

		if (text)
			rc = vv_conf_set(c, c->item[i].name, text, var);
	}
	if (rc == 0)
		warn_of_slips(c, prefix);
	return rc;
}

static bool is_separator(char c)
{
	return c == ',' || isspace((unsigned char)c);
}

/* Cuts the next pair out of the text, and removes quotes and backslashes from its value. *next: the
 * text after it. NULL: the text has none left, or rc is set. */
static char *next_pair(char *text, char **next, const char *origin, int *rc)
{
	char *pair, *to;
	bool value = false;
	char quote = 0; /* of the part that text is in */

	while (is_separator(*text))
		text++;
	pair = to = text;
	for (; *text && (quote || !is_separator(*text)); text++) {
		if (value && (quote ? *text == quote : *text == '"' || (*text == '\'' && text[-1] == '='))) {
			quote = quote ? 0 : *text;
			continue;
		}
		if (value && *text == '\\' && text[1])
			text++;
		value |= *text == '=';
		*to++ = *text;
	}
	if (quote) {
		*to = '\0';
		*rc = no_quote(pair, origin);
	}
	*next = *text ? text + 1 : text;
	*to = '\0';
	return to > pair && !quote ? pair : NULL;
}

int vv_conf_read_string(struct vv_conf *c, const char *options, const char *origin)
{
	char *copy = vv_mem_strdup(options ? options : ""), *next = copy, *pair, *eq;
	int rc = copy ? 0 : VV_ENOMEM;

	while (rc == 0 && (pair = next_pair(next, &next, origin, &rc))) {
		eq = strchr(pair, '=');
		if (!eq)
			rc = vv_err_set(VV_EINVAL, "%s: '%.60s' is not of the form name=value; a value with blanks or commas is put in quotes: name=\"a b\"", origin, pair);
		else
			*eq = '\0';
		if (rc == 0)
			rc = vv_conf_set(c, pair, eq + 1, origin);
	}
	vv_mem_free(copy);
	return rc;
}

const char *vv_conf_text(const struct vv_conf *c, const char *name)
{
	return c->value[find(c, name) - c->item].text;
}

const char *vv_conf_origin(const struct vv_conf *c, const char *name)
{
	return c->value[find(c, name) - c->item].origin;
}

bool vv_conf_bool(const struct vv_conf *c, const char *name)
{
	bool b = false;

	parse_bool(vv_conf_text(c, name), &b);
	return b;
}

uint64_t vv_conf_number(const struct vv_conf *c, const char *name)
{
	double v = 0;

	parse_units(vv_conf_text(c, name), sizes, &v);
	return (uint64_t)v;
}

double vv_conf_real(const struct vv_conf *c, const char *name)
{
	double v = 0;

	parse_units(vv_conf_text(c, name), find(c, name)->kind == VV_CONF_FRACTION ? fractions : durations, &v);
	return v;
}

uint64_t vv_conf_share(const struct vv_conf *c, const char *name, uint64_t whole)
{
	const char *text = vv_conf_text(c, name);
	double v = 0;

	if (!parse_units(text, percents, &v))
		return vv_conf_number(c, name);
	return v < 1 ? (uint64_t)round(v * (double)whole) : whole;
}
