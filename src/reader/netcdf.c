/* netCDF's classic formats: CDF-1, CDF-2 (64-bit offsets), CDF-5 (64-bit counts). A header of
 * dimensions, attributes and variables is followed by the variables of fixed size, each contiguous.
 * Then come records, each with a slab of every record variable. Big-endian throughout. As in the
 * "NetCDF File Format Specifications" of Unidata, and of PnetCDF for CDF-5. */
#include "base/err.h"
#include "base/mem.h"
#include "reader/peek.h"
#include <string.h>

enum {
	TAG_DIMENSIONS = 10,
	TAG_VARIABLES = 11,
	TAG_ATTRIBUTES = 12,
	TYPES = 12,
	MAX_DIMENSIONS = 1 << 16, /* of a file */
	MAX_RANK = 1024,          /* dimensions of a variable: NC_MAX_VAR_DIMS */
	TABLE_RECORDS = 1024,     /* so many short records form a table */
	NAME = 512,
};

static const struct {
	uint8_t type, size;
} types[TYPES] = {
	[1] = { VV_TYPE_I8, 1 },   [2] = { VV_TYPE_BYTES, 1 }, [3] = { VV_TYPE_I16, 2 }, [4] = { VV_TYPE_I32, 4 },
	[5] = { VV_TYPE_F32, 4 },  [6] = { VV_TYPE_F64, 8 },   [7] = { VV_TYPE_U8, 1 },  [8] = { VV_TYPE_U16, 2 },
	[9] = { VV_TYPE_U32, 4 },  [10] = { VV_TYPE_I64, 8 },  [11] = { VV_TYPE_U64, 8 },
};

struct netcdf_place { /* of a variable */
	uint64_t begin, bytes; /* bytes of the whole variable, or of its slab in each record */
	uint32_t variable;
	bool record;
};

struct netcdf_walk {
	struct vv_peek in;
	struct vv_outline *out;
	uint64_t at;
	bool bad; /* not a valid header */
	bool wide_counts, wide_offsets;
	uint64_t *dim; /* 0: the record dimension */
	size_t n_dims, dims_cap;
	struct netcdf_place *place;
	size_t n_places, places_cap;
	uint64_t records; /* according to the header */
	uint64_t record_bytes, record_begin;
	size_t record_variables;
};

static uint64_t get(struct netcdf_walk *w, size_t bytes)
{
	const uint8_t *p = w->bad ? NULL : vv_peek_at(&w->in, w->at, bytes);

	w->bad = !p;
	if (!p)
		return 0;
	w->at += bytes;
	return vv_peek_number(p, bytes, true);
}

static uint64_t get_count(struct netcdf_walk *w)
{
	return get(w, w->wide_counts ? 8 : 4);
}

static void skip(struct netcdf_walk *w, uint64_t bytes)
{
	uint64_t padded = bytes + (-bytes & 3);

	w->bad = w->bad || bytes > w->in.f->len || padded > w->in.f->len - w->at;
	if (!w->bad)
		w->at += padded;
}

/* The number of items in a list, which begins with its tag; an absent list has two zeros. */
static uint64_t get_list(struct netcdf_walk *w, unsigned tag)
{
	uint64_t found = get(w, 4), n = get_count(w);

	w->bad = w->bad || (found != tag && (found || n));
	return w->bad ? 0 : n;
}

static void skip_attributes(struct netcdf_walk *w)
{
	for (uint64_t n = get_list(w, TAG_ATTRIBUTES); !w->bad && n; n--) {
		uint64_t type, values;

		skip(w, get_count(w));
		type = get(w, 4);
		values = get_count(w);
		w->bad = w->bad || type == 0 || type >= TYPES || values > w->in.f->len;
		if (!w->bad)
			skip(w, values * types[type].size);
	}
}

static int read_dimensions(struct netcdf_walk *w)
{
	uint64_t n = get_list(w, TAG_DIMENSIONS);

	w->bad = w->bad || n > MAX_DIMENSIONS;
	for (; !w->bad && n; n--) {
		skip(w, get_count(w));
		if (vv_mem_room(&w->dim, w->n_dims, &w->dims_cap, sizeof(*w->dim)))
			return VV_ENOMEM;
		w->dim[w->n_dims++] = get_count(w);
	}
	return w->in.rc;
}

