/* The list of readers, and their common part. The first reader that knows a file makes its outline;
 * then invalid parts are dropped. */
#include "reader/reader.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"
#include <stdlib.h>
#include <string.h>

enum { /* limits of one file; a few tens of MB */
	MAX_VARIABLES = 1 << 17,
	MAX_PIECES = 1 << 20,
	MAX_NAME = 4096,
	MAX_LINKS = 1 << 16,
	MAX_MAPS = 1 << 14,
};

extern const struct vv_reader vv_reader_hdf5, vv_reader_netcdf, vv_reader_npy, vv_reader_npz, vv_reader_torch, vv_reader_safetensors, vv_reader_elf, vv_reader_criu, vv_reader_fortran;

/* Fortran's records have no magic number, so that reader comes last. */
const struct vv_reader *const *vv_reader_all(void)
{
	static const struct vv_reader *const list[] = {
		&vv_reader_hdf5,
		&vv_reader_netcdf,
		&vv_reader_npy,
		&vv_reader_torch,
		&vv_reader_npz,
		&vv_reader_safetensors,
		&vv_reader_elf,
		&vv_reader_criu,
		&vv_reader_fortran,
		NULL,
	};

	return list;
}

/* Names are displayed and are part of keys, so they become text in one line, for any content of the
 * file. */
static char *copy_name(const char *name, size_t len)
{
	size_t n = strnlen(name, len < MAX_NAME ? len : MAX_NAME);
	char *copy = vv_mem_new(n + 1, 1);

	if (!copy)
		return NULL;
	memcpy(copy, name, n);
	for (size_t i = 0, step; i < n; i += step) {
		step = vv_utf8_len(copy + i);
		if (step == 0 || (unsigned char)copy[i] < ' ' || copy[i] == 127) {
			copy[i] = '?';
			step = 1;
		}
	}
	return copy;
}

struct vv_variable *vv_reader_add_variable(struct vv_outline *o, const char *name, size_t len)
{
	struct vv_variable *v;
	char *copy;

	o->full = o->full || o->n_variables == MAX_VARIABLES;
	if (o->full || vv_mem_room(&o->variable, o->n_variables, &o->variables_cap, sizeof(*o->variable)))
		return NULL;
	copy = copy_name(name, len);
	if (!copy)
		return NULL;
	v = &o->variable[o->n_variables++];
	*v = (struct vv_variable){ .name = copy, .width = 1 };
	return v;
}

int vv_reader_add_piece(struct vv_outline *o, const struct vv_outline_piece *p)
{
	o->full = o->full || o->n_pieces == MAX_PIECES;
	if (o->full || vv_mem_room(&o->piece, o->n_pieces, &o->pieces_cap, sizeof(*o->piece)))
		return VV_ENOMEM;
	o->piece[o->n_pieces++] = *p;
	return 0;
}

int vv_reader_add_link(struct vv_outline *o, const char *name, size_t name_len, const char *target, size_t target_len, bool outside)
{
	struct vv_reader_link k = { .outside = outside };

	if (o->n_links == MAX_LINKS)
		return 0;
	if (vv_mem_room(&o->link, o->n_links, &o->links_cap, sizeof(*o->link)))
		return VV_ENOMEM;
	k.name = copy_name(name, name_len);
	k.target = copy_name(target, target_len);
	if (!k.name || !k.target) {
		vv_mem_free(k.name);
		vv_mem_free(k.target);
		return VV_ENOMEM;
	}
	o->link[o->n_links++] = k;
	return 0;
}

int vv_reader_add_map(struct vv_outline *o, uint32_t variable, const char *source, size_t len, struct vv_selection *from, struct vv_selection *to)
{
	struct vv_reader_map m = { .variable = variable, .source = copy_name(source, len), .from = *from, .to = *to };

	o->full = o->full || o->n_maps == MAX_MAPS;
	if (m.source && !o->full && vv_mem_room(&o->map, o->n_maps, &o->maps_cap, sizeof(*o->map)) == 0) {
		o->map[o->n_maps++] = m;
		return 0;
	}
	vv_mem_free(m.source);
	vv_mem_free(from->slab);
	vv_mem_free(to->slab);
	return VV_ENOMEM;
}

void vv_reader_outline_fini(struct vv_outline *o)
{
	for (size_t i = 0; i < o->n_links; i++) {
		vv_mem_free(o->link[i].name);
		vv_mem_free(o->link[i].target);
	}
	vv_mem_free(o->link);
	for (size_t i = 0; i < o->n_maps; i++) {
		vv_mem_free(o->map[i].source);
		vv_mem_free(o->map[i].from.slab);
		vv_mem_free(o->map[i].to.slab);
	}
	vv_mem_free(o->map);
	for (size_t i = 0; i < o->n_variables; i++)
		vv_mem_free(o->variable[i].name);
	vv_mem_free(o->variable);
	vv_mem_free(o->piece);
	*o = (struct vv_outline){ 0 };
}

