#include "engine/export.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/restore.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 32 << 20 };

static int write_all(int fd, const uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t put = write(fd, p, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return vv_err_sys(errno, "cannot write the output");
		p += put;
		n -= (size_t)put;
	}
	return 0;
}

/* NumPy format 1.0: magic, version, length of a Python dictionary, the dictionary padded to a multiple of 64. */
static int write_npy_header(const struct vv_shape *s, int fd)
{
	static const char *const codes[VV_TYPES] = { "|u1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4",
						     "<i8", "<u8", "<f4", "<f8", "<c8", "<c16" };
	char text[1024], shape[512] = "";
	uint64_t whole = s->len;
	unsigned ndim = s->ndim ? s->ndim : 1;
	size_t used = 0, len;
	uint8_t magic[10] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0 };
	int rc;

	for (unsigned i = 0; i < ndim; i++)
		used += (size_t)snprintf(shape + used, sizeof(shape) - used, "%" PRIu64 ",%s",
					 s->ndim ? s->dim[i] : whole, i + 1 < ndim ? " " : "");
	len = (size_t)snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
			       codes[s->type], shape);
	while ((len + 1 + sizeof(magic)) % 64)
		text[len++] = ' ';
	text[len++] = '\n';
	magic[8] = (uint8_t)len;
	magic[9] = (uint8_t)(len >> 8);
	rc = write_all(fd, magic, sizeof(magic));
	return rc ? rc : write_all(fd, (const uint8_t *)text, len);
}

int vv_export_region(const struct vv_lineage *lin, const struct vv_table_region *r, struct vv_pool *pool, int fd,
		     bool npy, const struct vv_progress *progress)
{
	uint8_t *window = vv_mem_new(WINDOW, 1);
	int rc = window ? 0 : VV_ENOMEM;

	if (rc == 0 && npy)
		rc = write_npy_header(&r->shape, fd);
	for (uint64_t at = 0; rc == 0 && at < r->shape.len; at += WINDOW) {
		size_t n = r->shape.len - at < WINDOW ? (size_t)(r->shape.len - at) : WINDOW;
		struct vv_want want = { &r->runs, at, n, window };

		rc = vv_restore_read(lin, pool, &want, 1);
		if (rc == 0)
			rc = write_all(fd, window, n);
		vv_progress_tell(progress, at + n, r->shape.len);
	}
	vv_mem_free(window);
	return rc;
}
