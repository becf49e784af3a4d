/* Images as CRIU writes them, for tests: entries of protocol buffers behind magic numbers. */
#ifndef VV_TEST_PROTO_H
#define VV_TEST_PROTO_H

#include "base/wire.h"

static inline void proto_varint(struct vv_buf *b, uint64_t v)
{
	while (v >= 0x80) {
		vv_wire_put_u8(b, (uint8_t)(v | 0x80));
		v >>= 7;
	}
	vv_wire_put_u8(b, (uint8_t)v);
}

static inline void proto_number(struct vv_buf *b, unsigned field, uint64_t v)
{
	proto_varint(b, field << 3);
	proto_varint(b, v);
}

static inline void proto_bytes(struct vv_buf *b, unsigned field, const void *p, size_t n)
{
	proto_varint(b, field << 3 | 2);
	proto_varint(b, n);
	vv_buf_add(b, p, n);
}

/* A message becomes a field of another one, or an entry of an image, and is empty again. */
static inline void proto_message(struct vv_buf *b, unsigned field, struct vv_buf *m)
{
	proto_bytes(b, field, m->p, m->n);
	vv_buf_fini(m);
}

static inline void proto_magic(struct vv_buf *b, uint32_t magic)
{
	vv_wire_put_u32(b, 0x54564319);
	vv_wire_put_u32(b, magic);
}

static inline void proto_entry(struct vv_buf *b, struct vv_buf *m)
{
	vv_wire_put_u32(b, (uint32_t)m->n);
	vv_buf_add(b, m->p, m->n);
	vv_buf_fini(m);
}

#endif