static int compare_pieces(const void *one, const void *other)
{
	const struct vv_outline_piece *a = one, *b = other;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	if (a->variable != b->variable)
		return a->variable < b->variable ? -1 : 1;
	return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

static void sort_pieces(struct vv_outline *o)
{
	for (size_t i = 1; i < o->n_pieces; i++)
		if (compare_pieces(&o->piece[i - 1], &o->piece[i]) > 0) {
			qsort(o->piece, o->n_pieces, sizeof(*o->piece), compare_pieces);
			return;
		}
}

/* Of two overlapping pieces the first one stays. */
static void drop_unsound(struct vv_outline *o, uint64_t file_len)
{
	uint64_t free_from = 0;
	size_t kept = 0;

	for (size_t i = 0; i < o->n_pieces; i++) {
		const struct vv_outline_piece *p = &o->piece[i];

		if (p->len == 0 || p->variable >= o->n_variables)
			continue;
		if (p->at < free_from || p->at > file_len || p->len > file_len - p->at) {
			o->variable[p->variable].partial = true;
			continue;
		}
		free_from = p->at + p->len;
		o->piece[kept++] = *p;
	}
	o->n_pieces = kept;
}

static void tidy_variable(struct vv_variable *v)
{
	if (v->type >= VV_TYPES)
		v->type = VV_TYPE_BYTES;
	if (v->type != VV_TYPE_BYTES)
		v->width = (uint32_t)vv_head_type_size(v->type);
	if (v->width == 0)
		v->width = 1;
	if (v->segment >= VV_SEGMENTS)
		v->segment = VV_SEGMENT_NONE;
	if (v->ndim > VV_MAX_DIMS) {
		v->ndim = 0;
		v->chunked = false;
	}
}

static void tidy(struct vv_outline *o, uint64_t file_len)
{
	for (size_t i = 0; i < o->n_variables; i++)
		tidy_variable(&o->variable[i]);
	sort_pieces(o);
	drop_unsound(o, file_len);
}

int vv_reader_outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	struct vv_outline o = { .format = "opaque" };
	uint8_t head[VV_READER_HEAD];
	size_t n = f->len < VV_READER_HEAD ? (size_t)f->len : VV_READER_HEAD;
	const struct vv_reader *const *r = vv_reader_all();
	int rc = n ? f->read(f->arg, 0, head, n) : 0;

	if (rc)
		return rc;
	while (*r && !(*r)->is(f, head, n))
		r++;
	if (*r) {
		o.format = (*r)->name;
		rc = (*r)->outline(f, &o);
	}
	if (rc && !(rc == VV_ENOMEM && o.full)) {
		vv_reader_outline_fini(&o);
		return rc;
	}
	tidy(&o, f->len);
	*out = o;
	return 0;
}

/* Drops dimensions of one element. But consecutive slices of an array are as far apart as their
 * size. Returns the bytes of the whole array, or 0 on overflow. */
static uint64_t collapse(const struct vv_variable *v, uint64_t dim[VV_MAX_DIMS], unsigned *ndim)
{
	const uint64_t *from = v->chunked ? v->chunk : v->dim;
	uint64_t bytes = v->width;

	*ndim = 0;
	for (unsigned i = 0; i < v->ndim && i < VV_MAX_DIMS; i++) {
		if (__builtin_mul_overflow(bytes, from[i], &bytes))
			return 0;
		if (from[i] != 1 || (i == 0 && v->chunked && v->dim[0] > 1))
			dim[(*ndim)++] = from[i];
	}
	return bytes;
}

struct vv_form vv_reader_form(const struct vv_variable *v, const struct vv_outline_piece *p)
{
	uint64_t dim[VV_MAX_DIMS];
	struct vv_form form;
	unsigned ndim;

	if (p->coded || p->len == 0 || p->len % v->width || p->len > collapse(v, dim, &ndim))
		return (struct vv_form){ .type = VV_TYPE_BYTES };
	if (v->type == VV_TYPE_BYTES)
		return (struct vv_form){ .type = VV_TYPE_BYTES, .record = v->width >= 2 && v->width <= VV_RECIPE_PLANES ? v->width : 0 };
	form = vv_recipe_form(v->type, v->swapped, ndim, dim);
	if (v->row) {
		form.plane = form.row;
		form.row = v->row;
	}
	return form;
}
