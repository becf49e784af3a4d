/* The input as a file, for whichever reader knows it: what is said of it must be sound, whatever it is. */
#include "reader/reader.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	const uint8_t *p;
	size_t n;
};

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static int read_bytes(void *arg, uint64_t at, void *to, size_t n)
{
	const struct bytes *b = arg;

	insist(at <= b->n && n <= b->n - at);
	memcpy(to, b->p + at, n);
	return 0;
}

static void use(const struct vv_outline *o, uint64_t len)
{
	uint64_t from = 0;

	for (size_t i = 0; i < o->n_variables; i++) {
		const struct vv_variable *v = &o->variable[i];

		insist(strlen(v->name) < 1u << 20 && v->type < VV_TYPES && v->width && v->ndim <= VV_MAX_DIMS);
		insist(v->n_filters <= VV_READER_FILTERS && v->n_fill <= sizeof(v->fill));
	}
	for (size_t i = 0; i < o->n_pieces; i++) {
		const struct vv_outline_piece *p = &o->piece[i];
		struct vv_form form;

		insist(p->variable < o->n_variables && p->len && p->at >= from && p->at <= len && p->len <= len - p->at);
		from = p->at + p->len;
		form = vv_reader_form(&o->variable[p->variable], p);
		insist(form.type < VV_TYPES && form.record <= VV_RECIPE_PLANES);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, size };
	struct vv_reader_file f = { .name = "folder/some_0001.npy", .len = size, .read = read_bytes, .arg = &b };
	struct vv_outline o = { 0 };

	insist(vv_reader_outline(&f, &o) == 0);
	use(&o, size);
	vv_reader_outline_fini(&o);
	return 0;
}
