#include "core/format/copies_section.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"
#include <stdlib.h>

void vv_copies_section_fini(struct vv_copies_section *c)
{
	vv_mem_free(c->v);
	*c = (struct vv_copies_section){ 0 };
}

int vv_copies_section_add(struct vv_copies_section *c, const struct vv_copy *copy)
{
	if (vv_mem_room(&c->v, c->n, &c->cap, sizeof(*c->v)) < 0)
		return VV_ENOMEM;
	c->v[c->n++] = *copy;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct vv_copy *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->pos > y->pos) - (x->pos < y->pos);
}

static bool follows(const struct vv_copy *a, const struct vv_copy *b)
{
	return a->rank == b->rank && a->pos + a->len == b->pos && a->at + a->len == b->at;
}

void vv_copies_section_sort(struct vv_copies_section *c)
{
	size_t n = 0;

	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), by_place);
	for (size_t i = 0; i < c->n; i++) {
		if (n && follows(&c->v[n - 1], &c->v[i]))
			c->v[n - 1].len += c->v[i].len;
		else
			c->v[n++] = c->v[i];
	}
	c->n = n;
}

/* The origin of the relative numbers of the next entry. */
static struct vv_copy origin(const struct vv_copy *last, uint32_t rank)
{
	struct vv_copy o = { .rank = rank };

	if (last && last->rank == rank) {
		o.pos = last->pos + last->len;
		o.at = last->at + last->len;
	}
	return o;
}

void vv_copies_section_put(const struct vv_copies_section *c, struct vv_buf *out)
{
	vv_wire_put_var(out, c->n);
	for (size_t i = 0; i < c->n; i++) {
		const struct vv_copy *x = &c->v[i], *last = i ? x - 1 : NULL;
		struct vv_copy from = origin(last, x->rank);

		vv_wire_put_var(out, x->rank - (last ? last->rank : 0));
		vv_wire_put_var(out, x->pos - from.pos);
		vv_wire_put_var(out, x->len);
		vv_wire_put_signed(out, (int64_t)(x->at - from.at));
	}
}

int vv_copies_section_get(struct vv_copies_section *c, const void *p, size_t n, uint32_t self, uint32_t ranks, uint64_t payload)
{
	struct vv_wire w = vv_wire_over(p, n);
	uint64_t count = vv_wire_var(&w);

	if (w.bad || count > vv_wire_left(&w) / 4)
		return vv_err_set(VV_EDAMAGED, "section COPIES: impossible number of entries");
	for (uint64_t i = 0; i < count; i++) {
		const struct vv_copy *last = i ? &c->v[i - 1] : NULL;
		uint64_t rank = vv_wire_var_max(&w, VV_MAX_RANKS) + (last ? last->rank : 0);
		struct vv_copy x = origin(last, (uint32_t)rank);

		x.pos += vv_wire_var_max(&w, VV_MAX_PAYLOAD);
		x.len = vv_wire_var_max(&w, VV_MAX_PAYLOAD);
		x.at += (uint64_t)vv_wire_signed(&w);
		if (w.bad || rank >= ranks || rank == self || x.len == 0 || x.pos + x.len > payload || x.at > VV_MAX_PAYLOAD ||
		    x.at + x.len > VV_MAX_PAYLOAD)
			return vv_err_set(VV_EDAMAGED, "section COPIES: malformed entry");
		if (last && follows(last, &x))
			return vv_err_set(VV_EDAMAGED, "section COPIES: two entries that should be one");
		if (vv_copies_section_add(c, &x) < 0)
			return VV_ENOMEM;
	}
	return vv_wire_left(&w) ? vv_err_set(VV_EDAMAGED, "section COPIES: bytes left over") : 0;
}
