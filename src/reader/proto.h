/* Protocol buffers, read field by field from memory: https://protobuf.dev/programming-guides/encoding. Nothing is trusted. */
#ifndef VV_READER_PROTO_H
#define VV_READER_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_proto { /* what is left of a message */
	const uint8_t *p;
	size_t n;
};

struct vv_proto_field {
	uint64_t number;
	uint64_t value;       /* of a number */
	struct vv_proto body; /* of a string or a message, else empty */
};

/* The next field; false at the end, and where the bytes make no sense. */
bool vv_proto_next(struct vv_proto *m, struct vv_proto_field *f);
/* A number in a message, 0 if it is not there. */
uint64_t vv_proto_number(struct vv_proto m, uint64_t number);
/* A string or a message in a message, empty if it is not there. */
struct vv_proto vv_proto_body(struct vv_proto m, uint64_t number);

#endif
