/* Regions: the memory that a session protects. */
#include "engine/session/region.h"
#include "base/err.h"
#include "base/held.h"
#include "base/mem.h"
#include "base/search.h"
#include "core/format/distribution.h"
#include "engine/epoch/background.h"
#include "engine/session/enter.h"
#include "engine/fields.h"
#include "engine/grains/grain_sets.h"
#include "engine/memory/tiles.h"
#include "space/space.h"
#include "track/memory.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One allocation. A pointer to the region is also a pointer to the whole. */
struct whole_region {
	struct vv_region region;
	struct vv_tracked tracked;
};

void vv_region_free(struct vv_region *r)
{
	vv_mem_free(r->name);
	vv_mem_free(r->part);
	vv_mem_free(r->was);
	vv_mem_free(r->now);
	vv_mem_free(r->tracked->cell);
	vv_grain_sets_leave(r);
	free(r->owned);
	vv_mem_free(r);
}

/* Returns the index of the region, or n_regions. The numbers in the map ascend in the list, too:
 * regions are added at its end. */
static size_t find(struct varve *v, const char *name)
{
	size_t number = vv_map_get(&v->by_name, name), i;

	if (number == VV_MAP_NONE)
		return v->n_regions;
	VV_SEARCH(i, 0, v->n_regions, v->region[i]->number < number);
	return i;
}

static size_t chunks(const struct vv_shape *s)
{
	return (size_t)((s->len + s->chunk - 1) / s->chunk);
}

static int add_region(struct varve *v, const char *name, struct vv_region **out)
{
	struct vv_region **list, *r;
	struct whole_region *whole;

	if (v->n_regions == VV_MAX_REGIONS)
		return vv_err_set(VV_EINVAL, "a session can hold %d regions", VV_MAX_REGIONS);
	/* At 0 and at powers of two, the capacity is doubled. */
	if ((v->n_regions & (v->n_regions - 1)) == 0) {
		list = vv_mem_grow(v->region, v->n_regions ? 2 * v->n_regions : 1, sizeof(struct vv_region *));
		if (!list)
			return VV_ENOMEM;
		v->region = list;
	}
	if (vv_map_reserve(&v->by_name, v->n_regions + 1) < 0)
		return VV_ENOMEM;
	whole = vv_mem_new(1, sizeof(*whole));
	if (!whole)
		return VV_ENOMEM;
	r = &whole->region;
	r->tracked = &whole->tracked;
	r->name = vv_mem_strdup(name);
	if (!r->name) {
		vv_mem_free(whole);
		return VV_ENOMEM;
	}
	/* Nothing to adopt: the parent epoch is ours, or there is none. */
	r->adopted = v->tip.written_here || !v->tip.epoch;
	r->number = v->n_regions ? v->region[v->n_regions - 1]->number + 1 : 0;
	(void)vv_map_put(&v->by_name, r->name, r->number); /* there is room */
	v->region[v->n_regions++] = r;
	*out = r;
	return 0;
}

/* For n chunks. */
static int set_room(uint32_t **v, size_t n)
{
	uint32_t *moved = vv_mem_grow(*v, n + 1, sizeof(*moved));

	if (!moved)
		return VV_ENOMEM;
	*v = moved;
	return 0;
}

/* After a failure both arrays still have room for the present chunks. */
static int resize(struct vv_region *r, void *p, const struct vv_shape *s)
{
	size_t n = r->fine ? 0 : chunks(s), room = n > r->n_chunks ? n : r->n_chunks;

	if (set_room(&r->was, room) < 0 || set_room(&r->now, room) < 0)
		return VV_ENOMEM;
	for (size_t i = r->n_chunks; i < n; i++)
		r->was[i] = VV_CHUNK_UNKNOWN;
	if (r->n_chunks && s->len > r->shape.len && r->shape.len % r->shape.chunk)
		r->was[r->n_chunks - 1] = VV_CHUNK_UNKNOWN; /* the parent has only its beginning */
	if (n < room && (set_room(&r->was, n) < 0 || set_room(&r->now, n) < 0))
		vv_err_clear(); /* then they stay larger than needed */
	r->n_chunks = n;
	r->p = p;
	r->shape = *s;
	return 0;
}

/* Thousands of regions of one size have the same digests of zeros. */
static bool copy_zero_digests(const struct varve *v, struct vv_region *r)
{
	const struct vv_region *other = v->n_regions > 1 ? v->region[v->n_regions - 2] : r;

	if (other == r || other->shape.chunk != r->shape.chunk || other->shape.len % other->shape.chunk != r->shape.len % r->shape.chunk)
		return false;
	r->zero = other->zero;
	r->zero_tail = other->zero_tail;
	return true;
}

