#include "engine/files/extract_variable.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/read/export.h"
#include "engine/read/restore.h"
#include "reader/filter.h"
#include "reader/resolve.h"
#include "reader/virtual.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	DEEP = 8, /* levels of variables that are made of other variables */
	PAGE = 128 << 10, /* bytes of a cached page of the file, */
	PAGES = 256,      /* and the number of cached pages */
	WINDOW = 32 << 20,
	TOGETHER = 8 << 20, /* array bytes that are assembled at a time, at least */
};

/* the limit of bytes assembled in memory: a row of chunks, or a variable made of others */
static const uint64_t slab_most = 4ull << 30;
/* the limits for all variables, with those that they are made of, that one variable is made of */
static const uint64_t arrays_most = 1 << 16, array_bytes_most = 256ull << 30;

struct extract_variable_page {
	uint64_t number; /* 1 + its number in the file; 0: empty */
	uint64_t used;   /* time of the last use */
	uint8_t *p;
};

struct vv_extract_variable_file {
	const struct vv_unpack *unpack;
	const struct vv_lineage *lineage;
	struct vv_pool *pool;
	struct vv_unpack_file file;
	struct extract_variable_page page[PAGES];
	uint64_t clock;
	struct vv_outline outline;
};

/* ---- the file for a reader ------------------------------------------------------------------- */

static int read_bytes(const struct vv_extract_variable_file *f, uint64_t at, void *to, uint64_t n)
{
	struct vv_want want = { &f->file.region->runs, at, n, to, NULL };

	return vv_restore_read(f->lineage, f->pool, &want, 1);
}

static int get_page(struct vv_extract_variable_file *f, uint64_t number, const struct extract_variable_page **out)
{
	uint64_t at = number * PAGE, left = f->file.region->shape.len - at;
	struct extract_variable_page *oldest = &f->page[number % PAGES], *p = oldest;
	int rc;

	/* a page has four possible slots; the least recently used one is replaced */
	for (unsigned i = 0; i < 4; i++) {
		p = &f->page[(number + i) % PAGES];
		if (p->number == number + 1)
			goto found;
		oldest = p->used < oldest->used ? p : oldest;
	}
	p = oldest;
	if (!p->p)
		p->p = vv_mem_new(PAGE, 1);
	if (!p->p)
		return VV_ENOMEM;
	p->number = 0;
	rc = read_bytes(f, at, p->p, left < PAGE ? left : PAGE);
	if (rc)
		return rc;
	p->number = number + 1;
found:
	p->used = ++f->clock;
	*out = p;
	return 0;
}

static int read_file(void *arg, uint64_t at, void *to, size_t n)
{
	struct vv_extract_variable_file *f = arg;
	int rc = 0;

	if (n >= 4 * PAGE)
		return read_bytes(f, at, to, n);
	for (size_t done = 0, part; rc == 0 && done < n; done += part) {
		uint64_t from = (at + done) % PAGE;
		const struct extract_variable_page *p = NULL;

		part = n - done < PAGE - from ? n - done : (size_t)(PAGE - from);
		rc = get_page(f, (at + done) / PAGE, &p);
		if (rc == 0)
			memcpy((uint8_t *)to + done, p->p + from, part);
	}
	return rc;
}

/* Another file of the epoch. */
static int read_sibling(void *arg, const char *name, size_t most, uint8_t **out, size_t *n)
{
	const struct vv_extract_variable_file *f = arg;
	const char *slash = strrchr(f->file.file->name, '/');
	char *path = vv_mem_printf("%.*s%s", slash ? (int)(slash - f->file.file->name + 1) : 0, f->file.file->name, name);
	struct vv_unpack_file other;
	int rc = path ? 0 : VV_ENOMEM;

	if (path && vv_unpack_has(f->unpack, path, &other)) {
		size_t len = other.region->shape.len < most ? (size_t)other.region->shape.len : most;
		uint8_t *p = vv_mem_new(len, 1);
		struct vv_want want = { &other.region->runs, 0, len, p, NULL };

		rc = p ? vv_restore_read(f->lineage, f->pool, &want, 1) : VV_ENOMEM;
		*out = rc ? NULL : p;
		*n = rc ? 0 : len;
		if (rc)
			vv_mem_free(p);
	}
	vv_mem_free(path);
	return rc;
}

