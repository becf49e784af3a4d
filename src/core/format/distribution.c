#include "core/format/distribution.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_ELEMENTS (1ull << 56) /* of a global array, and in each of its dimensions */

struct vv_distribution *vv_distribution_copy(const struct vv_distribution *d)
{
	struct vv_distribution *out = vv_mem_new(1, sizeof(*out));

	if (out)
		*out = *d;
	return out;
}

static int check_slab(const char *name, const struct vv_shape *s, const struct vv_distribution *d)
{
	uint64_t all = 1;

	if (s->type == VV_TYPE_BYTES)
		return vv_err_set(VV_EINVAL, "region '%s': a part of a global array needs a type of its elements", name);
	for (unsigned i = 0; i < s->ndim; i++) {
		uint64_t count = s->dim[i] - 2 * d->ghost[i];

		if (d->ghost[i] > MOST_ELEMENTS || s->dim[i] < 2 * d->ghost[i])
			return vv_err_set(VV_EINVAL, "region '%s', dimension %u: %" PRIu64 " cells of memory cannot have %" PRIu64 " ghost cells at each end", name, i,
					  s->dim[i], d->ghost[i]);
		if (d->global[i] > MOST_ELEMENTS || d->start[i] > d->global[i] || count > d->global[i] - d->start[i])
			return vv_err_set(VV_EINVAL, "region '%s', dimension %u: %" PRIu64 " elements from %" PRIu64 " on are not within the %" PRIu64 " of the global array",
					  name, i, count, d->start[i], d->global[i]);
		if (__builtin_mul_overflow(all, d->global[i] ? d->global[i] : 1, &all) || all > MOST_ELEMENTS)
			return vv_err_set(VV_EINVAL, "region '%s': the global array has more than 2^56 elements", name);
	}
	return 0;
}

int vv_distribution_check(const char *name, const struct vv_shape *s, const struct vv_distribution *d)
{
	switch (d->kind) {
	case VV_DISTRIBUTION_SLAB:
		return check_slab(name, s, d);
	case VV_DISTRIBUTION_SHARED:
		return 0;
	case VV_DISTRIBUTION_LIST:
		if (d->item < 1 || d->item > VV_MAX_REGION_BYTES || s->len % d->item || d->item % vv_head_element_size(s))
			return vv_err_set(VV_EINVAL, "region '%s': a list of %" PRIu64 " bytes has no items of %" PRIu64 " bytes", name, s->len, d->item);
		return 0;
	default:
		return vv_err_set(VV_EINVAL, "region '%s': no distribution has the number %d", name, d->kind);
	}
}

bool vv_distribution_same(const struct vv_shape *s, const struct vv_distribution *a, const struct vv_shape *t, const struct vv_distribution *b)
{
	size_t n = s->ndim * sizeof(a->global[0]);

	if (a->kind != b->kind)
		return false;
	if (a->kind == VV_DISTRIBUTION_LIST)
		return a->item == b->item && s->len == t->len;
	return a->kind == VV_DISTRIBUTION_SHARED ||
	       (s->ndim == t->ndim && memcmp(s->dim, t->dim, n) == 0 && memcmp(a->global, b->global, n) == 0 &&
		memcmp(a->start, b->start, n) == 0 && memcmp(a->ghost, b->ghost, n) == 0);
}

const char *vv_distribution_kind_name(const struct vv_distribution *d)
{
	static const char *const name[] = { "a region of one rank", "a part of a global array", "shared by all ranks", "a part of a list" };

	return name[d && d->kind <= VV_DISTRIBUTION_LIST ? d->kind : 0];
}

size_t vv_distribution_name_length(const char *region)
{
	return strcspn(region, "#");
}

/* ---- boxes ----------------------------------------------------------------------------------- */

void vv_distribution_memory(const struct vv_shape *s, const struct vv_distribution *d, struct vv_box *out)
{
	out->ndim = s->ndim;
	for (unsigned i = 0; i < s->ndim; i++) {
		out->start[i] = (int64_t)d->start[i] - (int64_t)d->ghost[i];
		out->end[i] = out->start[i] + (int64_t)s->dim[i];
	}
}

void vv_distribution_owned(const struct vv_shape *s, const struct vv_distribution *d, struct vv_box *out)
{
	vv_distribution_memory(s, d, out);
	for (unsigned i = 0; i < s->ndim; i++) {
		out->start[i] += (int64_t)d->ghost[i];
		out->end[i] -= (int64_t)d->ghost[i];
	}
}

