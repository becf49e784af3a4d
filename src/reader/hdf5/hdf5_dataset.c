/* Datasets: parses the messages of an object header, and makes the variable and its pieces. */
#include "reader/hdf5/hdf5_dataset.h"
#include "base/err.h"
#include "reader/hdf5/hdf5_chunks.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_priv.h"
#include "reader/hdf5/hdf5_type.h"
#include "reader/hdf5/hdf5_virtual.h"
#include <string.h>

typedef int parse_fn(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m, struct vv_wire *w);

static int parse_space(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m, struct vv_wire *w)
{
	struct vv_hdf5_space *s = &o->space;
	unsigned version = vv_wire_u8(w), flags;

	(void)m;
	s->rank = vv_wire_u8(w);
	flags = vv_wire_u8(w);
	s->null = vv_wire_u8(w) == 2 && version == 2;
	if (version == 1)
		vv_wire_u32(w);
	if (w->bad || version < 1 || version > 2 || s->rank > VV_HDF5_RANK)
		return VV_HDF5_BROKEN;
	for (unsigned i = 0; i < s->rank; i++)
		s->max[i] = s->dim[i] = vv_hdf5_file_length(h, w);
	for (unsigned i = 0; flags & 1 && i < s->rank; i++)
		s->max[i] = vv_hdf5_file_length(h, w);
	o->has |= VV_HDF5_HAS_SPACE;
	return 0;
}

static int parse_type(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m, struct vv_wire *w)
{
	(void)h, (void)w;
	o->has |= VV_HDF5_HAS_TYPE;
	return vv_hdf5_type_parse(m->p, m->n, &o->type);
}

/* The value is the last field of the message. */
static int take_fill(struct vv_hdf5_object *o, struct vv_wire *w)
{
	uint32_t n = vv_wire_u32(w);
	const uint8_t *p;

	o->n_fill = 0;
	if (n == 0 || n > sizeof(o->fill)) /* undefined, or longer than any supported fill value */
		return 0;
	p = vv_wire_bytes(w, n);
	if (!p)
		return VV_HDF5_BROKEN;
	memcpy(o->fill, p, n);
	o->n_fill = (uint8_t)n;
	return 0;
}

static int parse_old_fill(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m, struct vv_wire *w)
{
	(void)h, (void)m;
	return o->n_fill ? 0 : take_fill(o, w);
}

static int parse_fill(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m, struct vv_wire *w)
{
	unsigned version = vv_wire_u8(w);
	bool defined;

	(void)h, (void)m;
	if (version >= 3) {
		defined = vv_wire_u8(w) & 0x20;
	} else {
		vv_wire_u16(w); /* times of allocation and of filling */
		defined = vv_wire_u8(w) || version == 1;
	}
	if (w->bad || version < 1 || version > 3)
		return VV_HDF5_BROKEN;
	return defined ? take_fill(o, w) : 0;
}

static int parse_external(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m, struct vv_wire *w)
{
	(void)h, (void)m, (void)w;
	o->has |= VV_HDF5_HAS_EXTERNAL;
	return 0;
}

/* Dimensions of a chunk; the last one is the size of an element, in bytes. */
static int take_chunk(struct vv_hdf5_layout *l, unsigned rank, unsigned size, struct vv_wire *w)
{
	if (rank < 2 || rank > VV_HDF5_RANK + 1)
		return VV_HDF5_BROKEN;
	l->rank = rank - 1;
	for (unsigned i = 0; i < l->rank; i++) {
		l->chunk[i] = vv_hdf5_file_uint(w, size);
		if (l->chunk[i] == 0)
			return VV_HDF5_BROKEN;
	}
	vv_hdf5_file_uint(w, size);
	return 0;
}

/* Versions 1 and 2: the length of the data follows from space and type. */
static int parse_layout_1(struct vv_hdf5 *h, struct vv_hdf5_layout *l, const struct vv_hdf5_message *m, struct vv_wire *w)
{
	unsigned rank = vv_wire_u8(w);

	l->class = vv_wire_u8(w);
	vv_wire_bytes(w, 5);
	l->len = UINT64_MAX;
	if (l->class != VV_HDF5_COMPACT)
		l->at = vv_hdf5_file_address(h, w);
	if (l->class == VV_HDF5_CHUNKED)
		return take_chunk(l, rank, 4, w);
	vv_wire_bytes(w, 4u * rank);
	if (l->class == VV_HDF5_COMPACT) {
		l->len = vv_wire_u32(w);
		l->at = m->at + (m->n - vv_wire_left(w));
	}
	return l->class > VV_HDF5_CHUNKED ? VV_HDF5_BROKEN : 0;
}

