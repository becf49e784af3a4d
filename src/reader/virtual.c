/* A selection becomes ascending stretches of the array; those of both sides are walked in
 * parallel. */
#include "reader/virtual.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STRETCHES = 1 << 24 };

struct virtual_stretch {
	uint64_t at, len; /* elements */
};

struct virtual_stretches {
	struct virtual_stretch *v;
	size_t n, cap;
};

static int by_place(const void *a, const void *b)
{
	const struct virtual_stretch *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static int add(struct virtual_stretches *s, uint64_t at, uint64_t len)
{
	if (s->n && s->v[s->n - 1].at + s->v[s->n - 1].len == at) {
		s->v[s->n - 1].len += len;
		return 0;
	}
	if (s->n == STRETCHES)
		return vv_err_set(VV_ENOTSUP, "a selection of more than %u pieces", STRETCHES);
	if (vv_mem_room(&s->v, s->n, &s->cap, sizeof(*s->v)))
		return VV_ENOMEM;
	s->v[s->n++] = (struct virtual_stretch){at, len};
	return 0;
}

/* Does the slab lie in the array? An unlimited one does not. */
static bool is_inside(const struct vv_hyperslab *k, unsigned ndim, const uint64_t *dim)
{
	for (unsigned i = 0; i < ndim; i++) {
		uint64_t span;

		if (k->count[i] == 0 || k->block[i] == 0 || k->block[i] > dim[i] || k->count[i] > dim[i] ||
		    (k->count[i] > 1 && k->stride[i] < k->block[i]) ||
		    __builtin_mul_overflow(k->count[i] - 1, k->stride[i], &span) ||
		    __builtin_add_overflow(span, k->block[i], &span) || span > dim[i] || k->start[i] > dim[i] - span)
			return false;
	}
	return true;
}

/* Adds the slab row by row, if the last dimension runs along a row. */
static int add_slab(struct virtual_stretches *s, const struct vv_hyperslab *k, unsigned ndim, const uint64_t *dim)
{
	uint64_t at[VV_MAX_DIMS] = {0};
	unsigned last = ndim - 1;

	for (;;) {
		uint64_t row = 0;
		unsigned i;

		for (i = 0; i < last; i++)
			row = (row + k->start[i] + at[i] / k->block[i] * k->stride[i] + at[i] % k->block[i]) *
			      dim[i + 1];
		for (uint64_t b = 0; b < k->count[last]; b++) {
			int rc = add(s, row + k->start[last] + b * k->stride[last], k->block[last]);

			if (rc)
				return rc;
		}
		for (i = last; i > 0 && ++at[i - 1] == k->count[i - 1] * k->block[i - 1]; i--)
			at[i - 1] = 0;
		if (i == 0)
			return 0;
	}
}

/* Returns the number of elements of the array, and the bytes of one; a selection may have fewer
 * dimensions than the variable. */
static uint64_t measure(const struct vv_variable *v, unsigned ndim, uint64_t *bytes)
{
	uint64_t n = 1;

	*bytes = v->width;
	for (unsigned i = 0; i < v->ndim; i++)
		*(i < ndim ? &n : bytes) *= v->dim[i]; /* the array is in memory: no overflow */
	return n;
}

static int stretch(const struct vv_selection *k, const struct vv_variable *v, uint64_t elements, struct virtual_stretches *s)
{
	int rc = 0;

	if (k->all)
		return elements ? add(s, 0, elements) : 0;
	for (size_t i = 0; rc == 0 && i < k->n; i++)
		rc = is_inside(&k->slab[i], k->ndim, v->dim)
			     ? add_slab(s, &k->slab[i], k->ndim, v->dim)
			     : vv_err_set(VV_ENOTSUP, "a selection of variable '%s' has no end, or reaches beyond it",
					  v->name);
	if (rc == 0 && k->n > 1)
		qsort(s->v, s->n, sizeof(*s->v), by_place);
	return rc;
}

static int copy(const struct virtual_stretches *a, const struct virtual_stretches *b, uint64_t bytes, const uint8_t *from, uint8_t *to,
		const char *name)
{
	uint64_t x = 0, y = 0; /* finished elements of the stretch */
	size_t i = 0, k = 0;

	while (i < a->n && k < b->n) {
		uint64_t left = a->v[i].len - x, n = b->v[k].len - y < left ? b->v[k].len - y : left;

		memcpy(to + (b->v[k].at + y) * bytes, from + (a->v[i].at + x) * bytes, (size_t)(n * bytes));
		x += n;
		y += n;
		if (x == a->v[i].len) {
			i++;
			x = 0;
		}
		if (y == b->v[k].len) {
			k++;
			y = 0;
		}
	}
	return i == a->n && k == b->n
		       ? 0
		       : vv_err_set(VV_EDAMAGED,
				    "variable '%s': a map takes more elements than it has places for, or fewer", name);
}

int vv_virtual_copy(const struct vv_reader_map *m, const struct vv_variable *source, const uint8_t *from,
		    const struct vv_variable *v, uint8_t *to)
{
	/* dimensions of an element */
	unsigned inner = v->ndim - (m->to.all ? v->ndim : m->to.ndim);
	struct virtual_stretches a = {0}, b = {0};
	uint64_t n, bytes, source_n, source_bytes;
	int rc;

	if ((!m->to.all && m->to.ndim > v->ndim) || (!m->from.all && m->from.ndim > source->ndim))
		return vv_err_set(VV_EDAMAGED, "variable '%s': a map has more dimensions than there are", v->name);
	if (m->to.all && !m->from.all)
		inner = source->ndim - m->from.ndim;
	if (inner > v->ndim || inner > source->ndim || (!m->from.all && source->ndim != m->from.ndim + inner))
		return vv_err_set(VV_ENOTSUP, "variable '%s': elements of its source '%s' have other dimensions",
				  v->name, source->name);
	n = measure(v, v->ndim - inner, &bytes);
	source_n = measure(source, source->ndim - inner, &source_bytes);
	if (bytes != source_bytes || v->type != source->type || v->swapped != source->swapped ||
	    memcmp(&v->odd, &source->odd, sizeof(v->odd)))
		return vv_err_set(VV_ENOTSUP, "variable '%s': its source '%s' is of another type", v->name,
				  source->name);
	rc = stretch(&m->from, source, source_n, &a);
	if (rc == 0)
		rc = stretch(&m->to, v, n, &b);
	if (rc == 0)
		rc = copy(&a, &b, bytes, from, to, v->name);
	vv_mem_free(a.v);
	vv_mem_free(b.v);
	return rc;
}
