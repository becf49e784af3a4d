#include "engine/files/xattr.h"
#include "base/err.h"
#include "base/mem.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

enum { TRIES = 8 };

static void leave(struct vv_xattr_left *left, const char *name, const char *attr, const char *why)
{
	if (left->n++ == 0)
		snprintf(left->first, sizeof(left->first), "%.256s of '%.200s': %s", attr, name, why);
}

/* These would be packed, and cannot be read. */
static void leave_unread(struct vv_xattr_left *left, const char *name, const char *attr, int error)
{
	leave(left, name, attr, strerror(error));
	left->unread = true;
}

/* Returns 0, VV_ENOMEM, or the number of a system error. */
static int list_once(int fd, char **out, size_t *n)
{
	ssize_t need = flistxattr(fd, NULL, 0), got;
	char *p;

	if (need <= 0)
		return need < 0 ? errno : 0;
	p = vv_mem_new((size_t)need, 1);
	if (!p)
		return VV_ENOMEM;
	got = flistxattr(fd, p, (size_t)need);
	if (got <= 0 || p[got - 1] != '\0') {
		int error = got < 0 ? errno : got > 0 ? EIO : 0;

		vv_mem_free(p);
		return error;
	}
	*out = p;
	*n = (size_t)got;
	return 0;
}

/* All names, each with a NUL behind it; none if they cannot be read. Linux gives no list above 64
 * KiB, though some file systems hold more names. The caller frees *out. */
static int list_names(int fd, const char *name, char **out, size_t *n, struct vv_xattr_left *left)
{
	int rc = ERANGE;

	*out = NULL;
	*n = 0;
	for (int i = 0; rc == ERANGE && i < TRIES; i++) /* names may be added between the two calls */
		rc = list_once(fd, out, n);
	if (rc > 0 && rc != ENOTSUP && rc != ENOSYS)
		leave_unread(left, name, "all attributes", rc);
	return rc < 0 ? rc : 0;
}

static int read_one(int fd, const char *name, const char *attr, struct vv_file_attributes *out, struct vv_xattr_left *left)
{
	uint8_t some[256], *value = some;
	ssize_t n = fgetxattr(fd, attr, some, sizeof(some));
	int rc = 0;

	if (n < 0 && errno == ERANGE) {
		value = vv_mem_new(VV_FILE_ATTRIBUTES_VALUE, 1);
		if (!value)
			return VV_ENOMEM;
		n = fgetxattr(fd, attr, value, VV_FILE_ATTRIBUTES_VALUE);
	}
	if (n < 0 && errno != ENODATA)
		leave_unread(left, name, attr, errno);
	else if (n >= 0 && !vv_file_attributes_is_trivial(attr, value, (size_t)n))
		rc = vv_file_attributes_add(out, attr, value, (size_t)n);
	if (value != some)
		vv_mem_free(value);
	return rc;
}

int vv_xattr_read(int fd, const char *name, struct vv_file_attributes *out, struct vv_xattr_left *left)
{
	char *names;
	size_t n;
	int rc = list_names(fd, name, &names, &n, left);

	for (size_t at = 0; rc == 0 && at < n; at += strlen(names + at) + 1) {
		const char *attr = names + at;

		if (vv_file_attributes_is_kept(attr))
			rc = read_one(fd, name, attr, out, left);
		else if (strcmp(attr, "security.selinux") !=
			 0) /* every file of such a system has it, and gets it from the system */
			leave(left, name, attr, "it is a privilege or of this host");
	}
	vv_mem_free(names);
	return rc;
}

void vv_xattr_write(int fd, const char *name, const struct vv_file_attributes *a, struct vv_xattr_left *left)
{
	for (size_t i = 0; i < a->n; i++)
		if (fsetxattr(fd, a->v[i].name, a->v[i].value, a->v[i].len, 0) < 0)
			leave(left, name, a->v[i].name, strerror(errno));
}

bool vv_xattr_equal(int fd, const struct vv_file_attributes *a, bool *unread)
{
	struct vv_xattr_left left = {0};
	struct vv_file_attributes now = {0};
	bool equal = vv_xattr_read(fd, "", &now, &left) == 0 && !left.unread && vv_file_attributes_equal(&now, a);

	*unread = left.unread;
	vv_file_attributes_fini(&now);
	return equal;
}