static int parse_chunked_4(struct vv_hdf5 *h, struct vv_hdf5_layout *l, struct vv_wire *w)
{
	static const uint8_t parameters[VV_HDF5_INDEXES] = { [VV_HDF5_FIXED] = 1, [VV_HDF5_EXTENSIBLE] = 5, [VV_HDF5_TREE2] = 6 };
	unsigned flags = vv_wire_u8(w), rank = vv_wire_u8(w), size = vv_wire_u8(w);
	int rc = take_chunk(l, rank, size, w);

	l->index = vv_wire_u8(w);
	if (rc || l->index == VV_HDF5_TREE1 || l->index >= VV_HDF5_INDEXES)
		return VV_HDF5_BROKEN;
	l->edges_plain = flags & 1;
	l->single_coded = l->index == VV_HDF5_SINGLE && flags & 2;
	if (l->single_coded) {
		l->len = vv_hdf5_file_length(h, w);
		l->mask = vv_wire_u32(w);
	}
	vv_wire_bytes(w, parameters[l->index]); /* the index holds these parameters itself */
	l->at = vv_hdf5_file_address(h, w);
	return 0;
}

/* Versions 3 to 5. The last two differ in the length field of a compressed chunk in an index; the
 * index defines it. */
static int parse_layout_3(struct vv_hdf5 *h, struct vv_hdf5_layout *l, const struct vv_hdf5_message *m, struct vv_wire *w,
			  unsigned version)
{
	unsigned rank;

	l->class = vv_wire_u8(w);
	switch (l->class) {
	case VV_HDF5_COMPACT:
		l->len = vv_wire_u16(w);
		l->at = m->at + (m->n - vv_wire_left(w));
		return 0;
	case VV_HDF5_CONTIGUOUS:
		l->at = vv_hdf5_file_address(h, w);
		l->len = vv_hdf5_file_length(h, w);
		return 0;
	case VV_HDF5_CHUNKED:
		if (version >= 4)
			return parse_chunked_4(h, l, w);
		rank = vv_wire_u8(w);
		l->at = vv_hdf5_file_address(h, w);
		return take_chunk(l, rank, 4, w);
	case VV_HDF5_VIRTUAL:
		l->at = vv_hdf5_file_address(h, w);
		l->len = vv_wire_u32(w);
		return 0;
	}
	return VV_HDF5_BROKEN;
}

static int parse_layout(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m, struct vv_wire *w)
{
	unsigned version = vv_wire_u8(w);

	if (version < 1 || version > 5 || m->at == VV_HDF5_NOWHERE)
		return VV_HDF5_BROKEN;
	o->has |= VV_HDF5_HAS_LAYOUT;
	return version < 3 ? parse_layout_1(h, &o->layout, m, w) : parse_layout_3(h, &o->layout, m, w, version);
}

/* Values beyond the limit belong to filters that are not supported. */
static void parse_filter(struct vv_wire *w, unsigned version, struct vv_reader_filter *f)
{
	unsigned name, n;

	f->id = vv_wire_u16(w);
	name = version == 1 || f->id >= 256 ? vv_wire_u16(w) : 0;
	vv_wire_u16(w); /* optional or not */
	n = vv_wire_u16(w);
	vv_wire_bytes(w, version == 1 ? (name + 7u) / 8 * 8 : name);
	f->n_values = (uint8_t)(n < VV_READER_FILTER_VALUES ? n : VV_READER_FILTER_VALUES);
	for (unsigned i = 0; i < f->n_values; i++)
		f->value[i] = vv_wire_u32(w);
	vv_wire_bytes(w, 4u * (n - f->n_values) + (version == 1 && n % 2 ? 4 : 0));
}

static int parse_pipeline(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m, struct vv_wire *w)
{
	unsigned version = vv_wire_u8(w), n = vv_wire_u8(w);

	(void)h, (void)m;
	if (version == 1)
		vv_wire_bytes(w, 6);
	if (version < 1 || version > 2 || n > VV_READER_FILTERS)
		return VV_HDF5_BROKEN;
	o->pipeline.n = n;
	for (unsigned i = 0; i < n; i++)
		parse_filter(w, version, &o->pipeline.filter[i]);
	return 0;
}

