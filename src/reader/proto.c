#include "reader/proto.h"

enum { VARINT = 0, EIGHT = 1, BYTES = 2, FOUR = 5 }; /* wire types */

static bool get_varint(struct vv_proto *m, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; m->n && shift < 64; shift += 7) {
		uint8_t byte = *m->p++;

		m->n--;
		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool get_fixed(struct vv_proto *m, size_t bytes, uint64_t *out)
{
	*out = 0;
	if (m->n < bytes)
		return false;
	for (size_t i = 0; i < bytes; i++)
		*out |= (uint64_t)m->p[i] << 8 * i;
	m->p += bytes;
	m->n -= bytes;
	return true;
}

static bool get_bytes(struct vv_proto *m, struct vv_proto *out)
{
	uint64_t len;

	if (!get_varint(m, &len) || len > m->n)
		return false;
	*out = (struct vv_proto){ m->p, (size_t)len };
	m->p += len;
	m->n -= (size_t)len;
	return true;
}

bool vv_proto_next(struct vv_proto *m, struct vv_proto_field *f)
{
	uint64_t tag;

	*f = (struct vv_proto_field){ 0 };
	if (!m->n || !get_varint(m, &tag))
		return false;
	f->number = tag >> 3;
	switch (tag & 7) {
	case VARINT:
		return get_varint(m, &f->value);
	case EIGHT:
		return get_fixed(m, 8, &f->value);
	case FOUR:
		return get_fixed(m, 4, &f->value);
	case BYTES:
		return get_bytes(m, &f->body);
	default:
		return false;
	}
}

uint64_t vv_proto_number(struct vv_proto m, uint64_t number)
{
	struct vv_proto_field f;

	while (vv_proto_next(&m, &f))
		if (f.number == number)
			return f.value;
	return 0;
}

struct vv_proto vv_proto_body(struct vv_proto m, uint64_t number)
{
	struct vv_proto_field f;

	while (vv_proto_next(&m, &f))
		if (f.number == number)
			return f.body;
	return (struct vv_proto){ 0 };
}
