#include "core/format/era_table.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"

void vv_era_table_fini(struct vv_era_table *e)
{
	vv_mem_free(e->v);
	*e = (struct vv_era_table){ 0 };
}

/* The number of eras that begin at or before the epoch. */
static size_t begun(const struct vv_era_table *e, uint64_t epoch)
{
	size_t i;

	VV_SEARCH(i, 0, e->n, e->v[i].first <= epoch);
	return i;
}

const struct vv_era *vv_era_table_find(const struct vv_era_table *e, uint64_t epoch)
{
	size_t i = begun(e, epoch);

	return i && e->v[i - 1].last >= epoch ? &e->v[i - 1] : NULL;
}

static bool is_same(const struct vv_era *a, const struct vv_era *b)
{
	return a->first == b->first && a->token == b->token;
}

bool vv_era_table_fits(const struct vv_era_table *e, const struct vv_era *era, uint64_t *other)
{
	size_t i = begun(e, era->first);

	if (i && !is_same(&e->v[i - 1], era) && e->v[i - 1].last >= era->first)
		*other = era->first;
	else if (i < e->n && e->v[i].first <= era->last)
		*other = e->v[i].first;
	else
		return true;
	return false;
}

int vv_era_table_add(struct vv_era_table *e, const struct vv_era *era, uint64_t *other)
{
	size_t i = begun(e, era->first);

	if (!vv_era_table_fits(e, era, other))
		return VV_EMISMATCH;
	if (i && is_same(&e->v[i - 1], era)) {
		e->v[i - 1].last = e->v[i - 1].last > era->last ? e->v[i - 1].last : era->last;
		return 0;
	}
	if (vv_mem_room(&e->v, e->n, &e->cap, sizeof(*e->v)) < 0)
		return VV_ENOMEM;
	for (size_t k = e->n++; k > i; k--)
		e->v[k] = e->v[k - 1];
	e->v[i] = *era;
	return 0;
}

void vv_era_table_put(const struct vv_era_table *e, struct vv_buf *out)
{
	uint64_t at = 0;

	vv_wire_put_var(out, e->n);
	for (size_t i = 0; i < e->n; i++) {
		vv_wire_put_var(out, e->v[i].first - at);
		vv_wire_put_var(out, e->v[i].last - e->v[i].first);
		vv_wire_put_u64(out, e->v[i].token);
		at = e->v[i].last + 1;
	}
}

int vv_era_table_get(struct vv_era_table *e, const void *p, size_t n, uint64_t epoch)
{
	enum { LEAST = 1 + 1 + 8 }; /* bytes of an entry */
	struct vv_wire w = vv_wire_over(p, n);
	uint64_t count = vv_wire_var(&w), at = 0;

	if (w.bad || count == 0 || count > vv_wire_left(&w) / LEAST)
		return vv_err_set(VV_EDAMAGED, "section ERAS: impossible number of entries");
	e->v = vv_mem_new((size_t)count, sizeof(*e->v));
	if (!e->v)
		return VV_ENOMEM;
	e->cap = (size_t)count;
	for (uint64_t i = 0; i < count; i++) {
		struct vv_era *x = &e->v[e->n++];

		x->first = at + vv_wire_var_max(&w, epoch);
		x->last = x->first + vv_wire_var_max(&w, epoch);
		x->token = vv_wire_u64(&w);
		at = x->last + 1;
		if (w.bad || x->first == 0 || x->last > epoch)
			return vv_err_set(VV_EDAMAGED, "section ERAS: malformed entry");
	}
	if (at != epoch + 1)
		return vv_err_set(VV_EDAMAGED, "section ERAS: the layer's own era is not there");
	return vv_wire_left(&w) ? vv_err_set(VV_EDAMAGED, "section ERAS: bytes left over") : 0;
}