/* "/name", truncated to the room. */
static void read_name(struct netcdf_walk *w, char name[NAME])
{
	uint64_t n = get_count(w), from = w->at;
	size_t used = n < NAME - 2 ? (size_t)n : NAME - 2;
	const uint8_t *p;

	skip(w, n);
	p = w->bad ? NULL : vv_peek_at(&w->in, from, used);
	w->bad = !p;
	name[0] = '/';
	name[1] = 0;
	if (!p)
		return;
	memcpy(name + 1, p, used);
	name[1 + used] = 0;
}

/* Reads the variable's dimensions; those beyond the limit are merged into one. Returns the bytes of
 * its slab, or of the whole variable. */
static uint64_t read_shape(struct netcdf_walk *w, struct vv_variable *v, bool *record)
{
	uint64_t n = get_count(w), bytes = 1;

	w->bad = w->bad || n > MAX_RANK;
	for (uint64_t i = 0; !w->bad && i < n; i++) {
		uint64_t id = get_count(w), len = id < w->n_dims ? w->dim[id] : 0;

		if (i == 0)
			*record = len == 0;
		w->bad = w->bad || id >= w->n_dims || (len == 0 && i) || __builtin_mul_overflow(bytes, len ? len : 1, &bytes);
		if (i < VV_MAX_DIMS)
			v->dim[i] = len;
	}
	if (n > VV_MAX_DIMS && !*record) {
		v->dim[0] = bytes;
		n = 1;
	} else if (n > VV_MAX_DIMS) {
		v->dim[1] = bytes;
		n = 2;
	}
	v->ndim = (uint8_t)n;
	return bytes;
}

/* An array of characters is treated as one of strings. */
static void set_type(struct vv_variable *v, unsigned type, bool record)
{
	v->type = types[type].type;
	v->width = types[type].size;
	v->swapped = v->width > 1;
	if (type == 2 && v->ndim > (record ? 1 : 0) && v->dim[v->ndim - 1] <= VV_RECIPE_PLANES)
		v->width = (uint32_t)v->dim[--v->ndim];
}

static int add_variable(struct netcdf_walk *w, const char *name, const struct vv_variable *form, const struct netcdf_place *p)
{
	struct vv_variable *v = vv_reader_add_variable(w->out, name, strlen(name));
	char *kept;

	if (!v || vv_mem_room(&w->place, w->n_places, &w->places_cap, sizeof(*w->place)))
		return VV_ENOMEM;
	kept = v->name;
	*v = *form;
	v->name = kept;
	w->place[w->n_places] = *p;
	w->place[w->n_places++].variable = (uint32_t)w->out->n_variables - 1;
	return 0;
}

static int read_variable(struct netcdf_walk *w)
{
	struct vv_variable form = { 0 };
	struct netcdf_place p = { 0 };
	char name[NAME];
	uint64_t count, type;

	read_name(w, name);
	count = read_shape(w, &form, &p.record);
	skip_attributes(w);
	type = get(w, 4);
	get_count(w); /* its size, which is not recorded for large ones */
	p.begin = get(w, w->wide_offsets ? 8 : 4);
	w->bad = w->bad || type == 0 || type >= TYPES;
	if (w->bad)
		return w->in.rc;
	if (__builtin_mul_overflow(count, types[type].size, &p.bytes) || p.bytes > w->in.f->len)
		p.bytes = w->in.f->len + 1; /* the file was truncated: no part of it is inside */
	set_type(&form, (unsigned)type, p.record);
	return add_variable(w, name, &form, &p);
}

/* Slabs are padded to 4 bytes, except if a record has only one. */
static void measure_records(struct netcdf_walk *w)
{
	uint64_t last = 0;

	w->record_begin = UINT64_MAX;
	for (size_t i = 0; i < w->n_places; i++) {
		const struct netcdf_place *p = &w->place[i];

		if (!p->record)
			continue;
		last = p->bytes;
		w->record_variables++;
		w->record_bytes += p->bytes + (-p->bytes & 3);
		if (p->begin < w->record_begin)
			w->record_begin = p->begin;
	}
	if (w->record_variables == 1)
		w->record_bytes = last;
}

