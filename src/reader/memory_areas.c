#include "reader/memory_areas.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 320, PART = 16 };

/* the kernel places the heap no further behind the executable */
static const uint64_t far_away = 8ull << 30;

void vv_memory_areas_init(struct vv_memory_areas *m, struct vv_outline *out)
{
	*m = (struct vv_memory_areas){ .out = out };
	vv_map_init(&m->by_name);
}

void vv_memory_areas_fini(struct vv_memory_areas *m)
{
	vv_map_fini(&m->by_name);
	vv_mem_free(m->area);
}

/* ---- areas ----------------------------------------------------------------------------------- */

static bool starts(const char *p, size_t n, const char *with)
{
	return n >= strlen(with) && memcmp(p, with, strlen(with)) == 0;
}

static bool contains(const char *p, size_t n, const char *what)
{
	return memmem(p, n, what, strlen(what)) != NULL;
}

static uint8_t segment_of_file(const char *path, size_t n)
{
	static const char *const shared[] = { "/dev/zero", "/dev/shm/", "/memfd:", "/SYSV", "/run/shm/" };

	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		if (starts(path, n, shared[i]))
			return VV_SEGMENT_SHARED;
	return contains(path, n, ".so.") || (n > 3 && memcmp(path + n - 3, ".so", 3) == 0) ? VV_SEGMENT_LIBRARY : VV_SEGMENT_FILE;
}

int vv_memory_areas_add(struct vv_memory_areas *m, const struct vv_memory_areas_area *a, const char *path, size_t len)
{
	struct vv_memory_areas_area *to;
	const char *slash;

	if (a->from >= a->to)
		return 0;
	if (vv_mem_room(&m->area, m->n, &m->cap, sizeof(*m->area)))
		return VV_ENOMEM;
	to = &m->area[m->n++];
	*to = *a;
	if (path && to->segment == VV_SEGMENT_NONE)
		to->segment = segment_of_file(path, len);
	slash = path ? memrchr(path, '/', len) : NULL;
	to->file = slash ? slash + 1 : path;
	to->file_len = path ? len - (size_t)(to->file - path) : 0;
	return 0;
}

static int compare(const void *one, const void *other)
{
	const struct vv_memory_areas_area *a = one, *b = other;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->to > b->to) - (a->to < b->to);
}

static void drop_overlaps(struct vv_memory_areas *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n; i++)
		if (!kept || m->area[i].from >= m->area[kept - 1].to)
			m->area[kept++] = m->area[i];
	m->n = kept;
}

/* The first area that ends behind the address; m->n if none does. */
static size_t find(const struct vv_memory_areas *m, uint64_t at)
{
	size_t i;

	VV_SEARCH(i, 0, m->n, m->area[i].to <= at);
	return i;
}

static bool is_same_file(const struct vv_memory_areas_area *a, const struct vv_memory_areas_area *b)
{
	return a->file && b->file && a->file_len == b->file_len && memcmp(a->file, b->file, a->file_len) == 0;
}

/* Zero-initialized data, which the file does not hold, lie behind the data of the file. */
static void adopt_bss(struct vv_memory_areas *m)
{
	for (size_t i = 1; i < m->n; i++) {
		const struct vv_memory_areas_area *a = &m->area[i - 1];
		struct vv_memory_areas_area *b = &m->area[i];
		bool program = a->segment == VV_SEGMENT_LIBRARY || a->segment == VV_SEGMENT_CODE;

		if (!b->file && b->segment == VV_SEGMENT_NONE && b->writable && a->file && a->writable && program && a->to == b->from) {
			b->segment = a->segment;
			b->file = a->file;
			b->file_len = a->file_len;
		}
	}
}

