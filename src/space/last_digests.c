#include "space/last_digests.h"
#include "base/err.h"
#include "base/mem.h"
#include <stdlib.h>

struct vv_last_digests_region {
	uint64_t id;
	uint32_t first, n;
};

void vv_last_digests_fini(struct vv_last_digests *p)
{
	vv_mem_unmap(p->digest, (size_t)p->end * sizeof(*p->digest));
	vv_mem_free(p->there);
	vv_mem_free(p->region);
	*p = (struct vv_last_digests){ 0 };
}

static int start(struct vv_last_digests *p, const struct vv_span *span, size_t n, uint32_t end)
{
	*p = (struct vv_last_digests){ .end = end, .n = n };
	p->digest = vv_mem_map_wide((size_t)end * sizeof(*p->digest));
	p->there = p->digest ? vv_mem_new(end / VV_GRAIN_TILE, sizeof(*p->there)) : NULL;
	p->region = p->there ? vv_mem_new(n, sizeof(*p->region)) : NULL;
	if (!p->region) {
		vv_last_digests_fini(p);
		return VV_ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		p->region[i] = (struct vv_last_digests_region){ span[i].id, span[i].first, span[i].n };
	return 0;
}

static bool same(const struct vv_last_digests *p, const struct vv_span *span, size_t n, uint32_t end)
{
	bool same = p->digest && p->n == n && p->end == end;

	for (size_t i = 0; same && i < n; i++)
		same = p->region[i].id == span[i].id && p->region[i].n == span[i].n;
	return same;
}

static int by_id(const void *a, const void *b)
{
	const struct vv_last_digests_region *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Step by step, so that no second copy of all digests is needed. */
static void move_digests(struct vv_digest *to, struct vv_digest *from, size_t n)
{
	enum { STEP = 1 << 16 };

	for (size_t i = 0; i < n; i += STEP) {
		size_t bytes = (n - i < STEP ? n - i : STEP) * sizeof(*to);

		memcpy(to + i, from + i, bytes);
		vv_mem_discard(from + i, bytes);
	}
}

/* Bits beyond the end of a shortened region belong to no grain. */
static void move(struct vv_last_digests *to, const struct vv_last_digests_region *now, const struct vv_last_digests *from,
		 const struct vv_last_digests_region *was)
{
	uint32_t n = now->n < was->n ? now->n : was->n, tiles = (n + VV_GRAIN_TILE - 1) / VV_GRAIN_TILE;

	move_digests(to->digest + now->first, from->digest + was->first, n);
	memcpy(to->there + now->first / VV_GRAIN_TILE, from->there + was->first / VV_GRAIN_TILE, tiles * sizeof(*to->there));
}

int vv_last_digests_fit(struct vv_last_digests *p, const struct vv_span *span, size_t n, uint32_t end)
{
	struct vv_last_digests now;
	int rc;

	if (same(p, span, n, end))
		return 0;
	rc = start(&now, span, n, end);
	if (rc)
		return rc;
	if (p->n)
		qsort(p->region, p->n, sizeof(*p->region), by_id);
	for (size_t i = 0; i < n && p->n; i++) {
		const struct vv_last_digests_region *was = bsearch(&now.region[i], p->region, p->n, sizeof(*p->region), by_id);

		if (was)
			move(&now, &now.region[i], p, was);
	}
	vv_last_digests_fini(p);
	*p = now;
	return 0;
}

void vv_last_digests_forget(struct vv_last_digests *p)
{
	if (p->there)
		memset(p->there, 0, p->end / VV_GRAIN_TILE * sizeof(*p->there));
}