/* At most as many as fit in the file, whatever the header claims; a streamed file has no count. If
 * the header was not fully parsed, the length of a record is unknown. */
static uint64_t count_records(const struct netcdf_walk *w)
{
	uint64_t fit;

	if (w->bad || w->out->full || w->record_bytes == 0 || w->record_begin >= w->in.f->len)
		return 0;
	fit = (w->in.f->len - w->record_begin) / w->record_bytes;
	return w->records < fit ? w->records : fit;
}

static int add_slabs(struct netcdf_walk *w, const struct netcdf_place *p, uint64_t records)
{
	struct vv_variable *v = &w->out->variable[p->variable];
	struct vv_outline_piece piece = { .at = p->begin, .len = p->bytes, .variable = p->variable };
	int rc = 0;

	v->dim[0] = records;
	if (w->record_variables == 1) {
		piece.len = p->bytes * records;
		return vv_reader_add_piece(w->out, &piece);
	}
	v->chunked = true;
	memcpy(v->chunk, v->dim, sizeof(v->chunk));
	v->chunk[0] = 1;
	for (; rc == 0 && piece.ordinal < records; piece.ordinal++, piece.at += w->record_bytes)
		rc = vv_reader_add_piece(w->out, &piece);
	return rc;
}

/* Many short records of several numbers each are treated as an array of structures. */
static int add_table(struct netcdf_walk *w, uint64_t records)
{
	struct vv_outline_piece piece = { .at = w->record_begin, .len = records * w->record_bytes, .variable = (uint32_t)w->out->n_variables };
	struct vv_variable *v = vv_reader_add_variable(w->out, "/records", 8);

	if (!v)
		return VV_ENOMEM;
	v->width = (uint32_t)w->record_bytes;
	v->ndim = 1;
	v->dim[0] = records;
	return vv_reader_add_piece(w->out, &piece);
}

static int add_pieces(struct netcdf_walk *w)
{
	uint64_t records;
	bool table;
	int rc = 0;

	measure_records(w);
	records = count_records(w);
	table = w->record_variables > 1 && records >= TABLE_RECORDS && w->record_bytes <= VV_RECIPE_PLANES;
	for (size_t i = 0; rc == 0 && i < w->n_places; i++) {
		const struct netcdf_place *p = &w->place[i];

		if (!p->record)
			rc = vv_reader_add_piece(w->out, &(struct vv_outline_piece){ .at = p->begin, .len = p->bytes, .variable = p->variable });
		else if (!table)
			rc = add_slabs(w, p, records);
		else
			/* it is part of the table, and cannot be extracted alone */
			w->out->variable[p->variable].partial = true;
	}
	return rc == 0 && table ? add_table(w, records) : rc;
}

static int read_header(struct netcdf_walk *w)
{
	unsigned version = (unsigned)get(w, 4) & 0xff;
	uint64_t n;
	int rc;

	w->wide_counts = version == 5;
	w->wide_offsets = version != 1;
	w->records = get_count(w);
	if (w->records == UINT32_MAX && !w->wide_counts)
		w->records = UINT64_MAX;
	rc = read_dimensions(w);
	if (rc)
		return rc;
	skip_attributes(w);
	for (n = get_list(w, TAG_VARIABLES); rc == 0 && !w->bad && n; n--)
		rc = read_variable(w);
	return rc;
}

static int outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	struct netcdf_walk *w = vv_mem_new(1, sizeof(*w));
	int rc;

	if (!w)
		return VV_ENOMEM;
	vv_peek_init(&w->in, f);
	w->out = out;
	rc = read_header(w);
	if (rc == 0 || (rc == VV_ENOMEM && out->full))
		rc = w->in.rc ? w->in.rc : add_pieces(w);
	vv_mem_free(w->dim);
	vv_mem_free(w->place);
	vv_mem_free(w);
	return rc;
}

static bool is(const struct vv_reader_file *f, const uint8_t *head, size_t n)
{
	(void)f;
	return n >= 8 && memcmp(head, "CDF", 3) == 0 && (head[3] == 1 || head[3] == 2 || head[3] == 5);
}

extern const struct vv_reader vv_reader_netcdf;
const struct vv_reader vv_reader_netcdf = { .name = "netcdf", .is = is, .outline = outline };
