/* A scanner in one pass over the document; its only state is the path of open elements. */
#include "store/s3/s3_xml.h"
#include "base/buf.h"
#include "base/err.h"
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 16
#define MAX_NAME 64

struct scan {
	const char *doc, *p, *end;
	vv_s3_xml_fn *fn;
	void *ctx;
	char path[MAX_DEPTH * (MAX_NAME + 1) + 1];
	size_t start[MAX_DEPTH]; /* where each open element's name begins in path */
	unsigned depth;
	bool leaf;   /* the innermost element has had no child */
	bool rooted; /* the root element has been seen */
	struct vv_buf text;
};

static int bad(const struct scan *s, const char *what)
{
	return vv_err_set(VV_EIO, "the answer is not the XML it should be (%s at byte %zu)", what,
			  (size_t)(s->p - s->doc));
}

static bool looking_at(const struct scan *s, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(s->end - s->p) >= n && memcmp(s->p, word, n) == 0;
}

/* The position after the next occurrence of word, or NULL. */
static const char *behind(const struct scan *s, const char *word)
{
	const char *at = memmem(s->p, (size_t)(s->end - s->p), word, strlen(word));

	return at ? at + strlen(word) : NULL;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int add_text(struct scan *s, const char *p, size_t n)
{
	if (n >= VV_S3_XML_TEXT - s->text.n) /* the end needs a byte, too */
		return bad(s, "a text too long");
	vv_buf_add(&s->text, p, n);
	return vv_buf_check(&s->text);
}

static int add_utf8(struct scan *s, unsigned long c)
{
	char u[4];

	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return bad(s, "a character that does not exist");
	if (c < 0x80) {
		u[0] = (char)c;
		return add_text(s, u, 1);
	}
	if (c < 0x800) {
		u[0] = (char)(0xc0 | c >> 6);
		u[1] = (char)(0x80 | (c & 0x3f));
		return add_text(s, u, 2);
	}
	if (c < 0x10000) {
		u[0] = (char)(0xe0 | c >> 12);
		u[1] = (char)(0x80 | (c >> 6 & 0x3f));
		u[2] = (char)(0x80 | (c & 0x3f));
		return add_text(s, u, 3);
	}
	u[0] = (char)(0xf0 | c >> 18);
	u[1] = (char)(0x80 | (c >> 12 & 0x3f));
	u[2] = (char)(0x80 | (c >> 6 & 0x3f));
	u[3] = (char)(0x80 | (c & 0x3f));
	return add_text(s, u, 4);
}

/* "#38" or "#x26", between the '&' and the ';'. */
static int add_number(struct scan *s, const char *digits)
{
	int base = digits[1] == 'x' ? 16 : 10;
	const char *from = digits + (base == 16 ? 2 : 1);
	unsigned long c;
	char *stop;

	if (!*from || !strchr("0123456789abcdefABCDEF", *from))
		return bad(s, "a malformed character reference");
	c = strtoul(from, &stop, base);
	return *stop ? bad(s, "a malformed character reference") : add_utf8(s, c);
}

static int take_entity(struct scan *s)
{
	static const struct {
		const char *name;
		char c;
	} named[] = { { "lt", '<' }, { "gt", '>' }, { "amp", '&' }, { "quot", '"' }, { "apos", '\'' } };
	size_t left = (size_t)(s->end - s->p);
	const char *semicolon = memchr(s->p, ';', left < 12 ? left : 12);
	char name[12];
	int rc;

	if (!semicolon)
		return bad(s, "an entity without an end");
	memcpy(name, s->p + 1, (size_t)(semicolon - s->p) - 1);
	name[semicolon - s->p - 1] = '\0';
	if (name[0] == '#') {
		rc = add_number(s, name);
		s->p = semicolon + 1;
		return rc;
	}
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (strcmp(name, named[i].name) == 0) {
			rc = add_text(s, &named[i].c, 1);
			s->p = semicolon + 1;
			return rc;
		}
	}
	return bad(s, "an unknown entity");
}

