/* Reads protocol buffers field by field from untrusted memory:
 * https://protobuf.dev/programming-guides/encoding. */
#ifndef VV_READER_PROTO_H
#define VV_READER_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_proto { /* the rest of a message */
	const uint8_t *p;
	size_t n;
};

struct vv_proto_field {
	uint64_t number;
	uint64_t value;       /* of a number */
	struct vv_proto body; /* of a string or a message, else empty */
};

/* The next field; false at the end, and at invalid bytes. */
bool vv_proto_next(struct vv_proto *m, struct vv_proto_field *f);
/* A number in a message, 0 if absent. */
uint64_t vv_proto_number(struct vv_proto m, uint64_t number);
/* A string or a message in a message, empty if absent. */
struct vv_proto vv_proto_body(struct vv_proto m, uint64_t number);

#endif
