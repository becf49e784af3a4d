/* Fortran's unformatted sequential files: each record lies between two marks with its length, of 4
 * or 8 bytes, in either byte order. Compilers such as gfortran split long records: the first mark
 * is negative if another part follows, the last if one precedes. The file does not describe its
 * records. So records of one length are treated as one variable, and its type is guessed. */
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "reader/guess.h"
#include "reader/peek.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	CONVINCING = 64,    /* consecutive records are not accidental */
	MIN_RECORD = 64,    /* bytes; shorter records are not worth the effort */
	/* such a record is a piece. Shorter consecutive ones form one piece with their marks, which
	 * is cheaper */
	BIG_RECORD = 16384,
	MAX_KINDS = 4096,   /* different lengths */
	MAX_SHORT = 1 << 20,
	SAMPLE = 1024,      /* bytes */
	ROWS = 64,          /* kinds, those with the most bytes, whose rows are guessed */
};

struct marks {
	uint8_t size;
	bool swapped;
};

struct record { /* or a part of one */
	uint64_t at, len; /* of its content */
	bool more, again; /* another part follows, precedes */
};

struct kind { /* records of one length */
	uint64_t len, records, bytes;
	uint32_t variable;
	struct vv_guess guess;
	uint64_t liveliest; /* offset of the sampled record with the most changes */
	unsigned changes;   /* words in its sample that differ from the previous word */
};

struct fortran_walk {
	struct vv_peek in;
	struct marks marks;
	struct vv_outline *out;
	struct kind *kind; /* sorted by length */
	size_t n_kinds, kinds_cap;
	struct vv_outline_piece series; /* equal consecutive records so far */
	uint64_t series_records;
};

static bool get_mark(struct vv_peek *in, struct marks m, uint64_t at, uint64_t *len, bool *negative)
{
	const uint8_t *p = vv_peek_at(in, at, m.size);
	uint64_t v, sign = 1ull << (8 * m.size - 1);

	if (!p)
		return false;
	v = vv_peek_number(p, m.size, m.swapped);
	*negative = v & sign;
	*len = *negative ? -v & (sign | (sign - 1)) : v;
	return true;
}

static bool get_record(struct vv_peek *in, struct marks m, uint64_t at, bool again, struct record *r)
{
	uint64_t len;

	if (!get_mark(in, m, at, &r->len, &r->more) || r->len > in->f->len)
		return false;
	r->at = at + m.size;
	return get_mark(in, m, r->at + r->len, &len, &r->again) && len == r->len && r->again == again;
}

/* Do the marks of the first records agree, to the end or for long enough? Zeros are not accepted as
 * empty records. */
static bool fits(struct vv_peek *in, struct marks m)
{
	unsigned all = 0, full = 0;
	struct record r = { 0 };

	for (uint64_t at = 0; at < in->f->len && full < CONVINCING && all < 4 * CONVINCING; all++) {
		if (!get_record(in, m, at, r.more, &r))
			return false;
		full += r.len > 0;
		at = r.at + r.len + m.size;
	}
	return full > all / 2;
}

