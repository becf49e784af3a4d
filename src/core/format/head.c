/* The head's sections, encoded and decoded: docs/format.md, section 4. */
#include "core/format/head.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/digest.h"
#include "core/format/run_wire.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STATS = 1024 };

static const struct {
	const char *name;
	size_t size;
} types[VV_TYPES] = {
	{ "bytes", 1 }, { "i8", 1 },  { "u8", 1 },  { "i16", 2 }, { "u16", 2 }, { "i32", 4 },  { "u32", 4 },
	{ "i64", 8 },   { "u64", 8 }, { "f32", 4 }, { "f64", 8 }, { "c64", 8 }, { "c128", 16 },
	{ "bf16", 2 },  { "f16", 2 }, { "f8_e4m3", 1 }, { "f8_e5m2", 1 },
};

const char *vv_head_type_name(unsigned type)
{
	return type < VV_TYPES ? types[type].name : type == VV_TYPE_RECORD ? "record" : "?";
}

size_t vv_head_type_size(unsigned type)
{
	return type < VV_TYPES ? types[type].size : 0;
}

size_t vv_head_element_size(const struct vv_shape *s)
{
	return s->record ? s->record->bytes : vv_head_type_size(s->type);
}

void vv_head_fini(struct vv_head *h)
{
	for (size_t i = 0; i < h->n_regions; i++) {
		vv_mem_free(h->region[i].name);
		vv_run_fini(&h->region[i].runs);
		vv_mem_free(h->region[i].part);
	}
	vv_mem_free(h->region);
	vv_mem_free(h->stat);
	*h = (struct vv_head){ 0 };
}

uint64_t vv_head_stat(const struct vv_head *h, const char *name)
{
	for (size_t i = 0; i < h->n_stats; i++)
		if (strcmp(h->stat[i].name, name) == 0)
			return h->stat[i].value;
	return 0;
}

int vv_head_add_stat(struct vv_head *h, const char *name, uint64_t value)
{
	struct vv_stat *v;

	if (!value)
		return 0;
	v = vv_mem_grow(h->stat, h->n_stats + 1, sizeof(*v));
	if (!v)
		return VV_ENOMEM;
	h->stat = v;
	v[h->n_stats] = (struct vv_stat){ .value = value };
	strncpy(v[h->n_stats].name, name, sizeof(v->name) - 1);
	h->n_stats++;
	return 0;
}

/* Programs without a type for small floating-point numbers have stored them as unsigned integers,
 * and records as bytes. */
bool vv_head_types_agree(unsigned declared, unsigned stored)
{
	bool bits = declared >= VV_TYPE_BF16 && declared < VV_TYPES && vv_head_type_size(declared) == vv_head_type_size(stored);

	return declared == stored || declared == VV_TYPE_BYTES || stored == VV_TYPE_BYTES ||
	       (bits && (stored == VV_TYPE_U16 || stored == VV_TYPE_U8)) || (declared == VV_TYPE_RECORD && stored == VV_TYPE_U8);
}

int vv_head_check_shape(const char *name, const struct vv_shape *s)
{
	uint64_t bytes = vv_head_element_size(s);

	if (s->len > VV_MAX_REGION_BYTES)
		return vv_err_set(VV_EINVAL, "region '%s': %" PRIu64 " bytes, the format's limit is 2^40", name, s->len);
	if (s->chunk < VV_MIN_CHUNK || s->chunk > VV_MAX_CHUNK)
		return vv_err_set(VV_EINVAL, "region '%s': chunk of %u bytes, allowed are %d..%d", name, s->chunk,
				  VV_MIN_CHUNK, VV_MAX_CHUNK);
	if (s->type > VV_TYPE_RECORD || s->ndim > VV_MAX_DIMS || (s->type == VV_TYPE_BYTES) != (s->ndim == 0) ||
	    (s->type == VV_TYPE_RECORD) != !!s->record)
		return vv_err_set(VV_EINVAL, "region '%s': type %u with %u dimensions (an array has 1..%d)", name,
				  s->type, s->ndim, VV_MAX_DIMS);
	for (unsigned i = 0; i < s->ndim; i++)
		if (__builtin_mul_overflow(bytes, s->dim[i], &bytes))
			return vv_err_set(VV_EINVAL, "region '%s': the shape overflows 64 bits", name);
	if (s->ndim && bytes != s->len)
		return vv_err_set(VV_EINVAL, "region '%s': the shape holds %" PRIu64 " bytes, the region %" PRIu64, name,
				  bytes, s->len);
	return 0;
}