static int zero_digests(struct varve *v, struct vv_region *r)
{
	size_t tail = (size_t)(r->shape.len % r->shape.chunk);
	uint8_t *zero;

	if (copy_zero_digests(v, r))
		return 0;
	zero = vv_mem_new(r->shape.chunk, 1);
	if (!zero)
		return VV_ENOMEM;
	v->ctx.digest(zero, r->shape.chunk, &r->zero);
	r->zero_tail = r->zero;
	if (tail)
		v->ctx.digest(zero, tail, &r->zero_tail);
	vv_mem_free(zero);
	return 0;
}

static int check_name(const char *call, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (n < 1 || n > VV_MAX_NAME)
		return vv_err_set(VV_EINVAL, "%s: a region's name has 1 to %d bytes", call, VV_MAX_NAME);
	return 0;
}

/* A declaration of the caller. */
struct declaration {
	const char *name;
	void *p;
	struct vv_shape shape;
	struct vv_fine_key key;
	struct vv_distribution *part; /* NULL: none; the region takes it over */
	bool begun, fresh; /* it is being put into effect; there was no such region before */
};

/* Freed memory would end the program in the next checkpoint, or later. */
static int check_mapped(const struct declaration *d)
{
	const void *page = vv_memory_first_unmapped(d->p, (size_t)d->shape.len);

	if (!page)
		return 0;
	return vv_err_set(VV_EINVAL, "region '%s', of %" PRIu64 " bytes at %p: the page at %p is not mapped; was the memory freed, or is the length wrong?",
			  d->name, d->shape.len, d->p, page);
}

/* Checks a declaration, and completes it. Changes nothing. */
static int check_declaration(struct varve *v, struct declaration *d)
{
	size_t i = find(v, d->name);
	struct vv_region *r = i < v->n_regions ? v->region[i] : NULL;
	int rc = vv_grain_sets_choose(v, r, d->name, d->p, (size_t)d->shape.len, &d->key);

	if (rc)
		return rc;
	d->shape.chunk = d->key.grain ? d->key.grain : v->ctx.chunk;
	rc = vv_head_check_shape(d->name, &d->shape);
	if (rc == 0 && d->part)
		rc = vv_distribution_check(d->name, &d->shape, d->part);
	if (rc == 0 && !d->p && d->shape.len)
		rc = vv_err_set(VV_EINVAL, "region '%s': no memory (NULL) for %" PRIu64 " bytes", d->name, d->shape.len);
	if (rc == 0 && r && r->owned)
		rc = vv_err_set(VV_EINVAL, "region '%s' was made by varve_alloc; varve_free it first", d->name);
	return rc;
}

static bool is_on_host(const struct declaration *d)
{
	return d->key.space == vv_space_host();
}

/* Checks that all memory is mapped. Thousands of small arrays often lie one after the other. Such a
 * row takes one system call. */
static int check_all_mapped(const struct declaration *d, size_t n)
{
	int rc = 0;

	for (size_t i = 0, next; rc == 0 && i < n; i = next) {
		uintptr_t lo = (uintptr_t)d[i].p, hi = lo + (size_t)d[i].shape.len;

		next = i + 1;
		if (!is_on_host(&d[i]))
			continue;
		for (; next < n && is_on_host(&d[next]) && (uintptr_t)d[next].p >= lo && (uintptr_t)d[next].p < hi + vv_memory_page(); next++)
			if ((uintptr_t)d[next].p + (size_t)d[next].shape.len > hi)
				hi = (uintptr_t)d[next].p + (size_t)d[next].shape.len;
		if (vv_memory_first_unmapped((void *)lo, hi - lo))
			for (size_t k = i; rc == 0 && k < next; k++)
				rc = check_mapped(&d[k]);
	}
	return rc;
}

static uint64_t device_bytes(const struct vv_region *r)
{
	return r->fine && r->space != vv_space_host() ? r->shape.len : 0;
}

/* The region had `before` bytes in device memory. */
static void count_device_bytes(struct varve *v, const struct vv_region *r, uint64_t before)
{
	if (v->grains)
		v->grains->device_bytes += device_bytes(r) - before;
}

/* Memory for new data of devices takes long to make: a thread makes it while the program goes on.
 * Without the thread, the first checkpoint makes it. */
static void prepare_memory(struct varve *v, const struct vv_region *r)
{
	vv_new_data_expect(&v->grains->new_data, r->space, r->device, v->grains->device_bytes);
	if (vv_background_ready(v->background) == 0)
		vv_background_adjust(v);
	else
		vv_err_clear();
}

