#include "cli/pack/file_sets.h"
#include "base/err.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int vv_file_sets_init(struct vv_file_sets *r, const char *verb, const char *regex)
{
	char why[200];
	int error = regex ? regcomp(&r->regex, regex, REG_EXTENDED) : 0;

	r->given = regex && !error;
	if (!error)
		return 0;
	regerror(error, &r->regex, why, sizeof(why));
	return vv_err_set(VV_EINVAL, "%s: '%s' is no regular expression: %s", verb, regex, why);
}

void vv_file_sets_fini(struct vv_file_sets *r)
{
	if (r->given)
		regfree(&r->regex);
	r->given = false;
}

/* The key by the rule: the matches of its groups, or the whole match. */
static bool key_by_rule(const struct vv_file_sets *r, const char *name, char *key, size_t cap)
{
	regmatch_t m[10];
	size_t used = 0, first = r->regex.re_nsub ? 1 : 0;

	if (regexec(&r->regex, name, 10, m, 0) != 0)
		return false;
	for (size_t i = first; i <= r->regex.re_nsub && i < 10 && used < cap; i++)
		if (m[i].rm_so >= 0)
			used += (size_t)snprintf(key + used, cap - used, "%s%.*s", used ? "/" : "", (int)(m[i].rm_eo - m[i].rm_so), name + m[i].rm_so);
	return used > 0 && used < cap;
}

/* The end of the name, without a suffix whose digit names the format. */
static const char *before_format(const char *name)
{
	static const char *const formats[] = { ".h4", ".h5", ".he4", ".he5", ".hdf4", ".hdf5", ".nc3", ".nc4" };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcasecmp(dot, formats[i]) == 0)
			return dot;
	return name + strlen(name);
}

/* LAMMPS writes restart.50.base beside restart.50.0, restart.50.1, ... */
static bool is_base(const char *last, const char *end)
{
	return end - last > 5 && memcmp(end - 5, ".base", 5) == 0;
}

/* The last number of the name, from..to: empty if there is none. */
static void find_number(const char *name, const char **from, const char **to)
{
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name, *end = before_format(last);

	if (is_base(last, end)) {
		*from = end - 4;
		*to = end;
		return;
	}
	while (end > last && !isdigit((unsigned char)end[-1]))
		end--;
	*to = end;
	for (*from = end; *from > last && isdigit((unsigned char)(*from)[-1]);)
		--*from;
}

/* The key without an expression: the name without its last number. */
static bool key_by_number(const char *name, char *key, size_t cap)
{
	const char *from, *to;

	find_number(name, &from, &to);
	return (size_t)snprintf(key, cap, "%.*s%s%s", (int)(from - name), name, to > from ? "#" : "", to) < cap;
}

bool vv_file_sets_number(const char *name, uint64_t *out)
{
	const char *from, *to;

	find_number(name, &from, &to);
	*out = 0;
	for (const char *s = from; s < to && isdigit((unsigned char)*s); s++)
		*out = *out * 10 + (uint64_t)(*s - '0');
	return to > from && isdigit((unsigned char)*from);
}

bool vv_file_sets_key(const struct vv_file_sets *r, const char *name, char *key, size_t cap)
{
	return r->given ? key_by_rule(r, name, key, cap) : key_by_number(name, key, cap);
}
