#include "base/wire.h"
#include <string.h>

static void put_le(struct vv_buf *b, uint64_t v, size_t n)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(v >> (8 * i));
	vv_buf_add(b, bytes, n);
}

void vv_wire_put_u8(struct vv_buf *b, uint8_t v)
{
	put_le(b, v, 1);
}

void vv_wire_put_u16(struct vv_buf *b, uint16_t v)
{
	put_le(b, v, 2);
}

void vv_wire_put_u32(struct vv_buf *b, uint32_t v)
{
	put_le(b, v, 4);
}

void vv_wire_put_u64(struct vv_buf *b, uint64_t v)
{
	put_le(b, v, 8);
}

void vv_wire_put_var(struct vv_buf *b, uint64_t v)
{
	uint8_t *to = vv_buf_room(b, 10);
	size_t n = 0;

	if (!to)
		return;
	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	b->n += n;
}

void vv_wire_put_signed(struct vv_buf *b, int64_t v)
{
	vv_wire_put_var(b, ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0));
}

void vv_wire_put_str(struct vv_buf *b, const char *s)
{
	size_t n = strlen(s);

	vv_wire_put_var(b, n);
	vv_buf_add(b, s, n);
}

struct vv_wire vv_wire_over(const void *p, size_t n)
{
	return (struct vv_wire){ .p = p, .end = n ? (const uint8_t *)p + n : p };
}

size_t vv_wire_left(const struct vv_wire *w)
{
	return w->bad ? 0 : (size_t)(w->end - w->p);
}

const uint8_t *vv_wire_bytes(struct vv_wire *w, size_t n)
{
	const uint8_t *at = w->p;

	if (vv_wire_left(w) < n || w->bad) {
		w->bad = true;
		return NULL;
	}
	w->p += n;
	return at;
}

static uint64_t get_le(struct vv_wire *w, size_t n)
{
	const uint8_t *p = vv_wire_bytes(w, n);
	uint64_t v = 0;

	for (size_t i = 0; p && i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

uint8_t vv_wire_u8(struct vv_wire *w)
{
	return (uint8_t)get_le(w, 1);
}

uint16_t vv_wire_u16(struct vv_wire *w)
{
	return (uint16_t)get_le(w, 2);
}

uint32_t vv_wire_u32(struct vv_wire *w)
{
	return (uint32_t)get_le(w, 4);
}

uint64_t vv_wire_u64(struct vv_wire *w)
{
	return get_le(w, 8);
}

/* Only the shortest form of a number is valid, so that every record has one encoding. */
uint64_t vv_wire_var(struct vv_wire *w)
{
	const uint8_t *p = w->p;
	uint64_t v = 0;

	for (unsigned shift = 0; !w->bad && p < w->end && shift < 64; shift += 7) {
		uint8_t byte = *p++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if ((shift == 63 && byte > 1) || (shift && !byte))
			break;
		w->p = p;
		return v;
	}
	w->bad = true;
	return 0;
}

uint64_t vv_wire_var_max(struct vv_wire *w, uint64_t max)
{
	uint64_t v = vv_wire_var(w);

	if (v <= max)
		return v;
	w->bad = true;
	return 0;
}

int64_t vv_wire_signed(struct vv_wire *w)
{
	uint64_t v = vv_wire_var(w);

	return (int64_t)((v >> 1) ^ (v & 1 ? UINT64_MAX : 0));
}

void vv_wire_str(struct vv_wire *w, char *out, size_t cap)
{
	size_t n = (size_t)vv_wire_var_max(w, cap - 1);
	const uint8_t *p = vv_wire_bytes(w, n);

	out[0] = '\0';
	if (!p)
		return;
	if (memchr(p, 0, n)) {
		w->bad = true;
		return;
	}
	memcpy(out, p, n);
	out[n] = '\0';
}
