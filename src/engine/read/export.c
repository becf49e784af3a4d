/* Window by window. Long runs of zeros are not read; in a file they are not written either, but
 * become holes. */
#include "engine/read/export.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/read/restore.h"
#include "engine/read/holes.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW = 32 << 20, DESCR = VV_EXPORT_NPY - 1024 };

int vv_export_write(int fd, const uint8_t *p, size_t n)
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

const char *vv_export_npy_type(unsigned type)
{
	static const char *const codes[VV_TYPES] = { "|u1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4",
						     "<i8", "<u8", "<f4", "<f8", "<c8", "<c16",
						     "<V2", "<f2", "|V1", "|V1" };

	return codes[type < VV_TYPES ? type : VV_TYPE_BYTES];
}

/* NumPy format 1.0: magic, version, length of a Python dictionary, the dictionary padded to a
 * multiple of 64. */
static size_t put_npy(const char *descr, bool columns, unsigned ndim, const uint64_t *dim, uint8_t out[VV_EXPORT_NPY])
{
	enum { MAGIC = 10 };
	char *text = (char *)out + MAGIC, shape[512] = "";
	const char *quote;
	size_t used = 0, len;

	for (unsigned i = 0; i < ndim; i++)
		used += (size_t)snprintf(shape + used, sizeof(shape) - used, "%" PRIu64 ",%s", dim[columns ? ndim - 1 - i : i],
					 i + 1 < ndim ? " " : "");
	quote = *descr == '[' ? "" : "'"; /* a list of fields has quotes of its own */
	len = (size_t)snprintf(text, VV_EXPORT_NPY - MAGIC, "{'descr': %s%s%s, 'fortran_order': %s, 'shape': (%s), }", quote, descr, quote,
			       columns ? "True" : "False", shape);
	while ((len + 1 + MAGIC) % 64)
		text[len++] = ' ';
	text[len++] = '\n';
	memcpy(out, (const uint8_t[MAGIC]){ 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)len, (uint8_t)(len >> 8) }, MAGIC);
	return MAGIC + len;
}

int vv_export_npy_header(int fd, const char *descr, bool columns, unsigned ndim, const uint64_t *dim)
{
	uint8_t header[VV_EXPORT_NPY];

	return vv_export_write(fd, header, put_npy(descr, columns, ndim, dim, header));
}

/* The fields, and the bytes between them, which have no name. */
static void describe_record(const struct vv_record *r, char out[DESCR])
{
	size_t used = 0;
	uint32_t end = 0;

	for (uint32_t i = 0; i <= r->n; i++) {
		const struct vv_record_field *f = &r->field[i];
		uint32_t next = i < r->n ? f->offset : r->bytes, elements;

		if (next > end)
			used += (size_t)snprintf(out + used, DESCR - used, "%s('', '|V%" PRIu32 "')", used ? ", " : "[", next - end);
		if (i == r->n)
			break;
		elements = f->bytes / (uint32_t)vv_head_type_size(f->type);
		used += (size_t)snprintf(out + used, DESCR - used, "%s('%s', '%s'", used ? ", " : "[", f->name, vv_export_npy_type(f->type));
		if (elements > 1)
			used += (size_t)snprintf(out + used, DESCR - used, ", (%" PRIu32 ",)", elements);
		used += (size_t)snprintf(out + used, DESCR - used, ")");
		end = f->offset + f->bytes;
	}
	snprintf(out + used, DESCR - used, "]");
}

size_t vv_export_npy_shape(const struct vv_shape *s, uint8_t out[VV_EXPORT_NPY])
{
	char descr[DESCR];

	if (s->record) {
		describe_record(s->record, descr);
		return put_npy(descr, false, s->ndim, s->dim, out);
	}
	return put_npy(vv_export_npy_type(s->type), false, s->ndim ? s->ndim : 1, s->ndim ? s->dim : &s->len, out);
}

struct sink {
	int fd;
	const struct vv_runs *runs;
	bool holes;      /* zeros may be skipped: skipped bytes read as zero */
	uint64_t base;   /* with holes: the offset of the region in the file */
	uint8_t *window; /* WINDOW bytes */
};

/* Holes require a regular file that ends where the writing begins: skipping must not keep old
 * bytes. With O_APPEND, bytes go to the end of the file, wherever that is. */
static bool can_skip(int fd)
{
	struct stat st;
	off_t at = lseek(fd, 0, SEEK_CUR);
	int flags = fcntl(fd, F_GETFL);

	return at >= 0 && flags >= 0 && !(flags & O_APPEND) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size <= at;
}

/* Writes the window, which holds n bytes from `at` on. */
static int put_window(const struct sink *s, uint64_t at, uint64_t n)
{
	if (!s->holes)
		return vv_export_write(s->fd, s->window, (size_t)n);
	return vv_holes_write(s->fd, s->base, s->runs, at, s->window, n) < 0 ? vv_err_sys(errno, "cannot write the output") : 0;
}

/* At most a full window, if they are written. */
static int put_zeros(const struct sink *s, uint64_t n)
{
	if (s->holes)
		return 0;
	memset(s->window, 0, (size_t)n);
	return vv_export_write(s->fd, s->window, (size_t)n);
}

static int put_region(const struct sink *s, const struct vv_lineage *lin, struct vv_pool *pool, uint64_t len,
		      const struct vv_progress *progress)
{
	uint64_t at = 0, end;
	int rc = 0;

	for (; rc == 0 && at < len; at = end) {
		end = vv_holes_zeros_end(s->runs, at);
		if (end > at) {
			end = s->holes || end - at < WINDOW ? end : at + WINDOW;
			rc = put_zeros(s, end - at);
		} else {
			struct vv_want want = { s->runs, at, len - at < WINDOW ? len - at : WINDOW, s->window, NULL };

			end = at + want.len;
			rc = vv_restore_read(lin, pool, &want, 1);
			if (rc == 0)
				rc = put_window(s, at, want.len);
		}
		vv_progress_report(progress, end, len);
	}
	return rc;
}

/* A hole at the end needs the file's length to be set; later writes then go after it. */
static int put_length(const struct sink *s, uint64_t len)
{
	off_t end = (off_t)(s->base + len);

	return ftruncate(s->fd, end) < 0 || lseek(s->fd, end, SEEK_SET) < 0 ? vv_err_sys(errno, "cannot write the output") : 0;
}

int vv_export_region(const struct vv_lineage *lin, const struct vv_run_table_region *r, struct vv_pool *pool, int fd,
		     bool npy, const struct vv_progress *progress)
{
	struct sink s = { .fd = fd, .runs = &r->runs, .holes = can_skip(fd), .window = vv_mem_new(WINDOW, 1) };
	uint8_t header[VV_EXPORT_NPY];
	int rc = s.window ? 0 : VV_ENOMEM;

	if (rc == 0 && npy)
		rc = vv_export_write(fd, header, vv_export_npy_shape(&r->shape, header));
	if (rc == 0 && s.holes)
		s.base = (uint64_t)lseek(fd, 0, SEEK_CUR);
	if (rc == 0)
		rc = put_region(&s, lin, pool, r->shape.len, progress);
	if (rc == 0 && s.holes)
		rc = put_length(&s, r->shape.len);
	vv_mem_free(s.window);
	return rc;
}
