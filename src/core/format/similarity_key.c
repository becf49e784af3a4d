#include "core/format/similarity_key.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/format/digest.h"
#include "core/format/head.h"
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

enum {
	GROUPS = 10,          /* the match and \1..\9 */
	/* longer names are not matched: a malicious name must not cause a long search */
	MATCHED = 4096,
	SUFFIX = 48,          /* bytes at most of _type_class */
	MARK = 1 + 16,        /* bytes of the mark that replaces the rest of a cut name */
};

struct vv_similarity_key {
	bool fold;
	bool matches;
	regex_t regex;
	char *text; /* with \1..\9 and \\; no other backslashes */
};

/* ---- the rule -------------------------------------------------------------------------------- */

/* The last '=' that has no backslash before it; NULL: there is none. */
static char *find_middle(char *rule)
{
	char *found = NULL;

	for (char *p = rule; *p; p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (*p == '=')
			found = p;
	}
	return found;
}

/* "\=" is an equals sign. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1] == '=')
			s++;
		else if (*s == '\\' && s[1])
			*to++ = *s++;
		*to++ = *s;
	}
	*to = '\0';
}

static int check_text(const char *rule, const char *text, size_t groups)
{
	for (const char *p = text; *p; p++) {
		if (*p != '\\')
			continue;
		p++;
		if (*p >= '1' && *p <= '9' && (size_t)(*p - '0') > groups)
			return vv_err_set(VV_EINVAL, "key rule '%s': its text has \\%c, but the expression has %zu groups", rule, *p, groups);
		if (!*p || !strchr("123456789\\", *p))
			return vv_err_set(VV_EINVAL, "key rule '%s': behind a backslash its text may have 1 to 9, = or another backslash", rule);
	}
	return 0;
}

static int compile(struct vv_similarity_key *k, const char *rule, const char *expression)
{
	char why[200];
	int rc;

	if (!*expression)
		return vv_err_set(VV_EINVAL, "key rule '%s': there is no expression before the '='", rule);
	rc = regcomp(&k->regex, expression, REG_EXTENDED);
	if (rc == REG_ESPACE)
		return vv_err_set(VV_ENOMEM, "key rule '%s': out of memory, or the expression is too large", rule);
	if (rc) {
		regerror(rc, &k->regex, why, sizeof(why));
		return vv_err_set(VV_EINVAL, "key rule '%s': '%s' is no extended regular expression: %s", rule, expression, why);
	}
	k->matches = true;
	return check_text(rule, k->text, k->regex.re_nsub);
}

static int parse(struct vv_similarity_key *k, const char *rule)
{
	char *copy = vv_mem_strdup(rule), *middle;
	int rc = 0;

	if (!copy)
		return VV_ENOMEM;
	middle = find_middle(copy);
	if (!middle) {
		rc = vv_err_set(VV_EINVAL, "key rule '%s': want REGEX=TEXT, in which TEXT takes the place of what REGEX matches, or none", rule);
		goto out;
	}
	*middle++ = '\0';
	unescape(copy);
	unescape(middle);
	k->text = vv_mem_strdup(middle);
	rc = k->text ? compile(k, rule, copy) : VV_ENOMEM;
out:
	vv_mem_free(copy);
	return rc;
}

int vv_similarity_key_new(const char *rule, struct vv_similarity_key **out)
{
	struct vv_similarity_key *k = vv_mem_new(1, sizeof(*k));
	int rc = 0;

	if (!k)
		return VV_ENOMEM;
	k->fold = !rule;
	if (rule && strcmp(rule, "none") != 0)
		rc = parse(k, rule);
	if (rc) {
		vv_similarity_key_free(k);
		return rc;
	}
	*out = k;
	return 0;
}

void vv_similarity_key_free(struct vv_similarity_key *k)
{
	if (!k)
		return;
	if (k->matches)
		regfree(&k->regex);
	vv_mem_free(k->text);
	vv_mem_free(k);
}

/* ---- keys ------------------------------------------------------------------------------------ */

struct scribe {
	char *key;
	size_t n, room;  /* room: for the name */
	bool cut;
	size_t fits;     /* the bytes that leave room for the mark of a cut */
	struct vv_digest_stream all; /* of the full text, cut or not */
};

/* Puts one character, completely or not at all. */
static void put(struct scribe *s, const char *p, size_t n)
{
	vv_digest_stream_add(&s->all, p, n);
	s->cut = s->cut || n > s->room - s->n;
	if (s->cut)
		return;
	memcpy(s->key + s->n, p, n);
	s->n += n;
	if (s->n + MARK <= s->room)
		s->fits = s->n;
}

