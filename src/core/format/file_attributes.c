#include "core/format/file_attributes.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

bool vv_file_attributes_is_kept(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strcmp(name, "system.posix_acl_access") == 0 ||
	       strcmp(name, "system.posix_acl_default") == 0 || strcmp(name, "system.nfs4_acl") == 0;
}

/* Numbers of NFS have their high byte first. */
static bool take_u32(const uint8_t **p, size_t *left, uint32_t *out)
{
	if (*left < 4)
		return false;
	*out = (uint32_t)(*p)[0] << 24 | (uint32_t)(*p)[1] << 16 | (uint32_t)(*p)[2] << 8 | (*p)[3];
	*p += 4;
	*left -= 4;
	return true;
}

/* RFC 7530, section 6: a count, then for each entry type, flags, mask, and the principal, padded to
 * four bytes. */
bool vv_file_attributes_is_trivial(const char *name, const uint8_t *value, size_t len)
{
	uint32_t n, number, who;

	if (strcmp(name, "system.nfs4_acl") != 0 || !take_u32(&value, &len, &n))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		for (int k = 0; k < 3; k++)
			if (!take_u32(&value, &len, &number))
				return false;
		if (!take_u32(&value, &len, &who) || who > len || who == 0 ||
		    value[who - 1] != '@') /* OWNER@, GROUP@, EVERYONE@ */
			return false;
		who = (who + 3) / 4 * 4 < len ? (who + 3) / 4 * 4 : (uint32_t)len;
		value += who;
		len -= who;
	}
	return true;
}

void vv_file_attributes_fini(struct vv_file_attributes *a)
{
	for (size_t i = 0; i < a->n; i++) {
		vv_mem_free(a->v[i].name);
		vv_mem_free(a->v[i].value);
	}
	vv_mem_free(a->v);
	*a = (struct vv_file_attributes){0};
}

int vv_file_attributes_add(struct vv_file_attributes *a, const char *name, const void *value, size_t len)
{
	struct vv_attr x = {.len = len};
	size_t at = a->n;
	int rc = vv_mem_room(&a->v, a->n, &a->cap, sizeof(*a->v));

	if (rc)
		return rc;
	x.name = vv_mem_strdup(name);
	x.value = vv_mem_new(len + 1, 1);
	if (!x.name || !x.value) {
		vv_mem_free(x.name);
		vv_mem_free(x.value);
		return VV_ENOMEM;
	}
	if (len)
		memcpy(x.value, value, len);
	for (; at > 0 && strcmp(a->v[at - 1].name, name) > 0; at--)
		a->v[at] = a->v[at - 1];
	a->v[at] = x;
	a->n++;
	return 0;
}

int vv_file_attributes_copy(const struct vv_file_attributes *from, struct vv_file_attributes *to)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < from->n; i++)
		rc = vv_file_attributes_add(to, from->v[i].name, from->v[i].value, from->v[i].len);
	return rc;
}

bool vv_file_attributes_equal(const struct vv_file_attributes *a, const struct vv_file_attributes *b)
{
	bool equal = a->n == b->n;

	for (size_t i = 0; equal && i < a->n; i++)
		equal = strcmp(a->v[i].name, b->v[i].name) == 0 && a->v[i].len == b->v[i].len &&
			memcmp(a->v[i].value, b->v[i].value, a->v[i].len) == 0;
	return equal;
}

void vv_file_attributes_put(const struct vv_file_attributes *a, struct vv_buf *out)
{
	vv_wire_put_var(out, a->n);
	for (size_t i = 0; i < a->n; i++) {
		vv_wire_put_str(out, a->v[i].name);
		vv_wire_put_var(out, a->v[i].len);
		vv_buf_add(out, a->v[i].value, a->v[i].len);
	}
}

int vv_file_attributes_get(struct vv_file_attributes *a, struct vv_wire *w)
{
	uint64_t n = vv_wire_var_max(w, VV_FILE_ATTRIBUTES_MOST);
	int rc = 0;

	w->bad |= n == 0;
	for (uint64_t i = 0; rc == 0 && !w->bad && i < n; i++) {
		char name[VV_FILE_ATTRIBUTES_NAME];
		const uint8_t *value;
		size_t len;

		vv_wire_str(w, name, sizeof(name));
		len = (size_t)vv_wire_var_max(w, VV_FILE_ATTRIBUTES_VALUE);
		value = vv_wire_bytes(w, len);
		w->bad |= !vv_file_attributes_is_kept(name) || (a->n && strcmp(a->v[a->n - 1].name, name) >= 0);
		if (!w->bad)
			rc = vv_file_attributes_add(a, name, value, len);
	}
	return rc;
}
