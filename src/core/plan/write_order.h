/* Nicolae and Cappello 2013 (AI-Ckpt), algorithms 1 to 4: what a first write to a page must do, and which page is stored next. Pure: the caller
 * locks, copies, waits, stores and lifts the protection. What the paper calls a page is a number in 0..n-1 here, whatever
 * its size; what it calls CowPage is the caller's.
 *
 * The paper's CHECKPOINT is vv_write_order_begin, PROTECTED_PAGE_HANDLER is vv_write_order_write and vv_write_order_waited, SELECT_NEXT_PAGE
 * is vv_write_order_next, the end of ASYNC_COMMIT is vv_write_order_end. Beyond the paper: pages known to be dirty without a fault
 * (vv_write_order_mark), copies made before anything is written (vv_write_order_eager, vv_write_order_copied), pages that turn out not to need
 * storing (vv_write_order_release), protection lifted before a page is written (vv_write_order_presume), and any number of waiting
 * threads. */
#ifndef VV_CORE_PLAN_WRITE_ORDER_H
#define VV_CORE_PLAN_WRITE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VV_WRITE_ORDER_NONE UINT32_MAX

enum vv_access { /* the paper's AT; its UNTOUCHED is NONE */
	VV_ACCESS_NONE,
	VV_ACCESS_WAIT,
	VV_ACCESS_COW,
	VV_ACCESS_AVOIDED,
	VV_ACCESS_AFTER,
	VV_ACCESS_KINDS,
};

enum vv_write_order_state { VV_WRITE_ORDER_PROCESSED, VV_WRITE_ORDER_SCHEDULED, VV_WRITE_ORDER_INPROGRESS };

enum vv_write_order_do { VV_WRITE_ORDER_GO, VV_WRITE_ORDER_COPY, VV_WRITE_ORDER_WAIT };

struct vv_write_order; /* its fields are for reading only, but for by_access */

/* by_address: what nobody waits for is stored in ascending order, whatever was seen (the paper's async-no-pattern; it does not
 * say so, but its counts of waits are those of a store that takes the waited-for page first). */
int vv_write_order_init(struct vv_write_order *o, size_t n, bool by_address);
void vv_write_order_fini(struct vv_write_order *o); /* an empty one is fine */
/* What `old` knows of the past of its pages from..from+n-1, for the pages at..at+n-1 of o: when pages are renumbered. What it
 * has seen in the present epoch is past to o. Dirty is not handed on: the caller marks. */
void vv_write_order_inherit(struct vv_write_order *o, size_t at, const struct vv_write_order *old, size_t from, size_t n);

/* The page is dirty, though no write to it was seen: a scan told, or nothing is known. */
void vv_write_order_mark(struct vv_write_order *o, uint32_t page);
/* Algorithm 1. What is dirty is scheduled, what was seen becomes the past; returns how many pages are scheduled. A
 * checkpoint that is still busy has failed (vv_write_order_fail). */
size_t vv_write_order_begin(struct vv_write_order *o);

/* Index: which of the first writes of this epoch it had, from 1 on; 0: it had none. */
uint32_t vv_write_order_index(const struct vv_write_order *o, uint32_t page);
/* The first page from `page` on that is in the schedule, or o->n. */
size_t vv_write_order_scheduled(const struct vv_write_order *o, size_t page);

/* Algorithm 2, up to the wait: the first write to a protected page. room: there is place for a copy.
 * GO    nothing stands in the way; recorded as AVOIDED, AFTER, or COW if it was copied before
 * COPY  the caller copies it now; recorded as COW, stored from the copy
 * WAIT  it is next to be stored; the caller waits until it is PROCESSED (or copies it with vv_write_order_copied while it is still
 *       SCHEDULED and room has appeared), then calls vv_write_order_waited
 * A page that has an access is anybody's: GO, and nothing is counted. So of several threads that wait for a page, those that
 * find access[page] set when they wake must make no copy: it is being written. A page that kept one thread waiting is
 * recorded as WAIT, even if another thread gets through first; so who wakes may just as well call vv_write_order_write again, and do
 * what it says: that is right in every case, also when the next begin came before it. */
enum vv_write_order_do vv_write_order_write(struct vv_write_order *o, uint32_t page, bool room);
void vv_write_order_waited(struct vv_write_order *o, uint32_t page); /* recorded as WAIT */

/* Algorithm 4, and 3 up to the storing: takes the page to store next out of the schedule; INPROGRESS, or still SCHEDULED when
 * it is stored from a copy. VV_WRITE_ORDER_NONE when none is left. First those that threads wait for, then those that have a copy,
 * each in the order they came; then as the past says: WAIT, COW, AVOIDED, AFTER, each by index; then those without a past. */
uint32_t vv_write_order_next(struct vv_write_order *o);
/* The same with a page of the caller's choice; false if it is not in the schedule any more. */
bool vv_write_order_take(struct vv_write_order *o, uint32_t page);
/* It is stored: PROCESSED. */
void vv_write_order_done(struct vv_write_order *o, uint32_t page);
/* A scheduled page need not be stored: PROCESSED, and out of the schedule. */
void vv_write_order_release(struct vv_write_order *o, uint32_t page);
/* Everything is stored: from now on first writes are AFTER. */
void vv_write_order_end(struct vv_write_order *o);
/* The checkpoint failed: everything that was scheduled at its begin is dirty again, PROCESSED, and first writes are AFTER. What
 * was written since stays dirty too. */
void vv_write_order_fail(struct vv_write_order *o);

/* The scheduled page, not yet copied, that is expected to be written soonest: to be copied before anything is written, or
 * looked at ahead of its storing. Each call gives another one, in the predicted order, until none is left; begin starts
 * anew. Pages that were taken by next, released or copied meanwhile are left out. */
uint32_t vv_write_order_eager(struct vv_write_order *o);
/* The page's protection is lifted before it is written, because it is safe and expected to be written next: its access is
 * taken to be now. */
void vv_write_order_presume(struct vv_write_order *o, uint32_t page);
/* The scheduled page has been copied: it is stored from the copy, ahead of those that have none. Nothing happens if it has a
 * copy already or is no longer in the schedule. */
void vv_write_order_copied(struct vv_write_order *o, uint32_t page);
/* Are there copies still to be stored, ahead of what has none? */
bool vv_write_order_copies_first(struct vv_write_order *o);

struct vv_write_order {
	size_t n;
	bool by_address;
	bool by_access;      /* set after init: the past's order alone counts, not what kind of access it was. With copies ahead of
				the program whether a page was waited for or copied says little; when it was written says all */
	bool busy;           /* CheckpointInProgress */
	uint32_t left;       /* |LastDirty|: scheduled, not yet taken or released */
	uint8_t *state;      /* enum vv_write_order_state */
	uint8_t *access;     /* AT: enum vv_access of the present epoch */
	uint32_t counter;    /* AccessOrder */
	uint64_t count[VV_ACCESS_KINDS]; /* first writes of the present epoch by kind */
	/* The rest is core/plan/write_order.c's own. */
	struct vv_write_order_own *own;
};

#endif