bool vv_head_same_shape(const struct vv_shape *a, const struct vv_shape *b)
{
	return a->len == b->len && a->type == b->type && a->record == b->record && a->ndim == b->ndim && memcmp(a->dim, b->dim, a->ndim * sizeof(a->dim[0])) == 0;
}

void vv_head_put_ident(const struct vv_head *h, struct vv_buf *b)
{
	vv_buf_add(b, h->lineage, sizeof(h->lineage));
	vv_wire_put_u64(b, h->epoch);
	vv_wire_put_u64(b, h->parent);
	vv_wire_put_u32(b, h->rank);
	vv_wire_put_u32(b, h->ranks);
	vv_wire_put_u64(b, h->time_ns);
	vv_wire_put_u64(b, h->payload);
	vv_wire_put_u8(b, h->digest_kind);
	vv_wire_put_u8(b, h->depth);
}

static int damaged(const char *section, const char *what)
{
	return vv_err_set(VV_EDAMAGED, "section %s: %s", section, what);
}

int vv_head_get_ident(struct vv_head *h, const void *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);
	const uint8_t *id = vv_wire_bytes(&w, sizeof(h->lineage));

	h->epoch = vv_wire_u64(&w);
	h->parent = vv_wire_u64(&w);
	h->rank = vv_wire_u32(&w);
	h->ranks = vv_wire_u32(&w);
	h->time_ns = vv_wire_u64(&w);
	h->payload = vv_wire_u64(&w);
	h->digest_kind = vv_wire_u8(&w);
	h->depth = vv_wire_u8(&w);
	if (w.bad || vv_wire_left(&w))
		return damaged("IDENT", "wrong length");
	memcpy(h->lineage, id, sizeof(h->lineage));
	if (h->epoch < 1 || h->epoch > VV_MAX_EPOCH || h->parent >= h->epoch)
		return damaged("IDENT", "epoch or parent out of range");
	if (h->ranks < 1 || h->ranks > VV_MAX_RANKS || h->rank >= h->ranks)
		return damaged("IDENT", "rank out of range");
	if (h->payload > VV_MAX_PAYLOAD || (h->depth == 0) != (h->parent == 0))
		return damaged("IDENT", "payload or depth out of range");
	if (!vv_digest_of_kind(h->digest_kind))
		return damaged("IDENT", "unknown kind of digest (a newer varve wrote it?)");
	return 0;
}

void vv_head_put_regions(const struct vv_head *h, struct vv_buf *b)
{
	vv_wire_put_var(b, h->n_regions);
	for (size_t i = 0; i < h->n_regions; i++) {
		const struct vv_head_region *r = &h->region[i];

		vv_wire_put_str(b, r->name);
		vv_wire_put_var(b, r->parent);
		vv_wire_put_var(b, r->shape.len);
		vv_wire_put_var(b, r->shape.chunk);
		vv_wire_put_u8(b, r->shape.type);
		vv_wire_put_u8(b, r->shape.ndim);
		for (unsigned d = 0; d < r->shape.ndim; d++)
			vv_wire_put_var(b, r->shape.dim[d]);
		if (r->shape.record)
			vv_record_put(r->shape.record, b);
	}
}