static void drop_pages(struct vv_extract_variable_file *f)
{
	for (size_t i = 0; i < PAGES; i++) {
		vv_mem_free(f->page[i].p);
		f->page[i] = (struct extract_variable_page){ 0 };
	}
}

int vv_extract_variable_open(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_file *file, struct vv_extract_variable_file **out)
{
	struct vv_extract_variable_file *f = vv_mem_new(1, sizeof(*f));
	struct vv_reader_file from = { .name = file->file->name, .len = file->region->shape.len, .read = read_file, .arg = f, .sibling = read_sibling };
	int rc;

	if (!f)
		return VV_ENOMEM;
	f->unpack = u;
	f->lineage = u->lineage;
	f->pool = pool;
	f->file = *file;
	rc = vv_reader_outline(&from, &f->outline);
	drop_pages(f);
	if (rc)
		vv_extract_variable_close(f);
	else
		*out = f;
	return rc;
}

void vv_extract_variable_close(struct vv_extract_variable_file *f)
{
	if (!f)
		return;
	drop_pages(f);
	vv_reader_outline_fini(&f->outline);
	vv_mem_free(f);
}

static const char *without_slash(const char *name)
{
	return name + (name[0] == '/');
}

static const struct vv_variable *find(const struct vv_outline *o, const char *name)
{
	for (size_t i = 0; i < o->n_variables; i++)
		if (strcmp(without_slash(o->variable[i].name), without_slash(name)) == 0)
			return &o->variable[i];
	return NULL;
}

