#include "engine/files/segment_policy.h"
#include "base/err.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 64, PAGE_LEAST = 64, PAGE_MOST = 1 << 20 };

static const char *const standard = "all=pages";

size_t vv_segment_policy_next(const struct vv_segment_policy_rule *r, size_t chunk, const uint8_t *p, size_t n)
{
	size_t page = r->page ? r->page : chunk;

	if (r->cut == VV_SEGMENT_POLICY_GEAR)
		return vv_cdc_next(&r->gear, p, n, true);
	if (r->cut == VV_SEGMENT_POLICY_RABIN)
		return vv_rabin_next(&r->rabin, p, n, true);
	return page < n ? page : n;
}

/* ---- parsing --------------------------------------------------------------------------------- */

static int set_cut(struct vv_segment_policy_rule *r, const char *word)
{
	size_t name = strcspn(word, ":"), min, avg, max;
	const char *sizes = word[name] ? word + name + 1 : NULL;
	bool gear = name == 4 && memcmp(word, "gear", 4) == 0, rabin = name == 5 && memcmp(word, "rabin", 5) == 0;
	int end = 0;

	if (name == 5 && memcmp(word, "pages", 5) == 0) {
		r->cut = VV_SEGMENT_POLICY_PAGES;
		r->page = 0;
		if (sizes && (sscanf(sizes, "%8zu%n", &r->page, &end) != 1 || sizes[end] || r->page < PAGE_LEAST || r->page > PAGE_MOST))
			return vv_err_set(VV_EINVAL, "segments: '%s': a page has %d to %d bytes", word, PAGE_LEAST, PAGE_MOST);
		return 0;
	}
	if (!gear && !rabin)
		return vv_err_set(VV_EINVAL, "segments: '%s' is no way to cut: pages, gear or rabin, with ':MIN/AVG/MAX' if need be", word);
	min = VV_RABIN_MIN;
	avg = VV_RABIN_AVG;
	max = VV_RABIN_MAX;
	if (sizes && (sscanf(sizes, "%10zu/%10zu/%10zu%n", &min, &avg, &max, &end) != 3 || sizes[end]))
		return vv_err_set(VV_EINVAL, "segments: '%s': sizes are MIN/AVG/MAX, in bytes", word);
	r->cut = gear ? VV_SEGMENT_POLICY_GEAR : VV_SEGMENT_POLICY_RABIN;
	return gear ? vv_cdc_init(&r->gear, min, avg, max) : vv_rabin_init(&r->rabin, min, avg, max);
}

static int set_code(struct vv_segment_policy_rule *r, const char *word)
{
	static const char *const codes[] = { "auto", "zstd", "trail", "deflate", "none" };

	for (uint8_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(word, codes[i]) == 0) {
			r->code = i;
			return 0;
		}
	return vv_err_set(VV_EINVAL, "segments: '%s' is no way to code: auto, zstd, trail, deflate or none", word);
}

/* SEGMENT=CUT[+CODE] */
static int set_rule(struct vv_segment_policy *p, char *word)
{
	char *what = strchr(word, '='), *code;
	size_t name = what ? (size_t)(what - word) : strlen(word);
	bool all = name == 3 && memcmp(word, "all", 3) == 0;
	unsigned segment = vv_segment_find(word, name);
	struct vv_segment_policy_rule r = { 0 };
	int rc;

	if (!what || (!all && !segment))
		return vv_err_set(VV_EINVAL, "segments: '%s' is not SEGMENT=CUT, with heap, stack, code, library, anon, shared, file, vdso or all", word);
	code = strchr(++what, '+');
	if (code)
		*code++ = '\0';
	rc = set_cut(&r, what);
	if (rc == 0 && code)
		rc = set_code(&r, code);
	for (unsigned i = VV_SEGMENT_NONE + 1; rc == 0 && i < VV_SEGMENTS; i++)
		if (all || i == segment)
			p->rule[i] = r;
	return rc;
}

static int set_rules(struct vv_segment_policy *p, const char *text)
{
	char word[WORD];
	int rc = 0;

	while (rc == 0 && *text) {
		size_t n = strcspn(text, ",");

		if (n >= sizeof(word))
			return vv_err_set(VV_EINVAL, "segments: '%.*s' is too long", (int)n, text);
		memcpy(word, text, n);
		word[n] = '\0';
		rc = set_rule(p, word);
		text += n + (text[n] == ',');
	}
	return rc;
}

int vv_segment_policy_init(struct vv_segment_policy *p, const char *text)
{
	int rc;

	*p = (struct vv_segment_policy){ .rule[VV_SEGMENT_NONE].cut = VV_SEGMENT_POLICY_GEAR };
	rc = vv_cdc_init(&p->rule[VV_SEGMENT_NONE].gear, VV_CDC_MIN, VV_CDC_AVG, VV_CDC_MAX);
	if (rc == 0)
		rc = set_rules(p, standard);
	return rc || !text ? rc : set_rules(p, text);
}
