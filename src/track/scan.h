/* Which pages were written: userfaultfd WP_ASYNC and PAGEMAP_SCAN (Linux >= 6.7). No handler, no signal; writes by the kernel
 * on the program's behalf are seen too. Memory written by devices is not. */
#ifndef VV_TRACK_SCAN_H
#define VV_TRACK_SCAN_H

#include "base/parallel_for.h"
#include <stdbool.h>
#include <stdint.h>

struct vv_scan;

/* VV_ENOTSUP, with the reason, where the kernel or its settings do not allow it. */
int vv_scan_open(struct vv_scan **out);
/* 0; or VV_EIO: the program has closed one of the descriptors that it needs. */
int vv_scan_check(const struct vv_scan *s);
void vv_scan_close(struct vv_scan *s); /* NULL is fine; what is attached is let go */
/* What the first write to a watched page costs the program here: seconds of processor time, tried when the scan was opened. */
double vv_scan_fault_cost(const struct vv_scan *s);

/* From now on writes to the pages [lo, hi) are noted; none is yet. Much memory is taken in parts, in turns of the loop; NULL: by the caller alone. VV_ENOTSUP if
 * this kind of memory cannot be watched. */
int vv_scan_attach(struct vv_scan *s, const struct vv_parallel_for *loop, uintptr_t lo, uintptr_t hi);
void vv_scan_detach(struct vv_scan *s, uintptr_t lo, uintptr_t hi); /* memory that is gone already is fine */

/* Calls seen(arg, lo, hi) for every stretch of pages written since the last collect (or attach), ascending, and starts
 * anew, so that no write falls between. VV_EMISMATCH if some of it is no longer attached (moved by mremap, unmapped): then all
 * must be taken as written, and attached anew. */
int vv_scan_collect(struct vv_scan *s, uintptr_t lo, uintptr_t hi, void (*seen)(void *arg, uintptr_t lo, uintptr_t hi),
		    void *arg);
/* Starts anew, whatever was written. */
int vv_scan_rearm(struct vv_scan *s, uintptr_t lo, uintptr_t hi);
/* The same as collect without starting anew. */
int vv_scan_peek(struct vv_scan *s, uintptr_t lo, uintptr_t hi, void (*seen)(void *arg, uintptr_t lo, uintptr_t hi),
		 void *arg);
/* Those that are not watched any more and hold nothing: whoever took them away took their content along. */
int vv_scan_peek_dropped(struct vv_scan *s, uintptr_t lo, uintptr_t hi, void (*seen)(void *arg, uintptr_t lo, uintptr_t hi),
			 void *arg);

#endif