static int take_text(struct scan *s)
{
	while (s->p < s->end && *s->p != '<') {
		const char *from = s->p;
		int rc;

		if (*s->p == '&') {
			if (s->depth == 0)
				return bad(s, "text outside of the root");
			rc = take_entity(s);
		} else {
			while (s->p < s->end && *s->p != '<' && *s->p != '&') {
				if (!*s->p || (s->depth == 0 && !blank(*s->p)))
					return bad(s, "an unexpected byte");
				s->p++;
			}
			rc = s->depth ? add_text(s, from, (size_t)(s->p - from)) : 0;
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Reads the name at the cursor, without a namespace prefix. */
static int take_name(struct scan *s, char name[MAX_NAME])
{
	size_t n = 0;

	for (; s->p < s->end && !blank(*s->p) && !strchr("/><=&\"'", *s->p); s->p++) {
		if (*s->p == ':') {
			n = 0;
			continue;
		}
		if (n + 1 == MAX_NAME)
			return bad(s, "a name too long");
		name[n++] = *s->p;
	}
	name[n] = '\0';
	return n ? 0 : bad(s, "a name missing");
}

static int open_element(struct scan *s, const char *name)
{
	size_t at = strlen(s->path);

	if (s->depth == MAX_DEPTH)
		return bad(s, "elements nested too deeply");
	if (s->depth == 0 && s->rooted)
		return bad(s, "a second root");
	s->rooted = true;
	s->start[s->depth++] = at;
	if (at)
		s->path[at++] = '/';
	memcpy(s->path + at, name, strlen(name) + 1);
	s->leaf = true;
	s->text.n = 0;
	return 0;
}

static int close_element(struct scan *s)
{
	int rc = 0;

	if (s->leaf) {
		vv_buf_add(&s->text, "", 1);
		rc = vv_buf_check(&s->text);
	}
	if (rc == 0)
		rc = s->fn(s->ctx, s->path, s->leaf ? (const char *)s->text.p : NULL);
	s->path[s->start[--s->depth]] = '\0';
	s->leaf = false;
	s->text.n = 0;
	return rc;
}

static int take_start_tag(struct scan *s)
{
	char name[MAX_NAME], quote = 0;
	int rc;

	s->p++;
	rc = take_name(s, name);
	if (rc == 0)
		rc = open_element(s, name);
	if (rc < 0)
		return rc;
	for (; s->p < s->end && (quote || *s->p != '>'); s->p++) { /* attributes are not needed */
		if (*s->p == '<')
			return bad(s, "a tag without an end");
		if (quote)
			quote = *s->p == quote ? 0 : quote;
		else if (*s->p == '"' || *s->p == '\'')
			quote = *s->p;
	}
	if (s->p == s->end)
		return bad(s, "a tag without an end");
	s->p++;
	return s->p[-2] == '/' ? close_element(s) : 0;
}

static int take_end_tag(struct scan *s)
{
	char name[MAX_NAME];
	const char *open;
	int rc;

	s->p += 2;
	rc = take_name(s, name);
	if (rc < 0)
		return rc;
	while (s->p < s->end && blank(*s->p))
		s->p++;
	if (s->p == s->end || *s->p != '>')
		return bad(s, "a tag without an end");
	s->p++;
	if (s->depth == 0)
		return bad(s, "an end without a beginning");
	open = s->path + s->start[s->depth - 1];
	if (strcmp(*open == '/' ? open + 1 : open, name) != 0)
		return bad(s, "an element closed by another's end");
	return close_element(s);
}

static int take_cdata(struct scan *s)
{
	const char *to;
	int rc;

	s->p += strlen("<![CDATA[");
	to = behind(s, "]]>");
	if (!to || s->depth == 0)
		return bad(s, "CDATA without an end");
	if (memchr(s->p, 0, (size_t)(to - s->p)))
		return bad(s, "an unexpected byte");
	rc = add_text(s, s->p, (size_t)(to - s->p) - 3);
	s->p = to;
	return rc;
}

static int skip_past(struct scan *s, const char *word)
{
	const char *to = behind(s, word);

	if (!to)
		return bad(s, "an end missing");
	s->p = to;
	return 0;
}

static int take_markup(struct scan *s)
{
	if (looking_at(s, "<?"))
		return skip_past(s, "?>");
	if (looking_at(s, "<!--"))
		return skip_past(s, "-->");
	if (looking_at(s, "<![CDATA["))
		return take_cdata(s);
	if (looking_at(s, "<!"))
		return bad(s, "a document type");
	return looking_at(s, "</") ? take_end_tag(s) : take_start_tag(s);
}

int vv_s3_xml_walk(const void *doc, size_t n, vv_s3_xml_fn *fn, void *ctx)
{
	const char *from = doc ? doc : "";
	struct scan s = { .doc = from, .p = from, .end = from + n, .fn = fn, .ctx = ctx };
	int rc = 0;

	if (looking_at(&s, "\xef\xbb\xbf"))
		s.p += 3;
	while (rc == 0 && s.p < s.end)
		rc = *s.p == '<' ? take_markup(&s) : take_text(&s);
	if (rc == 0 && (s.depth || !s.rooted))
		rc = bad(&s, s.rooted ? "an end missing" : "nothing there");
	vv_buf_fini(&s.text);
	return rc;
}

struct finder {
	const char *path;
	char *out;
	size_t cap;
	bool found;
};

static int compare_path(void *ctx, const char *path, const char *text)
{
	struct finder *f = ctx;

	if (!f->found && text && strcmp(path, f->path) == 0 && strlen(text) < f->cap) {
		memcpy(f->out, text, strlen(text) + 1);
		f->found = true;
	}
	return 0;
}

int vv_s3_xml_find(const void *doc, size_t n, const char *path, char *out, size_t cap)
{
	struct finder f = { .path = path, .out = out, .cap = cap };
	int rc = vv_s3_xml_walk(doc, n, compare_path, &f);

	return rc == VV_ENOMEM ? rc : rc == 0 && f.found;
}
