#include "support/formats.h"
#include "vv_test.h"

static void put_big(struct vv_buf *b, uint64_t v, unsigned bytes)
{
	for (unsigned i = bytes; i-- > 0;) {
		uint8_t byte = (uint8_t)(v >> (8 * i));

		vv_buf_add(b, &byte, 1);
	}
	CHECK_EQ(vv_buf_check(b), 0);
}

static void put_little(struct vv_buf *b, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++) {
		uint8_t byte = (uint8_t)(v >> (8 * i));

		vv_buf_add(b, &byte, 1);
	}
	CHECK_EQ(vv_buf_check(b), 0);
}

void formats_npy(struct vv_buf *b, unsigned version, const char *descr, bool fortran_order, const char *shape, const void *data, size_t n)
{
	struct vv_buf head = { 0 };
	unsigned prefix = version == 1 ? 10 : 12;

	vv_buf_printf(&head, "{'descr': %s, 'fortran_order': %s, 'shape': %s, }", descr, fortran_order ? "True" : "False", shape);
	while ((prefix + head.n + 1) % 64)
		vv_buf_add(&head, " ", 1);
	vv_buf_add(&head, "\n", 1);
	vv_buf_add(b, "\x93NUMPY", 6);
	put_little(b, version, 2);
	put_little(b, head.n, version == 1 ? 2 : 4);
	vv_buf_add(b, head.p, head.n);
	vv_buf_add(b, data, n);
	CHECK_EQ(vv_buf_check(b), 0);
	vv_buf_fini(&head);
}

static void put_mark(struct vv_buf *b, const struct formats_marks *m, uint64_t len, bool negative)
{
	uint64_t v = negative ? -len : len;

	if (m->swapped)
		put_big(b, v, m->size);
	else
		put_little(b, v, m->size);
}

void formats_record(struct vv_buf *b, const struct formats_marks *m, const void *data, size_t n)
{
	const uint8_t *p = data;
	bool first = true;

	do {
		size_t part = m->longest && n > m->longest ? (size_t)m->longest : n;

		put_mark(b, m, part, part < n);
		vv_buf_add(b, p, part);
		put_mark(b, m, part, !first);
		first = false;
		p += part;
		n -= part;
	} while (n);
	CHECK_EQ(vv_buf_check(b), 0);
}

static unsigned type_size(unsigned type)
{
	static const unsigned size[] = { 0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8 };

	CHECK(type > 0 && type < 12);
	return size[type];
}

static void put_count(struct vv_buf *b, const struct formats_cdf *c, uint64_t v)
{
	put_big(b, v, c->version == 5 ? 8 : 4);
}

static void put_padded(struct vv_buf *b, const void *p, size_t n)
{
	vv_buf_add(b, p, n);
	put_big(b, 0, -n & 3);
}

static void put_name(struct vv_buf *b, const struct formats_cdf *c, const char *name)
{
	put_count(b, c, strlen(name));
	put_padded(b, name, strlen(name));
}

static void put_attribute(struct vv_buf *b, const struct formats_cdf *c, const char *name, const char *text)
{
	put_big(b, 12, 4);
	put_count(b, c, 1);
	put_name(b, c, name);
	put_big(b, 2, 4);
	put_count(b, c, strlen(text));
	put_padded(b, text, strlen(text));
}

static bool is_record(const struct formats_cdf *c, const struct formats_var *v)
{
	return v->ndim && c->dim[v->dim[0]].len == 0;
}

static void put_header(struct vv_buf *b, const struct formats_cdf *c)
{
	uint8_t version = (uint8_t)c->version;

	vv_buf_add(b, "CDF", 3);
	vv_buf_add(b, &version, 1);
	put_count(b, c, c->streaming ? UINT64_MAX : c->records);
	put_big(b, c->n_dims ? 10 : 0, 4);
	put_count(b, c, c->n_dims);
	for (unsigned i = 0; i < c->n_dims; i++) {
		put_name(b, c, c->dim[i].name);
		put_count(b, c, c->dim[i].len);
	}
	put_attribute(b, c, "title", "made by hand");
	put_big(b, c->n_vars ? 11 : 0, 4);
	put_count(b, c, c->n_vars);
	for (unsigned i = 0; i < c->n_vars; i++) {
		const struct formats_var *v = &c->var[i];

		put_name(b, c, v->name);
		put_count(b, c, v->ndim);
		for (unsigned k = 0; k < v->ndim; k++)
			put_count(b, c, v->dim[k]);
		if (i % 2) {
			put_attribute(b, c, "units", "K");
		} else {
			put_big(b, 0, 4);
			put_count(b, c, 0);
		}
		put_big(b, v->type, 4);
		put_count(b, c, v->slab + (-v->slab & 3));
		put_big(b, v->at, c->version == 1 ? 4 : 8);
	}
}

static void measure(struct formats_cdf *c)
{
	unsigned n = 0, only = 0;

	c->record_bytes = 0;
	for (unsigned i = 0; i < c->n_vars; i++) {
		struct formats_var *v = &c->var[i];

		v->slab = type_size(v->type);
		for (unsigned k = is_record(c, v) ? 1 : 0; k < v->ndim; k++)
			v->slab *= c->dim[v->dim[k]].len;
		if (is_record(c, v)) {
			c->record_bytes += v->slab + (-v->slab & 3);
			n++;
			only = i;
		}
	}
	if (n == 1)
		c->record_bytes = c->var[only].slab;
}

/* First those of fixed size, then the records. */
static void place(struct formats_cdf *c, uint64_t at)
{
	for (int records = 0; records < 2; records++)
		for (unsigned i = 0; i < c->n_vars; i++) {
			struct formats_var *v = &c->var[i];

			if (is_record(c, v) != (records == 1))
				continue;
			v->at = at;
			at += v->slab + (-v->slab & 3);
		}
}

static void put_records(struct vv_buf *b, const struct formats_cdf *c)
{
	for (uint64_t r = 0; r < c->records; r++)
		for (unsigned i = 0; i < c->n_vars; i++) {
			const struct formats_var *v = &c->var[i];

			if (!is_record(c, v))
				continue;
			if (c->record_bytes == v->slab)
				vv_buf_add(b, v->data + r * v->slab, v->slab);
			else
				put_padded(b, v->data + r * v->slab, v->slab);
		}
}

void formats_cdf(struct vv_buf *b, struct formats_cdf *c)
{
	size_t from = b->n, head;

	measure(c);
	put_header(b, c);
	head = b->n - from;
	b->n = from;
	place(c, head);
	put_header(b, c);
	for (unsigned i = 0; i < c->n_vars; i++)
		if (!is_record(c, &c->var[i]))
			put_padded(b, c->var[i].data, c->var[i].slab);
	put_records(b, c);
	CHECK_EQ(vv_buf_check(b), 0);
}