static void take_out(struct varve *v, size_t i)
{
	uint64_t bytes = device_bytes(v->region[i]);

	if (v->grains)
		v->grains->device_bytes -= bytes;
	if (bytes && v->ctx.async) { /* less is expected */
		vv_new_data_expect(&v->grains->new_data, v->region[i]->space, v->region[i]->device, v->grains->device_bytes);
		vv_background_adjust(v);
	}
	vv_tiles_detach(v, v->region[i]);
	vv_map_remove(&v->by_name, v->region[i]->name);
	vv_region_free(v->region[i]);
	memmove(&v->region[i], &v->region[i + 1], (v->n_regions - i - 1) * sizeof(struct vv_region *));
	v->n_regions--;
}

/* Puts a checked declaration into effect. Under the lock. */
static int declare(struct varve *v, struct declaration *d, struct vv_region **out)
{
	size_t i = find(v, d->name);
	struct vv_region *r = i < v->n_regions ? v->region[i] : NULL;
	uint64_t before = r ? device_bytes(r) : 0;
	int rc;

	VV_HELD(&v->entry.lock);
	d->fresh = !r;
	rc = d->fresh ? add_region(v, d->name, &r) : 0;
	if (rc)
		return rc;
	d->begun = true;
	if (d->fresh)
		v->tiles->stale = true; /* it has no tiles yet */
	else if (r->p != d->p || r->shape.len != d->shape.len || r->shape.chunk != d->shape.chunk || !r->fine != !d->key.grain)
		vv_tiles_detach(v, r);
	rc = vv_grain_sets_assign(v, r, &d->key);
	if (rc == 0)
		rc = resize(r, d->p, &d->shape);
	if (rc == 0)
		rc = zero_digests(v, r);
	count_device_bytes(v, r, before);
	if (rc && d->fresh)
		take_out(v, v->n_regions - 1);
	if (rc)
		return rc;
	if (v->ctx.async && device_bytes(r) > before)
		prepare_memory(v, r);
	vv_mem_free(r->part);
	r->part = d->part;
	d->part = NULL;
	if (out)
		*out = r;
	return 0;
}

/* Under the lock. */
static int protect_part(struct varve *v, const char *name, void *p, const struct vv_shape *s, const struct vv_distribution *part, struct vv_region **out)
{
	struct declaration d = { .name = name, .p = p, .shape = *s, .part = part ? vv_distribution_copy(part) : NULL };
	int rc = part && !d.part ? VV_ENOMEM : check_declaration(v, &d);

	VV_HELD(&v->entry.lock);
	if (rc == 0)
		rc = check_all_mapped(&d, 1);
	if (rc == 0)
		rc = declare(v, &d, out);
	vv_mem_free(d.part);
	return rc;
}

static int protect(struct varve *v, const char *name, void *p, const struct vv_shape *s, struct vv_region **out)
{
	return protect_part(v, name, p, s, NULL, out);
}

int vv_region_protect(struct varve *v, const char *call, const char *name, void *p, const struct vv_shape *s, const struct vv_distribution *part)
{
	int rc = vv_enter_idle(v, call);

	if (rc)
		return rc;
	rc = check_name(call, name);
	if (rc == 0)
		rc = protect_part(v, name, p, s, part, NULL);
	return vv_enter_leave(v, rc);
}

int varve_protect(varve *v, const char *name, void *p, size_t len)
{
	struct vv_shape s = { .len = len };

	return vv_region_protect(v, "varve_protect", name, p, &s, NULL);
}

int vv_region_shape(const char *call, const char *name, enum varve_type type, int ndim, const size_t *shape, struct vv_shape *out)
{
	struct vv_shape s = { .type = (uint8_t)type, .ndim = (uint8_t)ndim };

	if ((unsigned)type >= VV_TYPES || type == VARVE_BYTES || ndim < 1 || ndim > VV_MAX_DIMS || !shape)
		return vv_err_set(VV_EINVAL, "%s: region '%s': type %d, %d dimensions, %s; an array has one of the types of varve.h but VARVE_BYTES, 1 to %d dimensions, and their lengths",
				  call, name ? name : "", (int)type, ndim, shape ? "a shape" : "no shape (NULL)", VV_MAX_DIMS);
	s.len = vv_head_type_size(s.type);
	for (int i = 0; i < ndim; i++) {
		s.dim[i] = shape[i];
		if (__builtin_mul_overflow(s.len, (uint64_t)shape[i], &s.len))
			return vv_err_set(VV_EINVAL, "%s: region '%s': the shape overflows 64 bits", call, name ? name : "");
	}
	*out = s;
	return 0;
}

