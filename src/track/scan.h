/* Finds written pages by userfaultfd WP_ASYNC and PAGEMAP_SCAN (Linux >= 6.7), without handlers or
 * signals. Writes by the kernel on the program's behalf are seen, too. Writes by devices are
 * not. */
#ifndef VV_TRACK_SCAN_H
#define VV_TRACK_SCAN_H

#include "base/parallel_for.h"
#include <stdbool.h>
#include <stdint.h>

struct vv_scan;

/* Returns VV_ENOTSUP, with the reason, if the kernel or its settings do not allow it. */
int vv_scan_open(struct vv_scan **out);
/* Returns 0, or VV_EIO if the program has closed one of the descriptors. */
int vv_scan_check(const struct vv_scan *s);
void vv_scan_close(struct vv_scan *s); /* accepts NULL; detaches everything */
/* Seconds of processor time for the first write to a watched page, measured when the scan was
 * opened. */
double vv_scan_fault_cost(const struct vv_scan *s);

/* From now on writes to the pages [lo, hi) are recorded. Initially no page counts as written. Large
 * ranges are divided into parts that the loop runs. loop NULL: the caller does all. VV_ENOTSUP if
 * this kind of memory cannot be watched. */
int vv_scan_attach(struct vv_scan *s, const struct vv_parallel_for *loop, uintptr_t lo, uintptr_t hi);
/* Unmapped memory is allowed. */
void vv_scan_detach(struct vv_scan *s, uintptr_t lo, uintptr_t hi);

/* Calls seen(arg, lo, hi) for every range of pages written since the last collect or attach, in
 * ascending order, and starts again. No write is lost in between. VV_EMISMATCH if some memory is no
 * longer attached (moved by mremap, unmapped). Then all pages must be treated as written, and
 * attached again. */
int vv_scan_collect(struct vv_scan *s, uintptr_t lo, uintptr_t hi, void (*seen)(void *arg, uintptr_t lo, uintptr_t hi),
		    void *arg);
/* For tests: searches dropped pages itself, as on kernels that do not report all of them. */
void vv_scan_search_dropped(struct vv_scan *s, bool on);
/* Starts again without a report of written pages. */
int vv_scan_rearm(struct vv_scan *s, uintptr_t lo, uintptr_t hi);
/* The same as collect, but does not start again. */
int vv_scan_peek(struct vv_scan *s, uintptr_t lo, uintptr_t hi, void (*seen)(void *arg, uintptr_t lo, uintptr_t hi),
		 void *arg);
/* Reports pages that are no longer watched and hold no data. Their content is lost. */
int vv_scan_peek_dropped(struct vv_scan *s, uintptr_t lo, uintptr_t hi, void (*seen)(void *arg, uintptr_t lo, uintptr_t hi),
			 void *arg);

#endif