int vv_extract_variable_find(const struct vv_extract_variable_file *f, const char *name, const struct vv_variable **out)
{
	const struct vv_outline *o = &f->outline;
	const struct vv_variable *v = find(o, name);
	char list[600] = "", path[VV_RESOLVE_PATH];
	size_t used = 0;
	int rc = v ? 0 : vv_resolve_path(o, name, path);

	if (rc)
		return vv_err_context(rc, "file '%s'", f->file.file->name);
	if (!v)
		v = find(o, path);
	if (v) {
		*out = v;
		return 0;
	}
	for (size_t i = 0; i < o->n_variables && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s'%s'", i ? ", " : "", o->variable[i].name);
	return vv_err_set(VV_ENOENT, "file '%s' (%s) has no variable '%s'; it has %s%s", f->file.file->name, o->format,
			  strcmp(without_slash(path), without_slash(name)) == 0 ? name : path, o->n_variables ? list : "none that is known",
			  used >= sizeof(list) ? " ..." : "");
}

uint8_t vv_extract_variable_type(const struct vv_variable *v)
{
	return v->odd.type != VV_TYPE_BYTES ? v->odd.type : v->type;
}

bool vv_extract_variable_swapped(const struct vv_variable *v)
{
	return v->odd.type != VV_TYPE_BYTES ? v->odd.swapped && v->width > 1 : v->swapped;
}

int vv_extract_variable_bytes(const struct vv_variable *v, uint64_t *out)
{
	uint64_t n = v->width;
	bool over = false;

	for (unsigned i = 0; i < v->ndim; i++)
		over |= v->dim[i] && __builtin_mul_overflow(n, v->dim[i], &n);
	for (unsigned i = 0; i < v->ndim; i++)
		n = v->dim[i] ? n : 0;
	if (over || n > VV_MAX_REGION_BYTES)
		return vv_err_set(VV_EDAMAGED, "variable '%s': its dimensions cannot be", v->name);
	*out = n;
	return 0;
}

/* ---- pieces of a variable -------------------------------------------------------------------- */

struct extract_variable_made { /* arrays that were assembled for one variable, */
	uint64_t arrays, bytes; /* at all levels */
};

struct extract_variable_work {
	struct vv_extract_variable_file *f;
	const struct vv_variable *v;
	struct vv_outline_piece *piece; /* by ordinal, then position */
	size_t n;
	int fd;
	unsigned depth; /* nesting of variables that are made of others */
	struct extract_variable_made *made;
	bool npy;       /* with a .npy header */
	bool as_stored; /* integers with fewer bits are not widened */
	uint64_t bytes; /* of the whole array */
	const struct vv_progress *progress;
	/* for a chunked variable: */
	uint64_t grid[VV_MAX_DIMS]; /* chunks in each dimension */
	uint64_t chunk_len, slab_len; /* bytes */
	/* the chunks of one first index, or of several; its last rows may lie outside the array */
	uint8_t *slab;
	uint64_t origin; /* its first row */
	struct vv_outline_piece *first; /* first piece in the slab */
	uint8_t **raw;
	struct vv_err_state error;
	atomic_int failed;
};

static int by_ordinal(const void *a, const void *b)
{
	const struct vv_outline_piece *x = a, *y = b;

	if (x->ordinal != y->ordinal)
		return x->ordinal < y->ordinal ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int gather(struct extract_variable_work *w)
{
	const struct vv_outline *o = &w->f->outline;
	uint32_t number = (uint32_t)(w->v - o->variable);

	w->piece = vv_mem_new(o->n_pieces, sizeof(*w->piece));
	if (!w->piece)
		return VV_ENOMEM;
	for (size_t i = 0; i < o->n_pieces; i++)
		if (o->piece[i].variable == number)
			w->piece[w->n++] = o->piece[i];
	if (w->n)
		qsort(w->piece, w->n, sizeof(*w->piece), by_ordinal);
	return 0;
}

static void fill(const struct vv_variable *v, uint8_t *p, uint64_t n)
{
	if (v->n_fill != v->width || n < v->width) {
		memset(p, 0, (size_t)n);
		return;
	}
	memcpy(p, v->fill, v->width);
	for (uint64_t done = v->width, part; done < n; done += part) {
		part = done < n - done ? done : n - done;
		memcpy(p + done, p, (size_t)part);
	}
}

/* Widens a number that uses some bits of its element to the whole element. */
static void widen(const struct vv_variable *v, uint8_t *p)
{
	unsigned type = v->odd.type;
	bool has_sign = type == VV_TYPE_I8 || type == VV_TYPE_I16 || type == VV_TYPE_I32 || type == VV_TYPE_I64;
	uint64_t x = 0;

	for (unsigned i = 0; i < v->width; i++)
		x |= (uint64_t)p[v->odd.swapped ? v->width - 1 - i : i] << 8 * i;
	x = x >> v->odd.at & (UINT64_MAX >> (64 - v->odd.bits));
	if (has_sign && x >> (v->odd.bits - 1))
		x |= UINT64_MAX << (v->odd.bits - 1);
	for (unsigned i = 0; i < v->width; i++)
		p[v->odd.swapped ? v->width - 1 - i : i] = (uint8_t)(x >> 8 * i);
}

/* Writes n bytes of the array; may change them in place. */
static int put(const struct extract_variable_work *w, uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; w->v->odd.type != VV_TYPE_BYTES && !w->as_stored && i + w->v->width <= n; i += w->v->width)
		widen(w->v, p + i);
	return vv_export_write(w->fd, p, (size_t)n);
}

/* ---- contiguous variables and records -------------------------------------------------------- */

static int write_fill(struct extract_variable_work *w, uint8_t *window)
{
	uint64_t step = WINDOW / w->v->width * w->v->width;
	int rc = 0;

	if (!step)
		return vv_err_set(VV_ENOTSUP, "variable '%s': elements of %" PRIu32 " bytes", w->v->name, w->v->width);
	for (uint64_t done = 0, part; rc == 0 && done < w->bytes; done += part) {
		part = w->bytes - done < step ? w->bytes - done : step;
		fill(w->v, window, part);
		rc = put(w, window, part);
	}
	return rc;
}

static int write_stretches(struct extract_variable_work *w)
{
	uint8_t *window = vv_mem_map(WINDOW);
	uint64_t sum = 0, done = 0;
	int rc = window ? 0 : VV_ENOMEM;

	for (size_t i = 0; i < w->n; i++)
		sum += w->piece[i].len;
	if (rc == 0 && w->n == 0 && !w->v->partial)
		rc = write_fill(w, window);
	else if (rc == 0 && sum != w->bytes)
		rc = vv_err_set(VV_EDAMAGED, "variable '%s': of its %" PRIu64 " bytes %" PRIu64 " are in the file", w->v->name, w->bytes, sum);
	for (size_t i = 0; rc == 0 && i < w->n; i++)
		for (uint64_t at = 0, part; rc == 0 && at < w->piece[i].len; at += part) {
			part = w->piece[i].len - at < WINDOW ? w->piece[i].len - at : WINDOW;
			rc = part < PAGE ? read_file(w->f, w->piece[i].at + at, window, (size_t)part) :
					   read_bytes(w->f, w->piece[i].at + at, window, part);
			if (rc == 0)
				rc = put(w, window, part);
			done += part;
			vv_progress_report(w->progress, done, w->bytes);
		}
	vv_mem_unmap(window, WINDOW);
	return rc;
}

/* ---- chunked variables ----------------------------------------------------------------------- */

/* Chunks are complete even at the edge of the array. */
static int lay_grid(struct extract_variable_work *w)
{
	const struct vv_variable *v = w->v;
	uint64_t row = v->width;
	bool over = v->ndim == 0;

	w->chunk_len = v->width;
	for (unsigned i = 0; i < v->ndim; i++) {
		over |= v->chunk[i] == 0 || __builtin_mul_overflow(w->chunk_len, v->chunk[i], &w->chunk_len);
		w->grid[i] = v->chunk[i] ? v->dim[i] / v->chunk[i] + (v->dim[i] % v->chunk[i] != 0) : 0;
		if (i)
			over |= __builtin_mul_overflow(row, v->dim[i], &row);
	}
	if (over || w->chunk_len > slab_most || __builtin_mul_overflow(row, v->chunk[0], &w->slab_len))
		return vv_err_set(VV_EDAMAGED, "variable '%s': its chunks cannot be", v->name);
	if (v->chunk[0] > v->dim[0])
		w->slab_len = row * v->dim[0];
	if (w->slab_len > slab_most)
		return vv_err_set(VV_ENOTSUP, "variable '%s': a row of its chunks is %" PRIu64 " bytes, too many to be put together in memory", v->name,
				  w->slab_len);
	return 0;
}

/* Copies the rows of a chunk to the slab; rows run along the last dimension. */
static void place(const struct extract_variable_work *w, uint64_t ordinal, const uint8_t *chunk)
{
	const struct vv_variable *v = w->v;
	uint64_t from[VV_MAX_DIMS], size[VV_MAX_DIMS], at[VV_MAX_DIMS] = { 0 };
	unsigned last = v->ndim - 1, i;

	for (i = v->ndim; i-- > 0;) {
		from[i] = ordinal % w->grid[i] * v->chunk[i];
		ordinal /= w->grid[i];
		size[i] = v->dim[i] - from[i] < v->chunk[i] ? v->dim[i] - from[i] : v->chunk[i];
	}
	from[0] -= w->origin; /* relative to the slab */
	do {
		uint64_t in = 0, to = 0;

		for (i = 0; i < v->ndim; i++) {
			in = in * v->chunk[i] + at[i];
			to = to * v->dim[i] + from[i] + at[i];
		}
		memcpy(w->slab + to * v->width, chunk + in * v->width, (size_t)(size[last] * v->width));
		for (i = last; i-- > 0 && ++at[i] == size[i];)
			at[i] = 0;
	} while (i != UINT_MAX); /* i wrapped below 0: all dimensions are counted */
}

static void fail(struct extract_variable_work *w, int rc)
{
	if (!atomic_exchange(&w->failed, 1))
		vv_err_save(rc, &w->error);
}

static void place_one(void *arg, size_t i)
{
	struct extract_variable_work *w = arg;
	const struct vv_outline_piece *p = &w->first[i];
	uint8_t *chunk;
	int rc;

	if (atomic_load(&w->failed))
		return;
	if (!p->coded && p->len == w->chunk_len) {
		place(w, p->ordinal, w->raw[i]);
		return;
	}
	chunk = vv_mem_new((size_t)w->chunk_len, 1);
	if (!chunk)
		rc = VV_ENOMEM;
	else if (!p->coded)
		rc = vv_err_set(VV_EDAMAGED, "a chunk has %" PRIu64 " bytes, not %" PRIu64, p->len, w->chunk_len);
	else
		rc = vv_filter_undo(w->v, p->mask, w->raw[i], (size_t)p->len, chunk, (size_t)w->chunk_len);
	if (rc == 0)
		place(w, p->ordinal, chunk);
	else
		fail(w, vv_err_context(rc, "variable '%s', chunk %" PRIu64, w->v->name, p->ordinal));
	vv_mem_free(chunk);
}

static int read_chunks(struct extract_variable_work *w, size_t n)
{
	struct vv_want *want = vv_mem_new(n, sizeof(*want));
	uint64_t sum = 0;
	uint8_t *raw;
	int rc;

	for (size_t i = 0; i < n; i++)
		sum += w->first[i].len;
	raw = vv_mem_map((size_t)sum);
	w->raw = vv_mem_new(n, sizeof(*w->raw));
	rc = want && raw && w->raw ? 0 : VV_ENOMEM;
	for (uint64_t i = 0, at = 0; rc == 0 && i < n; at += w->first[i++].len) {
		w->raw[i] = raw + at;
		want[i] = (struct vv_want){ &w->f->file.region->runs, w->first[i].at, w->first[i].len, w->raw[i], NULL };
	}
	if (rc == 0)
		rc = vv_restore_read(w->f->lineage, w->f->pool, want, n);
	if (rc == 0)
		vv_pool_each(w->f->pool, n, place_one, w);
	if (rc == 0 && atomic_load(&w->failed))
		rc = vv_err_restore(&w->error);
	vv_mem_unmap(raw, (size_t)sum);
	vv_mem_free(w->raw);
	vv_mem_free(want);
	return rc;
}

static int write_chunks(struct extract_variable_work *w)
{
	uint64_t per_slab = 1, done = 0, rows = 1, most = 0;
	size_t at = 0;
	int rc = lay_grid(w);

	for (unsigned i = 1; i < w->v->ndim; i++)
		per_slab *= w->grid[i]; /* at most the bytes of a slab */
	if (rc == 0) /* several small ones are assembled at a time */
		rows = w->slab_len && w->slab_len < TOGETHER ? TOGETHER / w->slab_len : 1;
	rows = rows < w->grid[0] ? rows : w->grid[0];
	most = rows * w->slab_len;
	w->slab = rc ? NULL : vv_mem_map((size_t)most);
	if (rc == 0 && !w->slab)
		rc = VV_ENOMEM;
	for (uint64_t s = 0; rc == 0 && s < w->grid[0]; s += rows) {
		uint64_t len = w->bytes - done < most ? w->bytes - done : most;
		size_t n = 0;

		fill(w->v, w->slab, most);
		w->first = &w->piece[at];
		w->origin = s * w->v->chunk[0];
		while (at + n < w->n && w->piece[at + n].ordinal / per_slab < s + rows)
			n++;
		rc = n ? read_chunks(w, n) : 0;
		at += n;
		if (rc == 0)
			rc = put(w, w->slab, len);
		done += len;
		vv_progress_report(w->progress, done, w->bytes);
	}
	vv_mem_unmap(w->slab, (size_t)most);
	return rc;
}

/* ---- output ---------------------------------------------------------------------------------- */

static int write_header(const struct vv_variable *v, int fd)
{
	char descr[16];

	if (vv_extract_variable_type(v) == VV_TYPE_BYTES)
		snprintf(descr, sizeof(descr), v->width == 1 ? "|u1" : "|V%" PRIu32, v->width);
	else
		snprintf(descr, sizeof(descr), "%s", vv_export_npy_type(vv_extract_variable_type(v)));
	if (vv_extract_variable_swapped(v) && descr[0] == '<')
		descr[0] = '>';
	return vv_export_npy_header(fd, descr, v->columns, v->ndim, v->dim);
}

static int write_array(struct extract_variable_work *w);

/* ---- variables made of others ---------------------------------------------------------------- */

/* Each level may refer to the next one many times, so the number of arrays can grow without
 * bound. */
static int check_array(const struct extract_variable_work *w, const struct vv_variable *v, uint64_t n)
{
	if (n == 0 || n > slab_most)
		return vv_err_set(VV_ENOTSUP, "variable '%s' has %" PRIu64 " bytes, which cannot be put together in memory", v->name, n);
	w->made->bytes += n;
	if (++w->made->arrays > arrays_most || w->made->bytes > array_bytes_most)
		return vv_err_set(VV_ENOTSUP, "variable '%s' and others are read too often: the limit for one variable is %" PRIu64 " times, and %" PRIu64 " GiB; "
				  "unpack the file and read it with HDF5", v->name, arrays_most, array_bytes_most >> 30);
	return 0;
}

/* Writes the array of a variable to an unnamed file; the caller unmaps *p. */
static int make_array(const struct extract_variable_work *w, const struct vv_variable *v, uint8_t **p, uint64_t *n)
{
	struct extract_variable_work part = { .f = w->f, .v = v, .depth = w->depth + 1, .made = w->made, .as_stored = true };
	int rc = w->depth < DEEP ? vv_extract_variable_bytes(v, n) : vv_err_set(VV_ENOTSUP, "variable '%s' is made of itself, or too deep", v->name);

	if (rc == 0)
		rc = check_array(w, v, *n);
	if (rc)
		return rc;
	part.fd = memfd_create("varve-variable", MFD_CLOEXEC);
	if (part.fd < 0)
		return vv_err_sys(errno, "no file in memory for variable '%s'", v->name);
	rc = write_array(&part);
	if (rc == 0) {
		*p = mmap(NULL, (size_t)*n, PROT_READ, MAP_PRIVATE, part.fd, 0);
		rc = *p == MAP_FAILED ? vv_err_sys(errno, "cannot map variable '%s'", v->name) : 0;
	}
	close(part.fd);
	return rc;
}

static int write_made(struct extract_variable_work *w)
{
	const struct vv_outline *o = &w->f->outline;
	uint8_t *whole = w->bytes <= slab_most ? vv_mem_map((size_t)w->bytes) : NULL;
	int rc = whole ? 0 : w->bytes <= slab_most ? VV_ENOMEM :
		vv_err_set(VV_ENOTSUP, "variable '%s' has %" PRIu64 " bytes, too many to be put together in memory", w->v->name, w->bytes);

	if (rc == 0)
		fill(w->v, whole, w->bytes);
	for (size_t i = 0; rc == 0 && i < o->n_maps; i++) {
		const struct vv_variable *source = NULL;
		uint8_t *from = NULL;
		uint64_t n = 0;

		if (o->map[i].variable != (uint32_t)(w->v - o->variable))
			continue;
		rc = vv_extract_variable_find(w->f, o->map[i].source, &source);
		if (rc == 0)
			rc = make_array(w, source, &from, &n);
		if (rc == 0)
			rc = vv_virtual_copy(&o->map[i], source, from, w->v, whole);
		if (from && from != MAP_FAILED)
			munmap(from, (size_t)n);
	}
	if (rc == 0)
		rc = put(w, whole, w->bytes);
	vv_mem_unmap(whole, (size_t)w->bytes);
	return rc;
}

static int write_array(struct extract_variable_work *w)
{
	const struct vv_variable *v = w->v;
	int rc = vv_extract_variable_bytes(v, &w->bytes);

	if (rc == 0 && v->variable_length)
		rc = vv_err_set(VV_ENOTSUP, "variable '%s': its elements are of different lengths, and no array", v->name);
	if (rc == 0 && v->partial)
		rc = vv_err_set(VV_ENOTSUP, "variable '%s': %s", v->name, v->lack ? v->lack : "some of it lies in another file, or was not found in this one");
	if (rc == 0)
		rc = gather(w);
	if (rc == 0 && w->npy)
		rc = write_header(v, w->fd);
	if (rc == 0 && w->bytes)
		rc = v->made ? write_made(w) : v->chunked ? write_chunks(w) : write_stretches(w);
	vv_mem_free(w->piece);
	return rc;
}

int vv_extract_variable_write(struct vv_extract_variable_file *f, const struct vv_variable *v, int fd, bool npy, const struct vv_progress *progress)
{
	struct extract_variable_made made = { 0 };
	struct extract_variable_work w = { .f = f, .v = v, .fd = fd, .made = &made, .npy = npy, .progress = progress };

	return write_array(&w);
}