int varve_protect_array(varve *v, const char *name, void *p, enum varve_type type, int ndim, const size_t *shape)
{
	struct vv_shape s;
	int rc = vv_region_shape("varve_protect_array", name, type, ndim, shape, &s);

	return rc ? rc : vv_region_protect(v, "varve_protect_array", name, p, &s, NULL);
}

int varve_protect_records(varve *v, const char *name, void *p, size_t n, size_t bytes, const struct varve_field *field, size_t n_fields)
{
	struct vv_shape s = { .type = VV_TYPE_RECORD, .ndim = 1, .dim = { n } };
	int rc = check_name("varve_protect_records", name);

	if (rc == 0)
		rc = vv_fields_record(name, bytes, field, n_fields, &s.record);
	if (rc == 0 && __builtin_mul_overflow((uint64_t)n, (uint64_t)bytes, &s.len))
		rc = vv_err_set(VV_EINVAL, "varve_protect_records: region '%s': %zu records of %zu bytes overflow 64 bits", name, n, bytes);
	return rc ? rc : vv_region_protect(v, "varve_protect_records", name, p, &s, NULL);
}

/* ---- many at once ---------------------------------------------------------------------------- */

/* Checks all declarations, among them that no name occurs twice. */
static int check_arrays(struct varve *v, const struct varve_array *array, size_t n, struct declaration *d)
{
	struct vv_map names = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct varve_array *a = &array[i];

		d[i] = (struct declaration){ .name = a->name, .p = a->p };
		rc = check_name("varve_protect_arrays", a->name);
		if (rc == 0 && a->type == VARVE_BYTES && a->ndim == 1 && a->shape)
			d[i].shape.len = a->shape[0];
		else if (rc == 0)
			rc = vv_region_shape("varve_protect_arrays", a->name, a->type, a->ndim, a->shape, &d[i].shape);
		if (rc == 0 && vv_map_get(&names, a->name) != VV_MAP_NONE)
			rc = vv_err_set(VV_EINVAL, "varve_protect_arrays: region '%s' is there twice", a->name);
		if (rc == 0)
			rc = vv_map_put(&names, a->name, i);
		if (rc == 0)
			rc = check_declaration(v, &d[i]);
	}
	vv_map_fini(&names);
	return rc ? rc : check_all_mapped(d, n);
}

/* The declaration of the region that has this name now. */
static struct declaration present(const struct varve *v, size_t i)
{
	const struct vv_region *r = v->region[i];

	return (struct declaration){ .name = r->name, .p = r->p, .shape = r->shape, .part = r->part,
				     .key = r->fine ? r->fine->key : (struct vv_fine_key){ .space = vv_space_host() } };
}

/* After a lack of memory: each region becomes the previous one. A region for which even that fails
 * is removed. */
static void undo(struct varve *v, const struct declaration *d, struct declaration *before, size_t n)
{
	while (n-- > 0) {
		size_t i = d[n].begun ? find(v, d[n].name) : v->n_regions;

		if (i == v->n_regions)
			continue;
		before[n].name = d[n].name;
		if (d[n].fresh || declare(v, &before[n], NULL) < 0)
			take_out(v, i);
	}
}

static int protect_arrays(struct varve *v, const struct varve_array *array, size_t n)
{
	struct declaration *d = vv_mem_new(n, sizeof(*d)), *before = vv_mem_new(n, sizeof(*before));
	struct vv_err_state error;
	int rc = d && before ? check_arrays(v, array, n, d) : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		size_t k = find(v, d[i].name);

		if (k < v->n_regions) {
			before[i] = present(v, k);
			v->region[k]->part = NULL; /* `before` has it */
		}
		rc = declare(v, &d[i], NULL);
	}
	vv_err_save(rc, &error);
	if (rc && d && before)
		undo(v, d, before, n);
	for (size_t i = 0; before && i < n; i++)
		vv_mem_free(before[i].part);
	vv_mem_free(d);
	vv_mem_free(before);
	return vv_err_restore(&error);
}

int varve_protect_arrays(varve *v, const struct varve_array *array, size_t n)
{
	int rc = vv_enter_idle(v, "varve_protect_arrays");

	if (rc)
		return rc;
	rc = array || !n ? protect_arrays(v, array, n) : vv_err_set(VV_EINVAL, "varve_protect_arrays: the arrays are needed");
	return vv_enter_leave(v, rc);
}

