/* Extended attributes of a file or a folder, access control lists among them, as a manifest has them: docs/format.md, section 10. */
#ifndef VV_CORE_FORMAT_FILE_ATTRIBUTES_H
#define VV_CORE_FORMAT_FILE_ATTRIBUTES_H

#include "base/wire.h"

struct vv_attr {
	char *name;
	uint8_t *value;
	size_t len;
};

struct vv_file_attributes { /* by name, ascending */
	struct vv_attr *v;
	size_t n, cap;
};

enum {
	VV_FILE_ATTRIBUTES_NAME = 256,
	VV_FILE_ATTRIBUTES_VALUE = 64 << 10,
	VV_FILE_ATTRIBUTES_MOST = 16384
}; /* bytes of a name with its end, of a value; attributes of one file: limits of Linux */

/* Is it one that is packed, and given back? Those of users, and access control lists. Others are privileges, or labels of one host. */
bool vv_file_attributes_is_kept(const char *name);
/* Does it say no more than the mode? So it is with an NFSv4 list, which every file there has, that names nobody. */
bool vv_file_attributes_is_trivial(const char *name, const uint8_t *value, size_t len);

void vv_file_attributes_fini(struct vv_file_attributes *a);
/* Copies; in the order of names. */
int vv_file_attributes_add(struct vv_file_attributes *a, const char *name, const void *value, size_t len);
int vv_file_attributes_copy(const struct vv_file_attributes *from, struct vv_file_attributes *to);
bool vv_file_attributes_equal(const struct vv_file_attributes *a, const struct vv_file_attributes *b);

void vv_file_attributes_put(const struct vv_file_attributes *a, struct vv_buf *out);
/* a starts empty. Trusts nothing: w is bad if anything is wrong. At least one. */
int vv_file_attributes_get(struct vv_file_attributes *a, struct vv_wire *w);

#endif
