#include "track/address_ranges.h"
#include <stdlib.h>

void vv_address_ranges_note(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct vv_address_ranges *p = arg;

	lo = lo > p->lo ? lo : p->lo;
	hi = hi < p->hi ? hi : p->hi;
	if (lo >= hi)
		return;
	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 16;
		struct vv_address_ranges_part *at = realloc(p->at, cap * sizeof(*at));

		if (!at) {
			p->failed = true;
			return;
		}
		p->at = at;
		p->cap = cap;
	}
	p->at[p->n++] = (struct vv_address_ranges_part){lo, hi};
}

static int by_address(const void *a, const void *b)
{
	const struct vv_address_ranges_part *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

void vv_address_ranges_tidy(struct vv_address_ranges *p)
{
	size_t n = 0;

	if (p->n > 1)
		qsort(p->at, p->n, sizeof(p->at[0]), by_address);
	for (size_t i = 0; i < p->n; i++)
		if (n > 0 && p->at[i].lo <= p->at[n - 1].hi)
			p->at[n - 1].hi = p->at[i].hi > p->at[n - 1].hi ? p->at[i].hi : p->at[n - 1].hi;
		else
			p->at[n++] = p->at[i];
	p->n = n;
}
