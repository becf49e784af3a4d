/* Datatypes: translates the type of an element. Numbers of unsupported types become bytes of their
 * width. */
#include "reader/hdf5/hdf5_type.h"
#include "base/err.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_priv.h"
#include <string.h>

enum { DEPTH = 8, CLASSES = 12 };
enum { FIXED, FLOAT, TIME, STRING, BITS, OPAQUE, COMPOUND, REFERENCE, ENUM, VARIABLE, ARRAY, COMPLEX };

struct hdf5_type_head {
	unsigned class, version, bits;
	uint32_t size;
	unsigned depth;
};

typedef int parse_fn(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t);

static int parse(struct vv_wire *w, unsigned depth, struct vv_hdf5_type *t);

static int parse_fixed(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	static const uint8_t of_size[2][9] = {
		{ [1] = VV_TYPE_U8, [2] = VV_TYPE_U16, [4] = VV_TYPE_U32, [8] = VV_TYPE_U64 },
		{ [1] = VV_TYPE_I8, [2] = VV_TYPE_I16, [4] = VV_TYPE_I32, [8] = VV_TYPE_I64 },
	};
	unsigned offset = vv_wire_u16(w), precision = vv_wire_u16(w);

	if (k->size > 8 || precision == 0 || offset + precision > 8 * k->size)
		return 0;
	if (precision < 8 * k->size) {
		t->odd = (struct vv_odd){ of_size[k->bits >> 3 & 1][k->size], (uint8_t)offset, (uint8_t)precision, k->bits & 1 };
		return 0;
	}
	t->type = of_size[k->bits >> 3 & 1][k->size];
	t->swapped = t->type != VV_TYPE_BYTES && k->size > 1 && k->bits & 1;
	return 0;
}

/* IEEE 754 of 2, 4 and 8 bytes, and the upper half of 4. */
static int parse_float(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	static const struct {
		uint8_t type;
		uint16_t precision;
		uint8_t exponent_at, exponent, mantissa;
		uint32_t bias;
	} known[] = { { VV_TYPE_F32, 32, 23, 8, 23, 127 }, { VV_TYPE_F64, 64, 52, 11, 52, 1023 }, { VV_TYPE_F16, 16, 10, 5, 10, 15 },
		    { VV_TYPE_BF16, 16, 7, 8, 7, 127 } };
	unsigned offset = vv_wire_u16(w), precision = vv_wire_u16(w), exponent_at = vv_wire_u8(w), exponent = vv_wire_u8(w);
	unsigned mantissa_at = vv_wire_u8(w), mantissa = vv_wire_u8(w), implied = k->bits >> 4 & 3, sign = k->bits >> 8 & 255;
	uint32_t bias = vv_wire_u32(w);

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (8 * k->size == known[i].precision && precision == known[i].precision && exponent_at == known[i].exponent_at &&
		    exponent == known[i].exponent && mantissa == known[i].mantissa && bias == known[i].bias && offset == 0 &&
		    mantissa_at == 0 && implied == 2 && sign == precision - 1u && !(k->bits & 0x40)) {
			t->type = known[i].type;
			t->swapped = k->bits & 1;
		}
	return 0;
}

static int parse_time(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	(void)k, (void)t;
	vv_wire_u16(w);
	return 0;
}

static int parse_plain(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	(void)w, (void)k, (void)t;
	return 0;
}

static int parse_bits(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	(void)k, (void)t;
	vv_wire_u32(w);
	return 0;
}

static int parse_opaque(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	(void)t;
	vv_wire_bytes(w, k->bits & 255);
	return 0;
}

/* Names are padded to eight bytes before version 3. */
static size_t skip_name(struct vv_wire *w, unsigned version)
{
	const uint8_t *end = vv_wire_left(w) ? memchr(w->p, 0, vv_wire_left(w)) : NULL;
	size_t n = end ? (size_t)(end - w->p) : 0;

	if (!end) {
		w->bad = true;
		return 0;
	}
	vv_wire_bytes(w, version < 3 ? (n + 8) / 8 * 8 : n + 1);
	return n;
}

struct hdf5_type_member {
	char initial; /* of a name of one letter, else 0 */
	uint32_t offset;
	struct vv_hdf5_type type;
};

static int parse_member(struct vv_wire *w, const struct hdf5_type_head *k, struct hdf5_type_member *m)
{
	const uint8_t *name = w->p;
	unsigned ranks = 0, offset_size = 1;

	m->initial = skip_name(w, k->version) == 1 ? (char)name[0] : 0;
	while (offset_size < 4 && k->size >> (8 * offset_size))
		offset_size++;
	m->offset = (uint32_t)vv_hdf5_file_uint(w, k->version >= 3 ? offset_size : 4);
	if (k->version == 1) { /* in version 1 the member, not its type, is an array */
		ranks = vv_wire_u8(w);
		vv_wire_bytes(w, 3 + 4 + 4 + 16);
	}
	m->type = (struct vv_hdf5_type){ 0 };
	if (parse(w, k->depth + 1, &m->type))
		return VV_HDF5_BROKEN;
	if (ranks)
		m->type.type = VV_TYPE_BYTES;
	return 0;
}

