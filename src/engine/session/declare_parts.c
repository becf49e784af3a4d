/* Declares regions that a restart on another number of ranks can fill. */
#include "base/err.h"
#include "core/format/distribution.h"
#include "engine/session/region.h"

int varve_protect_slab(varve *v, const char *name, void *p, enum varve_type type, int ndim, const size_t *global, const size_t *start, const size_t *count,
		       const size_t *ghost)
{
	struct vv_distribution d = { .kind = VV_DISTRIBUTION_SLAB };
	size_t memory[VV_MAX_DIMS] = { 0 };
	struct vv_shape s;
	int rc;

	if (!global || !start || !count)
		return vv_err_set(VV_EINVAL, "varve_protect_slab: region '%s': global, start and count are needed", name ? name : "");
	for (int i = 0; ndim <= VV_MAX_DIMS && i < ndim; i++) { /* more dimensions are refused below */
		d.global[i] = global[i];
		d.start[i] = start[i];
		d.ghost[i] = ghost ? ghost[i] : 0;
		if (__builtin_mul_overflow((size_t)d.ghost[i], (size_t)2, &memory[i]) || __builtin_add_overflow(memory[i], count[i], &memory[i]))
			return vv_err_set(VV_EINVAL, "varve_protect_slab: region '%s': the shape overflows 64 bits", name ? name : "");
	}
	rc = vv_region_shape("varve_protect_slab", name, type, ndim, memory, &s);
	return rc ? rc : vv_region_protect(v, "varve_protect_slab", name, p, &s, &d);
}

int varve_protect_shared(varve *v, const char *name, void *p, size_t len)
{
	return vv_region_protect(v, "varve_protect_shared", name, p, &(struct vv_shape){ .len = len }, &(struct vv_distribution){ .kind = VV_DISTRIBUTION_SHARED });
}

int varve_protect_list(varve *v, const char *name, void *p, enum varve_type type, size_t width, size_t items)
{
	struct vv_distribution d = { .kind = VV_DISTRIBUTION_LIST, .item = width };
	size_t shape[2] = { items, width };
	struct vv_shape s = { 0 };
	int rc = 0;

	if (type != VARVE_BYTES)
		rc = vv_region_shape("varve_protect_list", name, type, width == 1 ? 1 : 2, shape, &s);
	else if (__builtin_mul_overflow((uint64_t)items, (uint64_t)width, &s.len))
		rc = vv_err_set(VV_EINVAL, "varve_protect_list: region '%s': the list overflows 64 bits", name ? name : "");
	if (rc == 0 && (width == 0 || __builtin_mul_overflow((uint64_t)width, (uint64_t)vv_head_type_size(s.type), &d.item)))
		rc = vv_err_set(VV_EINVAL, "varve_protect_list: region '%s': an item of %zu elements", name ? name : "", width);
	return rc ? rc : vv_region_protect(v, "varve_protect_list", name, p, &s, &d);
}
