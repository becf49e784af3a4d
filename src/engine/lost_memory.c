#include "engine/lost_memory.h"
#include "base/err.h"
#include "space/space.h"
#include <inttypes.h>

struct gap { /* the first stretch of a region that cannot be read */
	uintptr_t lo, hi;
	bool mapped;
};

static bool find_gap(void *arg, uintptr_t lo, uintptr_t hi, const struct vv_memory_map *m)
{
	struct gap *g = arg;
	bool gap = !m || m->mode[0] != 'r';

	if (gap && g->hi == 0)
		*g = (struct gap){ lo, hi, m != NULL };
	else if (gap && g->mapped == (m != NULL) && g->hi == lo)
		g->hi = hi;
	else if (g->hi)
		return false;
	return true;
}

/* Freed memory may be mapped and inaccessible by now, as the reserve of an allocator. */
static int err_gap(const struct vv_region *r, const struct gap *g)
{
	return vv_err_set(VV_EINVAL, "region '%s': %zu bytes at %p, of its %" PRIu64 " at %p, %s; varve_unprotect it, or varve_protect it where it is now",
			  r->name, (size_t)(g->hi - g->lo), (void *)g->lo, r->shape.len, (void *)r->p, g->mapped ? "may not be read (PROT_NONE)" : "are not mapped");
}

bool vv_lost_memory_on_device(const struct vv_region *r)
{
	int device;

	if (!r->space || r->space == vv_space_host() || !r->shape.len)
		return false;
	return !r->space->owns(r->p, (size_t)r->shape.len, &device) || device != r->device;
}

int vv_lost_memory_error(const struct vv_region *r)
{
	struct vv_memory_range all = { (uintptr_t)r->p, (uintptr_t)r->p + r->shape.len, false };
	struct gap g = { 0 };

	if (!vv_lost_memory_on_device(r))
		vv_memory_walk(&all, vv_memory_tidy(&all, r->shape.len > 0), find_gap, &g);
	if (g.hi)
		return err_gap(r, &g);
	return vv_err_set(VV_EINVAL,
			  "region '%s': its %" PRIu64 " bytes at %p are not mapped, or may not be read; varve_unprotect it, or "
			  "varve_protect it where it is now",
			  r->name, r->shape.len, (void *)r->p);
}

bool vv_lost_memory_find(struct vv_memory_range *v, size_t n, uintptr_t *lo, uintptr_t *hi)
{
	struct gap g = { 0 };

	vv_memory_walk(v, vv_memory_tidy(v, n), find_gap, &g);
	*lo = g.lo;
	*hi = g.hi;
	return g.hi != 0;
}