static bool find_marks(struct vv_peek *in, struct marks *out)
{
	static const struct marks known[] = { { 4, false }, { 4, true }, { 8, false }, { 8, true } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (fits(in, known[i])) {
			*out = known[i];
			return true;
		}
	return false;
}

static size_t find_kind(const struct fortran_walk *w, uint64_t len)
{
	size_t i;

	VV_SEARCH(i, 0, w->n_kinds, w->kind[i].len < len);
	return i;
}

/* The kind of this length; NULL: no memory, or too many kinds. Its variable gets its final name at
 * the end. */
static struct kind *get_kind(struct fortran_walk *w, uint64_t len)
{
	size_t i = find_kind(w, len);

	if (i < w->n_kinds && w->kind[i].len == len)
		return &w->kind[i];
	w->out->full = w->out->full || w->n_kinds == MAX_KINDS;
	if (w->out->full || vv_mem_room(&w->kind, w->n_kinds, &w->kinds_cap, sizeof(*w->kind)) ||
	    !vv_reader_add_variable(w->out, "", 0))
		return NULL;
	memmove(&w->kind[i + 1], &w->kind[i], (w->n_kinds++ - i) * sizeof(*w->kind));
	w->kind[i] = (struct kind){ .len = len, .variable = (uint32_t)w->out->n_variables - 1 };
	return &w->kind[i];
}

/* Samples the first, second, fourth record of a kind, and so on. */
static void sample(struct fortran_walk *w, struct kind *k, const struct record *r)
{
	size_t n = r->len < SAMPLE ? (size_t)r->len : SAMPLE;
	const uint8_t *p;
	unsigned changes;

	if (k->records & (k->records - 1))
		return;
	p = vv_peek_at(&w->in, r->at + ((r->len - n) / 2 & ~7ull), n);
	changes = p ? vv_guess_add(&k->guess, p, n, w->marks.swapped) : 0;
	if (changes >= k->changes) {
		k->changes = changes;
		k->liveliest = r->at;
	}
}

static int end_series(struct fortran_walk *w)
{
	int rc = w->series_records ? vv_reader_add_piece(w->out, &w->series) : 0;

	w->series_records = 0;
	return rc;
}

static int add_record(struct fortran_walk *w, const struct record *r)
{
	struct kind *k;
	bool goes_on = w->series_records && r->len < BIG_RECORD && r->at + r->len - w->series.at ==
		       (w->series_records + 1) * (r->len + 2 * w->marks.size) - 2 * w->marks.size;
	int rc;

	if (!goes_on) {
		rc = end_series(w);
		if (rc || r->len < MIN_RECORD)
			return rc;
	}
	k = get_kind(w, r->len);
	if (!k)
		return VV_ENOMEM;
	if (!goes_on)
		w->series = (struct vv_outline_piece){ .at = r->at, .variable = k->variable, .ordinal = k->records };
	w->series.len = r->at + r->len - w->series.at;
	w->series_records++;
	sample(w, k, r);
	k->records++;
	k->bytes += r->len;
	return 0;
}

static int walk_records(struct fortran_walk *w)
{
	struct record r = { 0 };
	uint64_t at = 0, n_short = 0;
	int rc = 0;

	while (rc == 0 && n_short < MAX_SHORT && get_record(&w->in, w->marks, at, r.more, &r)) {
		rc = add_record(w, &r);
		n_short += r.len < MIN_RECORD;
		at = r.at + r.len + w->marks.size;
	}
	if (rc == 0 || (rc == VV_ENOMEM && w->out->full))
		rc = end_series(w);
	return w->in.rc ? w->in.rc : rc;
}

/* Records that are pieces are slices of an array. Those of a series have marks between them, so
 * they form no usable array. */
static void set_shape(struct fortran_walk *w, const struct kind *k, unsigned type, struct vv_variable *v)
{
	uint64_t width = vv_head_type_size(type);

	v->type = (uint8_t)type;
	v->width = (uint32_t)width;
	v->swapped = w->marks.swapped && width > 1;
	v->chunked = k->len >= BIG_RECORD;
	v->partial = !v->chunked;
	v->ndim = 2;
	v->dim[0] = k->records;
	v->dim[1] = (v->chunked ? k->len : k->len + 2 * w->marks.size) / width;
	v->chunk[0] = 1;
	v->chunk[1] = v->dim[1];
}

static uint64_t find_row(struct fortran_walk *w, const struct kind *k, const struct vv_variable *v)
{
	size_t n = k->len < VV_PEEK_WINDOW ? (size_t)k->len : VV_PEEK_WINDOW;
	const uint8_t *p = v->width < 4 ? NULL : vv_peek_at(&w->in, k->liveliest, n);

	return p ? vv_guess_row(p, n, v->width, v->swapped, k->len / v->width) : 0;
}

static int compare_kinds(const void *one, const void *other)
{
	const struct kind *a = one, *b = other;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return (a->len > b->len) - (a->len < b->len);
}

/* "/a/1152": a letter, a for the kind with the most bytes, b for the next, and the length. The
 * parts of a grid may differ by a row between ranks. Kinds of several ranks still have the same
 * name when lengths are folded (core/format/similarity_key.h). Additional records of one rank have
 * later letters. */
static char *name_kind(size_t number, uint64_t len)
{
	char letters[16];
	size_t at = sizeof(letters) - 1;

	letters[at] = 0;
	for (number++; number && at; number = (number - 1) / 26)
		letters[--at] = (char)('a' + (number - 1) % 26);
	return vv_mem_printf("/%s/%" PRIu64, letters + at, len);
}

static int name_kinds(struct fortran_walk *w)
{
	unsigned most = VV_TYPE_BYTES;

	if (w->n_kinds)
		qsort(w->kind, w->n_kinds, sizeof(*w->kind), compare_kinds);
	for (size_t i = 0; i < w->n_kinds; i++) {
		const struct kind *k = &w->kind[i];
		struct vv_variable *v = &w->out->variable[k->variable];
		char *name = name_kind(i, k->len);
		/* zeros may have any type */
		unsigned type = k->guess.words ? vv_guess_type(&k->guess) : most;

		if (!name)
			return VV_ENOMEM;
		vv_mem_free(v->name);
		v->name = name;
		if (most == VV_TYPE_BYTES)
			most = type;
		set_shape(w, k, k->len % vv_head_type_size(type) ? VV_TYPE_BYTES : type, v);
		if (i < ROWS)
			v->row = find_row(w, k, v);
	}
	return w->in.rc;
}

static int outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	struct fortran_walk *w = vv_mem_new(1, sizeof(*w));
	int rc;

	if (!w)
		return VV_ENOMEM;
	vv_peek_init(&w->in, f);
	w->out = out;
	rc = find_marks(&w->in, &w->marks) ? walk_records(w) : w->in.rc;
	if (rc == 0 || (rc == VV_ENOMEM && out->full))
		rc = name_kinds(w);
	vv_mem_free(w->kind);
	vv_mem_free(w);
	return rc;
}

static bool is(const struct vv_reader_file *f, const uint8_t *head, size_t n)
{
	struct vv_peek in;
	struct marks m;

	(void)head;
	vv_peek_init(&in, f);
	return n > 8 && find_marks(&in, &m);
}

extern const struct vv_reader vv_reader_fortran;
const struct vv_reader vv_reader_fortran = { .name = "fortran", .is = is, .outline = outline };
