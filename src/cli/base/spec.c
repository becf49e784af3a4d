#include "cli/base/spec.h"
#include "base/err.h"
#include "core/format/run.h"
#include "engine/lineage/label.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -N: N, 1 or more; 0: it is none. */
static uint64_t from_end(const char *word)
{
	size_t n = word[0] == '-' ? strspn(word + 1, "0123456789") : 0;

	return n >= 1 && n <= 10 && !word[1 + n] ? strtoull(word + 1, NULL, 10) : 0;
}

/* An epoch: a number, or a word that is looked up later. */
static bool parse_epoch(const char *text, size_t n, uint64_t *number, char word[VV_NAME_LABEL_MAX + 1])
{
	*number = 0;
	if (n > VV_NAME_LABEL_MAX)
		return false;
	memcpy(word, text, n);
	word[n] = '\0';
	if (n && strspn(word, "0123456789") == n) {
		errno = 0;
		*number = strtoull(word, NULL, 10);
		word[0] = '\0';
		return !errno && *number >= 1 && *number <= VV_MAX_EPOCH;
	}
	if (from_end(word) == 1)
		strcpy(word, "latest");
	return strcmp(word, "latest") == 0 || from_end(word) || vv_name_check_label(word) == 0;
}

/* An epoch or a range at *s, which moves past it; false if it is neither. */
static bool parse_range(const char **s, struct vv_spec *out)
{
	size_t n = strcspn(*s, ":");
	const char *dots = strstr(*s, ".."), *end = *s + n;
	bool fine;

	dots = dots && dots < end ? dots : NULL;
	fine = parse_epoch(*s, (size_t)((dots ? dots : end) - *s), &out->first, out->first_word);
	out->last = out->first;
	memcpy(out->last_word, out->first_word, sizeof(out->last_word));
	if (fine && dots)
		fine = parse_epoch(dots + 2, (size_t)(end - dots - 2), &out->last, out->last_word);
	*s = end;
	return fine;
}

static bool is_one(const struct vv_spec *spec)
{
	return spec->first == spec->last && strcmp(spec->first_word, spec->last_word) == 0;
}

bool vv_spec_has_epoch(const struct vv_spec *spec)
{
	return spec->first || spec->first_word[0];
}

bool vv_spec_is_relative(const struct vv_spec *spec)
{
	return strcmp(spec->first_word, "latest") == 0 || from_end(spec->first_word);
}

int vv_spec_range(const char *text, struct vv_spec *out)
{
	const char *s = text;

	*out = (struct vv_spec){ .first = 0 };
	if (!parse_range(&s, out) || *s)
		return vv_err_set(VV_EINVAL, "'%s' is no epoch (such as 7, latest or a label) and no range of epochs (such as 3..7)", text);
	return 0;
}

static int look_up(const struct vv_lineage *lin, const char *word, uint64_t *epoch)
{
	uint64_t back = strcmp(word, "latest") == 0 ? 1 : from_end(word), found = UINT64_MAX, n = 0;
	int rc = 0;

	if (!word[0])
		return 0;
	if (!back)
		return vv_label_find(lin, word, epoch);
	while (rc == 0 && found && n < back) {
		rc = vv_catalog_newest(lin, found, &found);
		n += rc == 0 && found;
	}
	if (rc == 0 && !found)
		rc = vv_err_set(VV_ENOENT, "lineage '%s' of store '%s' has %" PRIu64 " epoch%s: there is no epoch '%s'", lin->name, lin->store->url, n,
				n == 1 ? "" : "s", word);
	*epoch = found;
	return rc;
}

int vv_spec_look_up(struct vv_spec *spec, const struct vv_lineage *lin)
{
	bool one = is_one(spec);
	int rc = look_up(lin, spec->first_word, &spec->first);

	if (rc == 0 && one)
		spec->last = spec->first;
	else if (rc == 0)
		rc = look_up(lin, spec->last_word, &spec->last);
	if (rc == 0 && spec->first > spec->last)
		rc = vv_err_set(VV_EINVAL, "epochs %" PRIu64 "..%" PRIu64 " of lineage '%s': the first is after the last", spec->first, spec->last, lin->name);
	return rc;
}

int vv_spec_parse(const char *text, unsigned allow, struct vv_spec *out)
{
	size_t n = strcspn(text, "@:");
	struct vv_spec spec = { .first = 0 };
	const char *s = text + n;
	bool fine = true;

	memcpy(spec.lineage, text, n < sizeof(spec.lineage) ? n : sizeof(spec.lineage) - 1);
	if (n >= sizeof(spec.lineage) || vv_name_check_lineage(spec.lineage) < 0)
		return vv_name_check_lineage(n >= sizeof(spec.lineage) ? text : spec.lineage);
	if (*s == '@') {
		s++;
		fine = parse_range(&s, &spec) && (allow & (VV_SPEC_EPOCH | VV_SPEC_RANGE)) && (is_one(&spec) || allow & VV_SPEC_RANGE);
	}
	if (fine && *s == ':' && s[1] && allow & VV_SPEC_REGION) {
		spec.region = s + 1;
		s += strlen(s);
	}
	if (!fine || *s)
		return vv_err_set(VV_EINVAL, "'%s' is not of the form LINEAGE%s%s", text,
				  allow & VV_SPEC_RANGE ? "@EPOCH or LINEAGE@FIRST..LAST" :
				  allow & VV_SPEC_EPOCH ? "[@EPOCH]" :
							  "",
				  allow & VV_SPEC_REGION ? "[:REGION]" : "");
	*out = spec;
	return 0;
}