/* Control characters and invalid bytes are written as \xNN. */
static void put_text(struct scribe *s, const char *p, size_t n)
{
	for (const char *end = p + n; p < end;) {
		const unsigned char *u = (const unsigned char *)p;
		size_t len = vv_utf8_len(p);
		bool control = *u < 0x20 || *u == 0x7f || (*u == 0xc2 && u[1] < 0xa0);
		char hex[8];

		if (len && len <= (size_t)(end - p) && !control) {
			put(s, p, len);
			p += len;
			continue;
		}
		snprintf(hex, sizeof(hex), "\\x%02x", *u);
		put(s, hex, 4);
		p++;
	}
}

static void put_folded(struct scribe *s, const char *p)
{
	while (*p) {
		size_t digits = strspn(p, "0123456789"), n = digits + strcspn(p + digits, "0123456789");

		if (digits > 1)
			put(s, "#", 1);
		put_text(s, p + (digits > 1 ? digits : 0), n - (digits > 1 ? digits : 0));
		p += n;
	}
}

static void put_replacement(struct scribe *s, const char *text, const char *name, const regmatch_t *m)
{
	while (*text) {
		size_t n = strcspn(text, "\\");
		const regmatch_t *g;

		put_text(s, text, n);
		text += n;
		if (!*text)
			break;
		g = text[1] == '\\' ? NULL : &m[text[1] - '0'];
		if (!g)
			put_text(s, text, 1);
		else if (g->rm_so >= 0)
			put_text(s, name + g->rm_so, (size_t)(g->rm_eo - g->rm_so));
		text += 2;
	}
}

/* Replaces every match, one after the other. Nothing is inserted at an empty match. */
static void put_replaced(struct scribe *s, const struct vv_similarity_key *k, const char *name)
{
	regmatch_t m[GROUPS];

	for (int flags = 0; *name && regexec(&k->regex, name, GROUPS, m, flags) == 0; flags = REG_NOTBOL) {
		size_t from = (size_t)m[0].rm_so, to = (size_t)m[0].rm_eo;

		if (to == from) {
			size_t len = vv_utf8_len(name + from);

			to = from + (len ? len : name[from] != '\0');
			put_text(s, name, to);
		} else {
			put_text(s, name, from);
			put_replacement(s, k->text, name, m);
		}
		name += to;
	}
	put_text(s, name, strlen(name));
}

static void name_type(char out[SUFFIX], unsigned type, unsigned width, bool swapped, unsigned ndim)
{
	static const char letters[VV_TYPES] = {
		[VV_TYPE_I8] = 'I', [VV_TYPE_I16] = 'I', [VV_TYPE_I32] = 'I', [VV_TYPE_I64] = 'I', [VV_TYPE_U8] = 'U', [VV_TYPE_U16] = 'U',
		[VV_TYPE_U32] = 'U', [VV_TYPE_U64] = 'U', [VV_TYPE_F32] = 'F', [VV_TYPE_F64] = 'F', [VV_TYPE_C64] = 'C', [VV_TYPE_C128] = 'C',
		[VV_TYPE_BF16] = 'B', [VV_TYPE_F16] = 'F', [VV_TYPE_F8_E4M3] = 'F', [VV_TYPE_F8_E5M2] = 'E',
	};
	char type_text[24], class_text[20] = "Scalar";

	if (type < VV_TYPES && letters[type])
		snprintf(type_text, sizeof(type_text), "%c%zu%s", letters[type], 8 * vv_head_type_size(type),
			 vv_head_type_size(type) == 1 ? "" : swapped ? "BE" : "LE");
	else
		snprintf(type_text, sizeof(type_text), "Bytes%u", width);
	if (ndim)
		snprintf(class_text, sizeof(class_text), "Array%uD", ndim);
	snprintf(out, SUFFIX, "_%s_%s", type_text, class_text);
}

void vv_similarity_key_key(const struct vv_similarity_key *k, const char *name, unsigned type, unsigned width, bool swapped, unsigned ndim, char key[VV_SIMILARITY_KEY_MAX])
{
	char suffix[SUFFIX];
	struct scribe s = { .key = key };

	name_type(suffix, type, width, swapped, ndim);
	s.room = VV_SIMILARITY_KEY_MAX - 1 - strlen(suffix);
	vv_digest_stream_init(&s.all);
	name += strspn(name, "/");
	if (k->fold)
		put_folded(&s, name);
	else if (k->matches && strnlen(name, MATCHED + 1) <= MATCHED)
		put_replaced(&s, k, name);
	else
		put_text(&s, name, strlen(name));
	if (s.cut)
		s.n = s.fits + (size_t)sprintf(key + s.fits, "~%016" PRIx64, vv_digest_stream_check(&s.all));
	memcpy(key + s.n, suffix, strlen(suffix) + 1);
}

size_t vv_similarity_key_suffix(const char *key, unsigned type, unsigned width, bool swapped, unsigned ndim)
{
	char suffix[SUFFIX];
	size_t n = strlen(key), len;

	name_type(suffix, type, width, swapped, ndim);
	len = strlen(suffix);
	return n > len && strcmp(key + n - len, suffix) == 0 ? len : 0;
}
