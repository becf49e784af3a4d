/* Extended attributes of a file or a folder, access control lists among them, as a manifest has
 * them: docs/format.md, section 10. */
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

/* Is the attribute packed and restored? Attributes of users and access control lists are. Others
 * are privileges, or labels of one host. */
bool vv_file_attributes_is_kept(const char *name);
/* Is the attribute equivalent to the mode? An NFSv4 list that names no user or group is. Every file
 * on NFSv4 has a list. */
bool vv_file_attributes_is_trivial(const char *name, const uint8_t *value, size_t len);

void vv_file_attributes_fini(struct vv_file_attributes *a);
/* Copies the attribute; the names must come in ascending order. */
int vv_file_attributes_add(struct vv_file_attributes *a, const char *name, const void *value, size_t len);
int vv_file_attributes_copy(const struct vv_file_attributes *from, struct vv_file_attributes *to);
bool vv_file_attributes_equal(const struct vv_file_attributes *a, const struct vv_file_attributes *b);

void vv_file_attributes_put(const struct vv_file_attributes *a, struct vv_buf *out);
/* a starts empty. Trusts no byte: w is bad if anything is wrong. There is at least one
 * attribute. */
int vv_file_attributes_get(struct vv_file_attributes *a, struct vv_wire *w);

#endif
