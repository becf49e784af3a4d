/* Records: elements with named fields, such as the structs of a C program. */
#ifndef VV_CORE_FORMAT_RECORD_H
#define VV_CORE_FORMAT_RECORD_H

#include "base/wire.h"

enum {
	VV_RECORD_FIELDS = 128,
	VV_RECORD_NAME = 63, /* bytes of a field's name */
	VV_RECORD_BYTES = 1 << 20,
};

struct vv_record_field {
	char name[VV_RECORD_NAME + 1];
	uint8_t type;    /* enum vv_type, no record */
	uint32_t offset;
	uint32_t bytes;  /* a multiple of the type's size; several elements are an array */
};

/* Never changed, never freed: two records are the same exactly if their addresses are. */
struct vv_record {
	struct vv_record *next; /* found earlier */
	uint32_t number;        /* of those, and this one */
	uint32_t bytes;
	uint32_t n;
	struct vv_record_field field[]; /* by offset */
};

/* The record with these fields, in any order. `bytes` is the distance of two records. VV_EINVAL
 * with the reason if the format does not allow it. Any thread may call it. */
int vv_record_find(const char *region, uint64_t bytes, const struct vv_record_field *field, size_t n, const struct vv_record **out);

void vv_record_put(const struct vv_record *r, struct vv_buf *b);
/* Reads the output of vv_record_put, and checks all of it. */
int vv_record_get(const char *region, struct vv_wire *w, const struct vv_record **out);

#endif
