#include "cli/base/spec.h"
#include "base/err.h"
#include "core/format/run.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Digits at *s, which moves past them; 0 if there is no epoch. */
static uint64_t number(const char **s)
{
	char *end = NULL;
	unsigned long long v;

	if (!isdigit((unsigned char)**s))
		return 0;
	errno = 0;
	v = strtoull(*s, &end, 10);
	*s = end;
	return errno || v > VV_MAX_EPOCH ? 0 : v;
}

/* An epoch or a range at *s; false if it is neither. */
static int range(const char **s, uint64_t *first, uint64_t *last)
{
	*first = *last = number(s);
	if (strncmp(*s, "..", 2) == 0) {
		*s += 2;
		*last = number(s);
	}
	return *first && *last >= *first;
}

int vv_spec_range(const char *text, uint64_t *first, uint64_t *last)
{
	const char *s = text;

	if (!range(&s, first, last) || *s)
		return vv_err_set(VV_EINVAL, "'%s' is no epoch (such as 7) and no range of epochs (such as 3..7)", text);
	return 0;
}

int vv_spec_parse(const char *text, unsigned allow, struct vv_spec *out)
{
	size_t n = strcspn(text, "@:");
	struct vv_spec spec = { .first = 0 };
	const char *s = text + n;
	int fine = 1;

	memcpy(spec.lineage, text, n < sizeof(spec.lineage) ? n : sizeof(spec.lineage) - 1);
	if (n >= sizeof(spec.lineage) || vv_name_check_lineage(spec.lineage) < 0)
		return vv_name_check_lineage(n >= sizeof(spec.lineage) ? text : spec.lineage);
	if (*s == '@') {
		s++;
		fine = range(&s, &spec.first, &spec.last) && (allow & (VV_SPEC_EPOCH | VV_SPEC_RANGE)) &&
		       (spec.first == spec.last || allow & VV_SPEC_RANGE);
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
