#include "track/calls.h"
#include "track/kernel_writes.h"
#include <stdlib.h>

void vv_calls_note(struct vv_calls *c)
{
	struct vv_address_ranges *p = &c->noted;

	*p = (struct vv_address_ranges){.hi = UINTPTR_MAX, .at = p->at, .cap = p->cap};
	vv_kernel_writes_each(vv_address_ranges_note, p);
}

void vv_calls_each(const struct vv_calls *c, uintptr_t lo, uintptr_t hi, void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg)
{
	const struct vv_address_ranges *p = &c->noted;

	if (p->failed && lo < hi) /* all of it may be written */
		fn(arg, lo, hi);
	for (size_t i = 0; i < p->n; i++) {
		uintptr_t first = p->at[i].lo > lo ? p->at[i].lo : lo, end = p->at[i].hi < hi ? p->at[i].hi : hi;

		if (first < end)
			fn(arg, first, end);
	}
}

void vv_calls_fini(struct vv_calls *c)
{
	free(c->noted.at);
	*c = (struct vv_calls){0};
}
