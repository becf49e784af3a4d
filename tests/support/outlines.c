#include "support/outlines.h"
#include "base/err.h"
#include "base/mem.h"
#include "support/gen.h"
#include "vv_test.h"

static int read_bytes(void *arg, uint64_t at, void *to, size_t n)
{
	struct outlines_bytes *b = arg;

	CHECK(at <= b->n && n <= b->n - at);
	if (++b->reads == b->fail_at)
		return vv_err_set(VV_EIO, "the read was to fail");
	memcpy(to, b->p + at, n);
	return 0;
}

struct vv_reader_file outlines_file(struct outlines_bytes *b, const char *name)
{
	return (struct vv_reader_file){ .name = name, .len = b->n, .read = read_bytes, .arg = b };
}

void outlines_check(const struct vv_outline *o, uint64_t len)
{
	uint64_t from = 0;

	CHECK(o->format != NULL);
	for (size_t i = 0; i < o->n_variables; i++) {
		const struct vv_variable *v = &o->variable[i];

		CHECK(v->name && v->type < VV_TYPES && v->width > 0 && v->ndim <= VV_MAX_DIMS);
		CHECK(v->n_filters <= VV_READER_FILTERS && v->n_fill <= sizeof(v->fill));
	}
	for (size_t i = 0; i < o->n_pieces; i++) {
		const struct vv_outline_piece *p = &o->piece[i];
		struct vv_form form;

		CHECK(p->variable < o->n_variables && p->len > 0);
		CHECK(p->at >= from && p->at <= len && p->len <= len - p->at);
		from = p->at + p->len;
		form = vv_reader_form(&o->variable[p->variable], p);
		CHECK(form.type < VV_TYPES && (form.record == 0 || (form.record > 1 && form.record <= VV_RECIPE_PLANES)));
	}
}

struct vv_outline outlines_get(const void *p, size_t n, const char *name, const char *format)
{
	struct outlines_bytes b = { .p = p, .n = n };
	struct vv_reader_file f = outlines_file(&b, name);
	struct vv_outline o = { 0 };

	CHECK_EQ(vv_reader_outline(&f, &o), 0);
	CHECK_STR(o.format, format);
	outlines_check(&o, n);
	return o;
}

const struct vv_variable *outlines_find(const struct vv_outline *o, const char *name, uint32_t *number)
{
	for (size_t i = 0; i < o->n_variables; i++)
		if (strcmp(o->variable[i].name, name) == 0) {
			if (number)
				*number = (uint32_t)i;
			return &o->variable[i];
		}
	fprintf(stderr, "there is no variable '%s' among %zu\n", name, o->n_variables);
	exit(1);
}

size_t outlines_pieces(const struct vv_outline *o, uint32_t variable, const struct vv_outline_piece **first)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n_pieces; i++)
		if (o->piece[i].variable == variable && n++ == 0)
			*first = &o->piece[i];
	return n;
}

/* 0 or the error; bytes of exactly this size, so that a sanitizer sees what is read beyond. */
static int try(const uint8_t *p, size_t n, const char *name, uint64_t fail_at)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct outlines_bytes b = { .p = copy, .n = n, .fail_at = fail_at };
	struct vv_reader_file f = outlines_file(&b, name);
	struct vv_outline o = { 0 };
	int rc;

	CHECK(copy != NULL);
	memcpy(copy, p, n);
	rc = vv_reader_outline(&f, &o);
	if (rc == 0)
		outlines_check(&o, n);
	else
		CHECK(o.variable == NULL && o.piece == NULL);
	vv_reader_outline_fini(&o);
	free(copy);
	return rc;
}

static void fail_everything(const uint8_t *p, size_t n, const char *name)
{
	for (uint64_t i = 1; i < 40; i++) {
		int rc = try(p, n, name, i);

		CHECK(rc == 0 || rc == VV_EIO);
	}
	for (long i = 1; i < 60; i++) {
		int rc;

		vv_mem_fail_at(i);
		rc = try(p, n, name, 0);
		CHECK(rc == 0 || rc == VV_ENOMEM);
	}
	vv_mem_fail_at(0);
}

void outlines_damage(const void *from, size_t n, size_t head, const char *name)
{
	static const uint8_t odd[] = { 0, 1, 0x7f, 0x80, 0xff };
	uint8_t *p = malloc(n ? n : 1);
	uint64_t state = 7;

	CHECK(p != NULL);
	memcpy(p, from, n);
	for (size_t i = 0; i < n; i += i < 4 * head ? 1 : 1 + n / 500)
		CHECK_EQ(try(p, i, name, 0), 0);
	for (size_t i = 0; i < n && i < head; i++)
		for (size_t k = 0; k < sizeof(odd); k++) {
			uint8_t was = p[i];

			p[i] = odd[k];
			CHECK_EQ(try(p, n, name, 0), 0);
			p[i] = was;
		}
	for (unsigned i = 0; i < 1000; i++) {
		for (unsigned k = 0; k < 1 + i % 8; k++)
			p[gen_below(&state, i % 2 && head < n ? head : n)] = (uint8_t)gen_next(&state);
		CHECK_EQ(try(p, n, name, 0), 0);
		if (i % 4 == 3)
			memcpy(p, from, n);
	}
	fail_everything(from, n, name);
	free(p);
}