/* A real and an imaginary part: complex numbers as written by h5py and others. */
static bool is_complex(const struct hdf5_type_head *k, const struct hdf5_type_member *re, const struct hdf5_type_member *im)
{
	return re->initial == 'r' && im->initial == 'i' && re->type.type == im->type.type && re->type.rank == 0 &&
	       im->type.rank == 0 && re->type.swapped == im->type.swapped && re->offset == 0 && im->offset == re->type.size &&
	       k->size == 2 * re->type.size && (re->type.type == VV_TYPE_F32 || re->type.type == VV_TYPE_F64);
}

static void set_complex(struct vv_hdf5_type *t, const struct vv_hdf5_type *part)
{
	t->type = part->type == VV_TYPE_F32 ? VV_TYPE_C64 : VV_TYPE_C128;
	t->swapped = part->swapped;
}

static int parse_compound(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	unsigned n = k->bits & 0xffff;
	struct hdf5_type_member m, first = { 0 };

	for (unsigned i = 0; i < n; i++) {
		if (parse_member(w, k, &m))
			return VV_HDF5_BROKEN;
		t->variable_length |= m.type.variable_length;
		if (i == 0)
			first = m;
	}
	if (n == 2 && is_complex(k, &first, &m))
		set_complex(t, &m.type);
	return 0;
}

static int parse_complex(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	struct vv_hdf5_type part = { 0 };

	if (parse(w, k->depth + 1, &part) || part.rank || k->size != 2 * (uint64_t)part.size)
		return VV_HDF5_BROKEN;
	if (part.type == VV_TYPE_F32 || part.type == VV_TYPE_F64)
		set_complex(t, &part);
	return 0;
}

static int parse_enum(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	unsigned n = k->bits & 0xffff;
	struct vv_hdf5_type base = { 0 };

	if (parse(w, k->depth + 1, &base) || base.size != k->size)
		return VV_HDF5_BROKEN;
	for (unsigned i = 0; i < n && !w->bad; i++)
		skip_name(w, k->version);
	vv_wire_bytes(w, (size_t)n * base.size);
	t->type = base.type;
	t->swapped = base.swapped;
	return 0;
}

static int parse_variable(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	struct vv_hdf5_type base = { 0 };

	t->variable_length = true;
	return parse(w, k->depth + 1, &base);
}

/* An array of arrays becomes an array of more dimensions. */
static int parse_array(struct vv_wire *w, const struct hdf5_type_head *k, struct vv_hdf5_type *t)
{
	unsigned rank = vv_wire_u8(w);
	struct vv_hdf5_type base = { 0 };
	uint64_t size = 1;

	vv_wire_bytes(w, k->version < 3 ? 3 : 0);
	if (rank == 0 || rank > VV_HDF5_RANK)
		return VV_HDF5_BROKEN;
	for (unsigned i = 0; i < rank; i++) {
		t->dim[i] = vv_wire_u32(w);
		if (t->dim[i] == 0 || size > k->size / t->dim[i])
			return VV_HDF5_BROKEN;
		size *= t->dim[i];
	}
	vv_wire_bytes(w, k->version < 3 ? 4u * rank : 0);
	if (parse(w, k->depth + 1, &base) || base.size > k->size || size * base.size != k->size)
		return VV_HDF5_BROKEN;
	t->variable_length = base.variable_length;
	if (rank + base.rank > VV_HDF5_RANK)
		return 0;
	memcpy(t->dim + rank, base.dim, base.rank * sizeof(*t->dim));
	t->rank = rank + base.rank;
	t->type = base.type;
	t->width = base.width;
	t->swapped = base.swapped;
	t->odd = base.odd;
	return 0;
}

static int parse(struct vv_wire *w, unsigned depth, struct vv_hdf5_type *t)
{
	static parse_fn *const by_class[CLASSES] = {
		[FIXED] = parse_fixed, [FLOAT] = parse_float, [TIME] = parse_time, [STRING] = parse_plain, [BITS] = parse_bits,
		[OPAQUE] = parse_opaque, [COMPOUND] = parse_compound, [REFERENCE] = parse_plain, [ENUM] = parse_enum,
		[VARIABLE] = parse_variable, [ARRAY] = parse_array,
		[COMPLEX] = parse_complex,
	};
	unsigned first = vv_wire_u8(w);
	struct hdf5_type_head k = { .class = first & 15, .version = first >> 4, .depth = depth };

	k.bits = (unsigned)vv_hdf5_file_uint(w, 3);
	k.size = vv_wire_u32(w);
	if (w->bad || k.class >= CLASSES || k.version == 0 || k.version > 5 || k.size == 0 || depth > DEPTH)
		return VV_HDF5_BROKEN;
	t->size = t->width = k.size;
	return by_class[k.class](w, &k, t) || w->bad ? VV_HDF5_BROKEN : 0;
}

int vv_hdf5_type_parse(const uint8_t *p, size_t n, struct vv_hdf5_type *t)
{
	struct vv_wire w = vv_wire_over(p, n);

	*t = (struct vv_hdf5_type){ 0 };
	return parse(&w, 0, t);
}
