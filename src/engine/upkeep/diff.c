/* Window by window: both sides are read only where their runs refer to different positions. */
#include "engine/upkeep/diff.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/read/restore.h"
#include <math.h>
#include <string.h>

enum { WINDOW = 16 << 20, NEAR = 64 };

struct differ {
	const struct vv_diff_side *a, *b;
	struct vv_pool *pool;
	const struct vv_progress *progress;
	uint64_t done, total;
	uint8_t *x, *y; /* a window of each side */
	struct vv_diff_region out;
};

/* A number with a sign, an exponent and a mantissa. With `finite` it has no infinities, and one
 * NaN. */
static double small_number(unsigned v, unsigned exponent, unsigned mantissa, bool finite)
{
	unsigned top = (1u << exponent) - 1, e = v >> mantissa & top, m = v & ((1u << mantissa) - 1);
	int scale = (int)(e ? e : 1) - (int)(top / 2) - (int)mantissa;
	double x = ldexp(e ? m + (1u << mantissa) : m, scale);

	if (e == top && (!finite || m == (1u << mantissa) - 1))
		x = finite || m ? NAN : INFINITY;
	return v >> (exponent + mantissa) ? -x : x;
}

/* An element as a number. Complex elements are compared as pairs, so they never come here. */
static double number(unsigned type, const uint8_t *p)
{
	union {
		int8_t i8;
		uint8_t u8;
		int16_t i16;
		uint16_t u16;
		int32_t i32;
		uint32_t u32;
		int64_t i64;
		uint64_t u64;
		float f32;
		double f64;
	} v;

	memcpy(&v, p, vv_head_type_size(type));
	switch (type) {
	case VV_TYPE_I8:
		return v.i8;
	case VV_TYPE_U8:
		return v.u8;
	case VV_TYPE_I16:
		return v.i16;
	case VV_TYPE_U16:
		return v.u16;
	case VV_TYPE_I32:
		return v.i32;
	case VV_TYPE_U32:
		return v.u32;
	case VV_TYPE_I64:
		return (double)v.i64;
	case VV_TYPE_U64:
		return (double)v.u64;
	case VV_TYPE_F32:
		return v.f32;
	case VV_TYPE_BF16:
		return small_number(v.u16, 8, 7, false);
	case VV_TYPE_F16:
		return small_number(v.u16, 5, 10, false);
	case VV_TYPE_F8_E4M3:
		return small_number(v.u8, 4, 3, true);
	case VV_TYPE_F8_E5M2:
		return small_number(v.u8, 5, 2, false);
	default:
		return v.f64;
	}
}

/* The type of the compared parts: a complex number has two of them. A field of a record may be
 * bytes. */
static unsigned part_type(unsigned type)
{
	return type == VV_TYPE_BYTES ? VV_TYPE_U8 : type == VV_TYPE_C64 ? VV_TYPE_F32 : type == VV_TYPE_C128 ? VV_TYPE_F64 : type;
}

static void compare_part(struct vv_diff_region *o, double x, double y, uint64_t element, const char *field)
{
	double gap = fabs(x - y), scale = fmax(fabs(x), fabs(y));
	double rel = isinf(scale) ? 1 : scale > 0 ? gap / scale : 0;

	/* the difference of two large numbers overflows, their ratio does not */
	if (isinf(gap) && !isinf(scale))
		rel = fabs(x / scale - y / scale);
	if (isnan(x) || isnan(y)) {
		o->nan += !(isnan(x) && isnan(y));
		return;
	}
	if (x == y)
		return;
	if (gap > o->max_abs) {
		o->max_abs = gap;
		o->max_abs_at = element;
		o->max_abs_field = field;
	}
	if (rel > o->max_rel) {
		o->max_rel = rel;
		o->max_rel_at = element;
		o->max_rel_field = field;
	}
}

/* Compares n bytes of one type, which belong to one element. */
static void compare_parts(struct vv_diff_region *o, unsigned type, const uint8_t *x, const uint8_t *y, size_t n, uint64_t element, const char *field)
{
	unsigned part = part_type(type);
	size_t step = vv_head_type_size(part);

	for (size_t k = 0; k < n; k += step)
		compare_part(o, number(part, x + k), number(part, y + k), element, field);
}

static void compare_elements(struct differ *d, uint64_t at, size_t n)
{
	struct vv_diff_region *o = &d->out;
	const struct vv_record *r = o->a->record;
	size_t size = vv_head_element_size(o->a);

	for (size_t i = 0; i + size <= n; i += size) {
		const uint8_t *x = d->x + i, *y = d->y + i;

		if (memcmp(x, y, size) == 0)
			continue;
		o->elements++;
		for (uint32_t k = 0; r && k < r->n; k++)
			compare_parts(o, r->field[k].type, x + r->field[k].offset, y + r->field[k].offset, r->field[k].bytes, (at + i) / size,
				      r->field[k].name);
		if (!r)
			compare_parts(o, o->a->type, x, y, size, (at + i) / size, NULL);
	}
}