void vv_distribution_provided(const struct vv_shape *s, const struct vv_distribution *d, struct vv_box *out)
{
	vv_distribution_owned(s, d, out);
	if (vv_distribution_is_empty(out))
		return;
	for (unsigned i = 0; i < s->ndim; i++) {
		bool first = out->start[i] == 0, last = out->end[i] == (int64_t)d->global[i];

		out->start[i] -= first ? (int64_t)d->ghost[i] : 0;
		out->end[i] += last ? (int64_t)d->ghost[i] : 0;
	}
}

bool vv_distribution_is_empty(const struct vv_box *b)
{
	for (unsigned i = 0; i < b->ndim; i++)
		if (b->start[i] >= b->end[i])
			return true;
	return false;
}

bool vv_distribution_intersect(const struct vv_box *a, const struct vv_box *b, struct vv_box *out)
{
	out->ndim = a->ndim;
	for (unsigned i = 0; i < a->ndim; i++) {
		out->start[i] = a->start[i] > b->start[i] ? a->start[i] : b->start[i];
		out->end[i] = a->end[i] < b->end[i] ? a->end[i] : b->end[i];
	}
	return !vv_distribution_is_empty(out);
}

uint64_t vv_distribution_volume(const struct vv_box *b)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < b->ndim; i++)
		n *= (uint64_t)(b->end[i] - b->start[i]);
	return n;
}

const char *vv_distribution_text(unsigned ndim, const int64_t *at, char out[VV_DISTRIBUTION_TEXT])
{
	int n = snprintf(out, VV_DISTRIBUTION_TEXT, "(");

	for (unsigned i = 0; i < ndim; i++)
		n += snprintf(out + n, (size_t)(VV_DISTRIBUTION_TEXT - n), "%s%" PRId64, i ? ", " : "", at[i]);
	snprintf(out + n, (size_t)(VV_DISTRIBUTION_TEXT - n), ")");
	return out;
}

/* ---- the section ----------------------------------------------------------------------------- */

bool vv_distribution_has_any(const struct vv_head *h)
{
	for (size_t i = 0; i < h->n_regions; i++)
		if (h->region[i].part)
			return true;
	return false;
}

void vv_distribution_put(const struct vv_head *h, struct vv_buf *b)
{
	size_t n = 0, next = 0;

	for (size_t i = 0; i < h->n_regions; i++)
		n += h->region[i].part != NULL;
	vv_wire_put_var(b, n);
	for (size_t i = 0; i < h->n_regions; i++) {
		const struct vv_distribution *d = h->region[i].part;

		if (!d)
			continue;
		vv_wire_put_var(b, i - next);
		next = i + 1;
		vv_wire_put_u8(b, d->kind);
		if (d->kind == VV_DISTRIBUTION_LIST)
			vv_wire_put_var(b, d->item);
		for (unsigned k = 0; d->kind == VV_DISTRIBUTION_SLAB && k < h->region[i].shape.ndim; k++) {
			vv_wire_put_var(b, d->global[k]);
			vv_wire_put_var(b, d->start[k]);
			vv_wire_put_var(b, d->ghost[k]);
		}
	}
}

static int damaged(const char *what)
{
	return vv_err_set(VV_EDAMAGED, "section PARTS: %s", what);
}

static int get_entry(struct vv_wire *w, struct vv_head_region *r)
{
	struct vv_distribution d = { .kind = vv_wire_u8(w) };

	if (d.kind == VV_DISTRIBUTION_LIST)
		d.item = vv_wire_var(w);
	for (unsigned k = 0; d.kind == VV_DISTRIBUTION_SLAB && k < r->shape.ndim; k++) {
		d.global[k] = vv_wire_var(w);
		d.start[k] = vv_wire_var(w);
		d.ghost[k] = vv_wire_var(w);
	}
	if (w->bad)
		return damaged("malformed entry");
	if (vv_distribution_check(r->name, &r->shape, &d) < 0)
		return vv_err_set(VV_EDAMAGED, "section PARTS: %s", vv_err_last());
	r->part = vv_mem_new(1, sizeof(*r->part));
	if (!r->part)
		return VV_ENOMEM;
	*r->part = d;
	return 0;
}

int vv_distribution_get(struct vv_head *h, const void *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);
	uint64_t count = vv_wire_var_max(&w, h->n_regions), next = 0;
	int rc = 0;

	if (w.bad || count == 0)
		return damaged("impossible number of entries");
	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		uint64_t at = next + vv_wire_var_max(&w, VV_MAX_REGIONS);

		if (w.bad || at >= h->n_regions)
			return damaged("an entry of a region that is not there");
		next = at + 1;
		rc = get_entry(&w, &h->region[at]);
	}
	return rc ? rc : vv_wire_left(&w) ? damaged("bytes left over") : 0;
}
