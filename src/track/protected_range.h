/* The write-protected ranges of this process, found by address from a signal handler without a lock; with marks for each page. */
#ifndef VV_TRACK_PROTECTED_RANGE_H
#define VV_TRACK_PROTECTED_RANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_protected_range {
	uintptr_t lo, hi;
	void *owner;
	struct vv_protected_range *next; /* among the retired */
	atomic_uint held;
	atomic_bool changed_by_program; /* the program has changed rights of its pages itself */
	size_t words;
	_Atomic uint64_t bit[]; /* words of the first kind of mark, words of the second */
};

enum vv_protected_range_mark {
	VV_PROTECTED_RANGE_SET,   /* set before the page is shut, cleared after it was opened */
	VV_PROTECTED_RANGE_SKIPPED, /* to be shut, but a system call was writing into it: it is open */
};

/* NULL, with the error set, if there is no memory. */
struct vv_protected_range *vv_protected_range_new(uintptr_t lo, uintptr_t hi, void *owner);

/* The first range that ends above lo, if it begins below hi; held until it is released. Safe in a handler. */
struct vv_protected_range *vv_protected_range_acquire(uintptr_t lo, uintptr_t hi);
void vv_protected_range_release(struct vv_protected_range *r);
bool vv_protected_range_any(void); /* one atomic load */

/* ---- changes of the table: one thread at a time, by the caller's lock */
bool vv_protected_range_is_unused(uintptr_t lo, uintptr_t hi);
int vv_protected_range_insert(struct vv_protected_range *r); /* into free space */
/* Out of the table; freed once it is no longer held. */
void vv_protected_range_remove(struct vv_protected_range *r);
struct vv_protected_range *vv_protected_range_of(const void *owner); /* any of his in the table */
/* Are ranges of the owner, taken out, still held? Frees those that are not. */
bool vv_protected_range_reap(const void *owner);
void vv_protected_range_forked(void); /* in the child: the threads that held some are gone */

/* ---- marks */
/* Returns by how many more pages have the mark now. */
long vv_protected_range_set(struct vv_protected_range *r, enum vv_protected_range_mark mark, uintptr_t lo, uintptr_t hi, bool on);
/* By how many there would be more borders, in or at [lo, hi), between pages with the mark and pages without, if that were set. */
long vv_protected_range_borders(struct vv_protected_range *r, enum vv_protected_range_mark mark, uintptr_t lo, uintptr_t hi, bool on);
/* The first page at or above lo where the mark is, or is not; hi if there is none. */
uintptr_t vv_protected_range_next(struct vv_protected_range *r, enum vv_protected_range_mark mark, uintptr_t lo, uintptr_t hi, bool on);

#endif
