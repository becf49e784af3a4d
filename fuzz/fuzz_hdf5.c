/* The input as an HDF5 file, and the chunks that it is said to have as input of the filters. Whatever it says, nothing is read outside
 * of it, and an outline is in order. */
#include "base/mem.h"
#include "reader/filter.h"
#include "reader/resolve.h"
#include "reader/virtual.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHUNK_MAX = 1 << 16, TRIES = 16 };

struct input {
	const uint8_t *p;
	size_t n;
};

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static int read_input(void *arg, uint64_t at, void *to, size_t n)
{
	const struct input *in = arg;

	insist(at <= in->n && n <= in->n - at);
	memcpy(to, in->p + at, n);
	return 0;
}

static void undo(const struct vv_variable *v, const struct vv_outline_piece *p, const uint8_t *data)
{
	uint64_t len = v->width;
	uint8_t *to;

	for (unsigned i = 0; i < v->ndim; i++)
		if (v->chunk[i] == 0 || __builtin_mul_overflow(len, v->chunk[i], &len) || len > CHUNK_MAX)
			return;
	to = malloc(len);
	insist(to != NULL);
	(void)vv_filter_undo(v, p->mask, data + p->at, p->len, to, len);
	free(to);
}

static uint64_t array_bytes(const struct vv_variable *v)
{
	uint64_t len = v->width;

	for (unsigned i = 0; i < v->ndim; i++)
		if (__builtin_mul_overflow(len, v->dim[i], &len) || len > CHUNK_MAX)
			return 0;
	return len;
}

/* The first variable stands for the source: what a map says fits it, or is refused. */
static void follow(const struct vv_outline *o, const struct vv_reader_map *m)
{
	const struct vv_variable *v = &o->variable[m->variable];
	uint64_t from = array_bytes(&o->variable[0]), to = array_bytes(v);
	uint8_t *a, *b;

	if (!from || !to)
		return;
	a = calloc(from, 1);
	b = malloc(to);
	insist(a && b);
	(void)vv_virtual_copy(m, &o->variable[0], a, v, b);
	free(a);
	free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct vv_reader_file f = { .name = "input", .len = size, .read = read_input, .arg = &in };
	struct vv_outline o = { 0 };
	uint64_t end = 0;
	int left = TRIES;

	insist(vv_reader_outline(&f, &o) == 0);
	for (size_t i = 0; i < o.n_variables; i++)
		insist(o.variable[i].width >= 1 && o.variable[i].ndim <= VV_MAX_DIMS && o.variable[i].type < VV_TYPES &&
		       o.variable[i].n_filters <= VV_READER_FILTERS && o.variable[i].n_fill <= sizeof(o.variable[i].fill));
	for (size_t i = 0; i < o.n_pieces; i++) {
		const struct vv_outline_piece *p = &o.piece[i];

		insist(p->len && p->at >= end && p->at <= size && p->len <= size - p->at && p->variable < o.n_variables);
		end = p->at + p->len;
		if (p->coded && left-- > 0)
			undo(&o.variable[p->variable], p, data);
	}
	for (size_t i = 0; i < o.n_links && i < TRIES; i++) {
		char path[VV_RESOLVE_PATH];

		(void)vv_resolve_path(&o, o.link[i].name, path);
		insist(strlen(path) < sizeof(path));
	}
	for (size_t i = 0; i < o.n_maps && i < TRIES; i++) {
		insist(o.map[i].variable < o.n_variables);
		follow(&o, &o.map[i]);
	}
	vv_reader_outline_fini(&o);
	return 0;
}