void vv_memory_areas_finish(struct vv_memory_areas *m, uint64_t exe)
{
	size_t at;

	if (m->n)
		qsort(m->area, m->n, sizeof(*m->area), compare);
	drop_overlaps(m);
	at = exe ? find(m, exe) : m->n;
	if (at < m->n && m->area[at].from <= exe && m->area[at].file) {
		const struct vv_memory_areas_area main = m->area[at];

		for (size_t i = 0; i < m->n; i++)
			if (is_same_file(&m->area[i], &main))
				m->area[i].segment = VV_SEGMENT_CODE;
	}
	adopt_bss(m);
}

void vv_memory_areas_mark(struct vv_memory_areas *m, uint64_t at, enum vv_segment segment)
{
	size_t i = find(m, at);

	if (i < m->n && m->area[i].from <= at && !m->area[i].file && m->area[i].segment == VV_SEGMENT_NONE)
		m->area[i].segment = (uint8_t)segment;
}

void vv_memory_areas_guess_heap(struct vv_memory_areas *m)
{
	uint64_t end = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct vv_memory_areas_area *a = &m->area[i];

		if (a->segment == VV_SEGMENT_CODE) {
			end = a->to;
		} else if (end) {
			if (!a->file && a->writable && a->segment == VV_SEGMENT_NONE && a->from - end < far_away)
				a->segment = VV_SEGMENT_HEAP;
			return;
		}
	}
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void name_area(const struct vv_memory_areas_area *a, char name[NAME])
{
	const char *part = a->executable ? "text" : a->writable ? "data" : "constants";

	if (a->file && a->file_len && (a->segment == VV_SEGMENT_CODE || a->segment == VV_SEGMENT_LIBRARY))
		snprintf(name, NAME, "/%.*s/%s", a->file_len < NAME - PART ? (int)a->file_len : NAME - PART, a->file, part);
	else
		snprintf(name, NAME, "/%s", vv_segment_name(a->segment ? a->segment : VV_SEGMENT_ANON));
}

static int find_variable(struct vv_memory_areas *m, const struct vv_memory_areas_area *a, uint32_t *out)
{
	struct vv_variable *v;
	char name[NAME];
	size_t at;

	name_area(a, name);
	at = vv_map_get(&m->by_name, name);
	if (at == VV_MAP_NONE) {
		v = vv_reader_add_variable(m->out, name, strlen(name));
		if (!v)
			return VV_ENOMEM;
		v->segment = a->segment ? a->segment : VV_SEGMENT_ANON;
		v->ndim = 1;
		at = m->out->n_variables - 1;
		if (vv_map_put(&m->by_name, v->name, at))
			return VV_ENOMEM;
	}
	*out = (uint32_t)at;
	return 0;
}

static int add_piece(struct vv_memory_areas *m, const struct vv_memory_areas_area *a, uint64_t at, uint64_t len)
{
	struct vv_outline_piece *last = m->out->n_pieces ? &m->out->piece[m->out->n_pieces - 1] : NULL;
	uint32_t variable;
	int rc = find_variable(m, a, &variable);

	if (rc)
		return rc;
	m->out->variable[variable].dim[0] += len;
	if (last && last->variable == variable && last->at + last->len == at) {
		last->len += len;
		return 0;
	}
	return vv_reader_add_piece(m->out, &(struct vv_outline_piece){ .at = at, .len = len, .variable = variable });
}

int vv_memory_areas_piece(struct vv_memory_areas *m, uint64_t address, uint64_t len, uint64_t at)
{
	static const struct vv_memory_areas_area unknown = { .segment = VV_SEGMENT_ANON };
	int rc = 0;

	for (size_t i = find(m, address); rc == 0 && len;) {
		const struct vv_memory_areas_area *a = i < m->n ? &m->area[i] : NULL;
		bool inside = a && a->from <= address;
		uint64_t left = inside ? a->to - address : a ? a->from - address : len, n = len < left ? len : left;

		rc = add_piece(m, inside ? a : &unknown, at, n);
		address += n;
		at += n;
		len -= n;
		i += inside;
	}
	return rc;
}