static int get_region(const struct vv_head *h, struct vv_wire *w, struct vv_head_region *r)
{
	char name[VV_MAX_NAME + 1];
	int rc;

	vv_wire_str(w, name, sizeof(name));
	r->parent = (uint32_t)vv_wire_var_max(w, VV_MAX_REGIONS);
	r->shape.len = vv_wire_var(w);
	r->shape.chunk = (uint32_t)vv_wire_var_max(w, VV_MAX_CHUNK);
	r->shape.type = vv_wire_u8(w);
	r->shape.ndim = vv_wire_u8(w);
	if (w->bad || !name[0] || r->shape.ndim > VV_MAX_DIMS || (r->parent && !h->parent))
		return damaged("REGIONS", "malformed region");
	for (unsigned d = 0; d < r->shape.ndim; d++)
		r->shape.dim[d] = vv_wire_var(w);
	if (!w->bad && r->shape.type == VV_TYPE_RECORD && (rc = vv_record_get(name, w, &r->shape.record)) != 0)
		return rc == VV_ENOMEM ? rc : damaged("REGIONS", "impossible record");
	if (w->bad || vv_head_check_shape(name, &r->shape) < 0)
		return damaged("REGIONS", "impossible shape");
	r->name = vv_mem_strdup(name);
	return r->name ? 0 : VV_ENOMEM;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_names(const struct vv_head *h)
{
	const char **name = vv_mem_new(h->n_regions, sizeof(*name));
	int rc = 0;

	if (!name)
		return VV_ENOMEM;
	for (size_t i = 0; i < h->n_regions; i++)
		name[i] = h->region[i].name;
	qsort(name, h->n_regions, sizeof(*name), by_name);
	for (size_t i = 1; i < h->n_regions && rc == 0; i++)
		if (strcmp(name[i - 1], name[i]) == 0)
			rc = damaged("REGIONS", "two regions of one name");
	vv_mem_free(name);
	return rc;
}

int vv_head_get_regions(struct vv_head *h, const void *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);
	size_t count = (size_t)vv_wire_var_max(&w, VV_MAX_REGIONS);
	int rc = 0;

	if (w.bad || count > vv_wire_left(&w) / 6)
		return damaged("REGIONS", "impossible number of regions");
	h->region = vv_mem_new(count, sizeof(*h->region));
	if (!h->region)
		return VV_ENOMEM;
	for (; rc == 0 && h->n_regions < count; h->n_regions += rc == 0)
		rc = get_region(h, &w, &h->region[h->n_regions]);
	if (rc == 0 && vv_wire_left(&w))
		rc = damaged("REGIONS", "bytes left over");
	return rc ? rc : check_names(h);
}

int vv_head_put_sources_and_runs(const struct vv_head *h, struct vv_buf *sources, struct vv_buf *runs)
{
	return vv_run_wire_put(h, sources, runs);
}

int vv_head_get_runs(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs)
{
	return vv_run_wire_get(h, sources, n_sources, runs, n_runs, &(struct vv_parallel_for){ 0 });
}

void vv_head_put_stats(const struct vv_head *h, struct vv_buf *b)
{
	vv_wire_put_var(b, h->n_stats);
	for (size_t i = 0; i < h->n_stats; i++) {
		vv_wire_put_str(b, h->stat[i].name);
		vv_wire_put_u64(b, h->stat[i].value);
	}
}

int vv_head_get_stats(struct vv_head *h, const void *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);
	size_t count = (size_t)vv_wire_var_max(&w, MAX_STATS);

	if (w.bad || count > vv_wire_left(&w) / 9)
		return damaged("STATS", "impossible number of entries");
	h->stat = vv_mem_new(count, sizeof(*h->stat));
	if (!h->stat)
		return VV_ENOMEM;
	for (h->n_stats = 0; h->n_stats < count; h->n_stats++) {
		vv_wire_str(&w, h->stat[h->n_stats].name, sizeof(h->stat->name));
		h->stat[h->n_stats].value = vv_wire_u64(&w);
	}
	return w.bad || vv_wire_left(&w) ? damaged("STATS", "malformed") : 0;
}
