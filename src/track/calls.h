/* System calls that are in progress when memory is watched again after a search for written pages.
 * The kernel may have checked its right to write before that moment, and does not check again. A
 * read that bypasses the page cache (O_DIRECT) pins the pages, and the device writes them. So the
 * memory that such a call writes to counts as written the next time, too. */
#ifndef VV_TRACK_CALLS_H
#define VV_TRACK_CALLS_H

#include "track/address_ranges.h"

struct vv_calls {
	struct vv_address_ranges noted;
};

/* Replaces the noted calls by those in progress now. Call it after the search for written pages and
 * before any page is read. The bytes of calls that have ended by then are already in memory. */
void vv_calls_note(struct vv_calls *c);
/* Calls fn(arg, lo, hi) for the parts of [lo, hi), in pages, that the noted calls write to. */
void vv_calls_each(const struct vv_calls *c, uintptr_t lo, uintptr_t hi, void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg);
void vv_calls_fini(struct vv_calls *c);

#endif