int vv_hdf5_dataset_message(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m)
{
	static parse_fn *const by_type[] = {
		[1] = parse_space, [3] = parse_type, [4] = parse_old_fill, [5] = parse_fill, [7] = parse_external, [8] = parse_layout,
		[11] = parse_pipeline,
	};
	struct vv_wire w = vv_wire_over(m->p, m->n);

	if (m->type >= sizeof(by_type) / sizeof(*by_type) || !by_type[m->type])
		return 0;
	if (by_type[m->type](h, o, m, &w) || w.bad)
		o->has |= VV_HDF5_IS_BROKEN;
	return 0;
}

/* The fill value of an array in an element is that of its numbers, if all are equal. */
static void set_fill(struct vv_variable *v, const struct vv_hdf5_object *o)
{
	uint32_t width = o->type.width;

	if (o->n_fill != o->type.size)
		return;
	for (uint32_t i = width; i < o->n_fill; i++)
		if (o->fill[i] != o->fill[i - width])
			return;
	v->n_fill = (uint8_t)width;
	memcpy(v->fill, o->fill, width);
}

static int add_variable(struct vv_hdf5 *h, const struct vv_hdf5_object *o, const char *path, size_t len)
{
	const struct vv_hdf5_type *t = &o->type;
	struct vv_variable *v = vv_reader_add_variable(h->out, path, len);
	unsigned rank = o->space.rank;

	if (!v)
		return VV_ENOMEM;
	v->type = t->type;
	v->width = t->width;
	v->swapped = t->swapped;
	v->odd = t->odd;
	v->variable_length = t->variable_length;
	v->ndim = (uint8_t)(rank + t->rank);
	v->chunked = o->layout.class == VV_HDF5_CHUNKED;
	for (unsigned i = 0; i < rank; i++) {
		v->dim[i] = o->space.dim[i];
		v->chunk[i] = v->chunked ? o->layout.chunk[i] : 0;
	}
	for (unsigned i = 0; i < t->rank; i++) {
		v->dim[rank + i] = t->dim[i];
		v->chunk[rank + i] = v->chunked ? t->dim[i] : 0;
	}
	v->n_filters = (uint8_t)o->pipeline.n;
	memcpy(v->filter, o->pipeline.filter, sizeof(v->filter));
	set_fill(v, o);
	return 0;
}

static int add_whole(struct vv_hdf5 *h, const struct vv_hdf5_object *o, uint32_t variable)
{
	struct vv_outline_piece p = { .variable = variable };
	uint64_t len = o->type.size;

	for (unsigned i = 0; i < o->space.rank; i++) {
		if (o->space.dim[i] && len > UINT64_MAX / o->space.dim[i])
			return VV_HDF5_BROKEN;
		len *= o->space.dim[i];
	}
	if (len == 0 || o->layout.at == VV_HDF5_NOWHERE) /* nothing was written yet */
		return 0;
	if (o->layout.len < len || !vv_hdf5_file_has(h, o->layout.at, len))
		return VV_HDF5_BROKEN;
	p.at = h->base + o->layout.at;
	p.len = len;
	return vv_reader_add_piece(h->out, &p);
}

/* Elements in another file, or in a missing chunk, must not be treated as fill values. */
int vv_hdf5_dataset_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, const char *path, size_t len)
{
	bool chunked = o->layout.class == VV_HDF5_CHUNKED;
	uint32_t variable = (uint32_t)h->out->n_variables;
	int rc;

	if (o->has & VV_HDF5_IS_BROKEN || o->space.null || o->space.rank + o->type.rank > VV_MAX_DIMS ||
	    (chunked && o->layout.rank != o->space.rank))
		return 0;
	if (add_variable(h, o, path, len))
		return VV_ENOMEM;
	if (o->has & VV_HDF5_HAS_EXTERNAL) {
		h->out->variable[variable].lack = "its bytes lie in other files";
		rc = VV_HDF5_BROKEN;
	} else if (o->layout.class == VV_HDF5_VIRTUAL) {
		rc = vv_hdf5_virtual_add(h, o, variable);
	} else {
		rc = chunked ? vv_hdf5_chunks_add(h, o, variable) : add_whole(h, o, variable);
	}
	h->out->variable[variable].partial = rc != 0;
	return rc < 0 ? rc : 0;
}
