/* Little-endian numbers, varints (LEB128) and strings: to a buffer, and from untrusted bytes. The
 * reader never passes its end. The first bad read is remembered, so a decoder may read a whole
 * record and check once. */
#ifndef VV_BASE_WIRE_H
#define VV_BASE_WIRE_H

#include "base/buf.h"

void vv_wire_put_u8(struct vv_buf *b, uint8_t v);
void vv_wire_put_u16(struct vv_buf *b, uint16_t v);
void vv_wire_put_u32(struct vv_buf *b, uint32_t v);
void vv_wire_put_u64(struct vv_buf *b, uint64_t v);
void vv_wire_put_var(struct vv_buf *b, uint64_t v);
void vv_wire_put_signed(struct vv_buf *b, int64_t v); /* zigzag, then varint */
void vv_wire_put_str(struct vv_buf *b, const char *s); /* varint length, bytes */

struct vv_wire {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

struct vv_wire vv_wire_over(const void *p, size_t n);
size_t vv_wire_left(const struct vv_wire *w);
uint8_t vv_wire_u8(struct vv_wire *w);
uint16_t vv_wire_u16(struct vv_wire *w);
uint32_t vv_wire_u32(struct vv_wire *w);
uint64_t vv_wire_u64(struct vv_wire *w);
uint64_t vv_wire_var(struct vv_wire *w);
/* A varint of at most max; else the reader is bad and 0 is returned. */
uint64_t vv_wire_var_max(struct vv_wire *w, uint64_t max);
int64_t vv_wire_signed(struct vv_wire *w);
/* n bytes in place, or NULL. */
const uint8_t *vv_wire_bytes(struct vv_wire *w, size_t n);
/* Reads a string of at most cap - 1 bytes without NUL into out, and terminates it. */
void vv_wire_str(struct vv_wire *w, char *out, size_t cap);

#endif