int varve_unprotect(varve *v, const char *name)
{
	size_t i;
	int rc = vv_enter_idle(v, "varve_unprotect");

	if (rc)
		return rc;
	rc = check_name("varve_unprotect", name);
	if (rc)
		return vv_enter_leave(v, rc);
	i = find(v, name);
	if (i == v->n_regions)
		rc = vv_err_set(VV_ENOENT, "varve_unprotect: no region '%s'", name);
	else if (v->region[i]->owned)
		rc = vv_err_set(VV_EINVAL, "varve_unprotect: region '%s' was made by varve_alloc; varve_free it", name);
	else
		take_out(v, i);
	return vv_enter_leave(v, rc);
}

int varve_untrack(varve *v, const char *name)
{
	size_t i;
	int rc = vv_enter_idle(v, "varve_untrack");

	if (rc)
		return rc;
	rc = check_name("varve_untrack", name);
	if (rc)
		return vv_enter_leave(v, rc);
	i = find(v, name);
	if (i == v->n_regions) {
		rc = vv_err_set(VV_ENOENT, "varve_untrack: no region '%s'", name);
	} else if (!v->region[i]->untracked) {
		vv_tiles_detach(v, v->region[i]);
		v->region[i]->untracked = true;
	}
	return vv_enter_leave(v, rc);
}

/* Declares the region again with another method and grain. */
static int refine(struct varve *v, struct vv_region *r, enum vv_method method, uint32_t grain)
{
	struct vv_region before = *r;
	struct vv_shape s = r->shape;
	void *owned = r->owned;
	int rc;

	r->refined = true;
	r->method = (uint8_t)method;
	r->grain = grain;
	r->owned = NULL;
	rc = protect_part(v, r->name, r->p, &s, r->part, NULL);
	r->owned = owned;
	if (rc) {
		r->refined = before.refined;
		r->method = before.method;
		r->grain = before.grain;
	}
	return rc;
}

int varve_refine(varve *v, const char *name, const char *method, size_t grain)
{
	size_t i;
	int m = method ? vv_grain_sets_method(method) : VV_METHOD_RUN;
	int rc = vv_enter_idle(v, "varve_refine");

	if (rc)
		return rc;
	rc = check_name("varve_refine", name);
	if (rc)
		return vv_enter_leave(v, rc);
	i = find(v, name);
	if (i == v->n_regions)
		rc = vv_err_set(VV_ENOENT, "varve_refine: no region '%s'", name);
	else if (m < 0)
		rc = vv_err_set(VV_EINVAL, "varve_refine: region '%s': no method '%s'; there are full, basic, list, tree and run", name,
				method);
	else
		rc = grain ? vv_grain_sets_check("varve_refine", grain) : 0;
	if (rc == 0 && i < v->n_regions)
		rc = refine(v, v->region[i], (enum vv_method)m, (uint32_t)grain);
	return vv_enter_leave(v, rc);
}

/* Complete zeroed pages. */
static void *zero_pages(const char *name, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = len ? (len + page - 1) / page * page : page;
	void *p = NULL;

	if (len > VV_MAX_REGION_BYTES || posix_memalign(&p, page, room) != 0) {
		vv_err_set(VV_ENOMEM, "varve_alloc: region '%s': no memory for %zu bytes", name, len);
		return NULL;
	}
	return memset(p, 0, room);
}

void *varve_alloc(varve *v, const char *name, size_t len)
{
	struct vv_shape s = { .len = len };
	struct vv_region *r = NULL;
	void *p = NULL;

	if (vv_enter_idle(v, "varve_alloc") < 0)
		return NULL;
	if (check_name("varve_alloc", name) == 0) {
		if (find(v, name) < v->n_regions)
			vv_err_set(VV_EINVAL, "varve_alloc: region '%s' is there already", name);
		else
			p = zero_pages(name, len);
	}
	if (p && protect(v, name, p, &s, &r) == 0)
		r->owned = p;
	vv_enter_leave(v, 0);
	if (!r)
		free(p);
	return r ? p : NULL;
}

int varve_free(varve *v, void *p)
{
	int rc;

	if (!p)
		return 0;
	rc = vv_enter_idle(v, "varve_free");
	if (rc)
		return rc;
	rc = vv_err_set(VV_EINVAL, "varve_free: %p is not memory of varve_alloc", p);
	for (size_t i = 0; rc && i < v->n_regions; i++)
		if (v->region[i]->owned == p) {
			take_out(v, i);
			rc = 0;
		}
	return vv_enter_leave(v, rc);
}
