/* System calls under way at the moment at which memory, just looked at, is watched anew. The kernel may have made sure before that moment that it may write, and will not do so again: a read
 * past the page cache (O_DIRECT) holds the pages and has the device write them. So what such a call writes into counts as written the next time, too. */
#ifndef VV_TRACK_CALLS_H
#define VV_TRACK_CALLS_H

#include "track/address_ranges.h"

struct vv_calls {
	struct vv_address_ranges noted;
};

/* Those that are under way now, in place of those that were. When the memory has been looked at and before any of it is read: what others have written that are over by then is there. */
void vv_calls_note(struct vv_calls *c);
/* Calls fn(arg, lo, hi) for what those that were noted write into of [lo, hi), in pages. */
void vv_calls_each(const struct vv_calls *c, uintptr_t lo, uintptr_t hi, void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg);
void vv_calls_fini(struct vv_calls *c);

#endif
