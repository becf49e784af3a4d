/* The write-protected ranges of this process, with marks for each page. A signal handler finds them
 * by address without a lock. */
#ifndef VV_TRACK_PROTECTED_RANGE_H
#define VV_TRACK_PROTECTED_RANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_protected_range {
	uintptr_t lo, hi;
	void *owner;
	struct vv_protected_range *next; /* in the list of retired ranges */
	atomic_uint held;
	atomic_bool changed_by_program; /* the program has changed the rights of its pages */
	size_t words;
	_Atomic uint64_t bit[]; /* the words of the first mark, then those of the second */
};

enum vv_protected_range_mark {
	/* Set before the page is protected, cleared after it is unprotected. */
	VV_PROTECTED_RANGE_SET,
	/* To be protected, but a system call was writing to it: it is unprotected. */
	VV_PROTECTED_RANGE_SKIPPED,
};

/* Returns NULL, with the error set, if there is no memory. */
struct vv_protected_range *vv_protected_range_new(uintptr_t lo, uintptr_t hi, void *owner);

/* The first range that ends above lo, if it begins below hi. The caller must release it. Safe in a
 * handler. */
struct vv_protected_range *vv_protected_range_acquire(uintptr_t lo, uintptr_t hi);
void vv_protected_range_release(struct vv_protected_range *r);
bool vv_protected_range_any(void); /* one atomic load */

/* ---- changes of the table: one thread at a time, under the caller's lock */
bool vv_protected_range_is_unused(uintptr_t lo, uintptr_t hi);
int vv_protected_range_insert(struct vv_protected_range *r); /* the space must be free */
/* Removes it from the table. It is freed once it is no longer held. */
void vv_protected_range_remove(struct vv_protected_range *r);
/* Any range of the owner in the table. */
struct vv_protected_range *vv_protected_range_of(const void *owner);
/* Are removed ranges of the owner still held? Frees removed ranges that are not held. */
bool vv_protected_range_reap(const void *owner);
/* In the child: the threads that held ranges are gone. */
void vv_protected_range_forked(void);

/* ---- marks */
/* Sets or clears the mark. Returns the change in the number of marked pages. */
long vv_protected_range_set(struct vv_protected_range *r, enum vv_protected_range_mark mark, uintptr_t lo, uintptr_t hi, bool on);
/* The change in the number of borders between marked and unmarked pages, in or at [lo, hi), if the
 * mark were set or cleared there. */
long vv_protected_range_borders(struct vv_protected_range *r, enum vv_protected_range_mark mark, uintptr_t lo, uintptr_t hi, bool on);
/* The first page at or above lo with the mark, or without it; hi if there is none. */
uintptr_t vv_protected_range_next(struct vv_protected_range *r, enum vv_protected_range_mark mark, uintptr_t lo, uintptr_t hi, bool on);

#endif