static void compare_bytes(struct differ *d, uint64_t at, size_t n)
{
	struct vv_diff_region *o = &d->out;

	for (size_t i = 0; i < n; i++) {
		if (n - i >= 64 && memcmp(d->x + i, d->y + i, 64) == 0) {
			i += 63;
			continue;
		}
		if (d->x[i] == d->y[i])
			continue;
		if (o->bytes == 0)
			o->first = at + i;
		if (o->bytes == 0 || at + i - o->last > NEAR)
			o->ranges++;
		o->last = at + i;
		o->bytes++;
	}
}

/* Do the runs of both sides refer to the same positions for at..at+n? */
static int same_places(const struct vv_runs *a, const struct vv_runs *b, uint64_t at, uint64_t n)
{
	size_t i = vv_run_find(a, at), k = vv_run_find(b, at);
	uint64_t end = at + n;

	while (at < end) {
		const struct vv_run *x = &a->v[i], *y = &b->v[k];
		uint64_t x_end = x->at + x->len, y_end = y->at + y->len;

		if (x->layer != y->layer || (x->layer && x->pos + (at - x->at) != y->pos + (at - y->at)))
			return 0;
		at = x_end < y_end ? x_end : y_end;
		i += x_end == at;
		k += y_end == at;
	}
	return 1;
}

static int read_window(struct differ *d, const struct vv_diff_side *side, const struct vv_runs *runs, uint64_t at,
		       size_t n, uint8_t *to)
{
	struct vv_want want = { runs, at, n, to, NULL };

	return vv_restore_read(side->lineage, d->pool, &want, 1);
}

static int compare_region(struct differ *d, const struct vv_runs *a, const struct vv_runs *b, uint64_t len)
{
	int one_lineage = d->a->lineage->store == d->b->lineage->store &&
			  memcmp(d->a->lineage->id, d->b->lineage->id, 16) == 0;
	size_t window = WINDOW - WINDOW % (d->out.typed ? vv_head_element_size(d->out.a) : 1); /* whole elements */
	int rc = 0;

	for (uint64_t at = 0; rc == 0 && at < len; at += window) {
		size_t n = len - at < window ? (size_t)(len - at) : window;

		if (!one_lineage || !same_places(a, b, at, n)) {
			rc = read_window(d, d->a, a, at, n, d->x);
			if (rc == 0)
				rc = read_window(d, d->b, b, at, n, d->y);
			if (rc == 0 && memcmp(d->x, d->y, n) != 0) {
				compare_bytes(d, at, n);
				if (d->out.typed)
					compare_elements(d, at, n);
			}
		}
		d->done += n;
		vv_progress_report(d->progress, d->done, d->total);
	}
	return rc;
}

static int diff_one(struct differ *d, const struct vv_run_table_region *a, const struct vv_run_table_region *b, bool *differ)
{
	int rc = 0;

	d->out = (struct vv_diff_region){ .name = a ? a->name : b->name, .a = a ? &a->shape : NULL,
					  .b = b ? &b->shape : NULL };
	if (!a || !b) {
		*differ = true;
		return 0;
	}
	d->out.typed = a->shape.type == b->shape.type && a->shape.record == b->shape.record && a->shape.type != VV_TYPE_BYTES;
	rc = compare_region(d, &a->runs, &b->runs, a->shape.len < b->shape.len ? a->shape.len : b->shape.len);
	if (d->out.bytes || !vv_head_same_shape(&a->shape, &b->shape))
		*differ = true;
	return rc;
}

static int diff_all(struct differ *d, vv_diff_report_fn tell, void *arg, bool *differ)
{
	const struct vv_run_table *a = d->a->table, *b = d->b->table;
	int rc = 0;

	for (size_t i = 0; i < a->n; i++)
		d->total += a->region[i].shape.len;
	for (size_t i = 0; rc == 0 && i < a->n; i++) {
		size_t k = vv_run_table_find(b, a->region[i].name);

		rc = diff_one(d, &a->region[i], k < b->n ? &b->region[k] : NULL, differ);
		if (rc == 0)
			tell(arg, &d->out);
	}
	for (size_t k = 0; rc == 0 && k < b->n; k++) {
		if (vv_run_table_find(a, b->region[k].name) < a->n)
			continue;
		rc = diff_one(d, NULL, &b->region[k], differ);
		if (rc == 0)
			tell(arg, &d->out);
	}
	return rc;
}

int vv_diff_run(const struct vv_diff_side *a, const struct vv_diff_side *b, struct vv_pool *pool, vv_diff_report_fn tell,
		void *arg, const struct vv_progress *progress, bool *differ)
{
	struct differ d = { .a = a, .b = b, .pool = pool, .progress = progress };
	bool found = false;
	int rc = VV_ENOMEM;

	d.x = vv_mem_new(WINDOW, 1);
	d.y = vv_mem_new(WINDOW, 1);
	if (d.x && d.y)
		rc = diff_all(&d, tell, arg, &found);
	vv_mem_free(d.x);
	vv_mem_free(d.y);
	if (rc == 0)
		*differ = found;
	return rc;
}
