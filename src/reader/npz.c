/* NumPy's archives: zip files of array files. Stored members are parsed; deflated ones are not. */
#include "base/err.h"
#include "reader/npy.h"
#include "reader/zip.h"
#include <string.h>

static int add_member(struct vv_zip *z, struct vv_zip_member *m, struct vv_outline *out)
{
	char name[VV_ZIP_NAME + 1] = "/";
	size_t n = strlen(m->name);

	if (m->method != 0 || !vv_zip_find_bytes(z, m))
		return 0;
	memcpy(name + 1, m->name, n + 1);
	if (n > 4 && strcmp(m->name + n - 4, ".npy") == 0)
		name[1 + n - 4] = '\0';
	return vv_npy_outline(z->in->f, m->at, m->stored, name, out);
}

static int outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	struct vv_peek in, local;
	struct vv_zip_member m;
	struct vv_zip z;
	int rc = 0;

	vv_peek_init(&in, f);
	vv_peek_init(&local, f);
	if (vv_zip_open(&in, &local, f->len, &z))
		while (rc == 0 && vv_zip_next(&z, &m))
			rc = add_member(&z, &m, out);
	return rc ? rc : in.rc ? in.rc : local.rc;
}

static bool is(const struct vv_reader_file *f, const uint8_t *head, size_t n)
{
	const char *name;
	size_t len;

	(void)f;
	return vv_zip_is(head, n, &name, &len);
}

extern const struct vv_reader vv_reader_npz;
const struct vv_reader vv_reader_npz = { .name = "npz", .is = is, .outline = outline };
