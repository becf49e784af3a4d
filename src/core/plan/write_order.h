/* Nicolae and Cappello 2013 (AI-Ckpt), algorithms 1 to 4: the handling of the first write to a
 * page, and the order in which pages are stored. Pure: the caller locks, copies, waits, stores and
 * unprotects. A page of the paper is a number in 0..n-1 here, whatever its size; the paper's
 * CowPage belongs to the caller.
 *
 * The paper's functions:
 *   CHECKPOINT              vv_write_order_begin
 *   PROTECTED_PAGE_HANDLER  vv_write_order_write, vv_write_order_waited
 *   SELECT_NEXT_PAGE        vv_write_order_next
 *   end of ASYNC_COMMIT     vv_write_order_end
 *
 * Beyond the paper there may be any number of waiting threads. Pages may be known to be dirty
 * without a fault (vv_write_order_mark), or need not be stored after all (vv_write_order_release).
 * Copies may be made before anything is written (vv_write_order_eager, vv_write_order_copied).
 * Pages may be unprotected before they are written (vv_write_order_presume). */
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

/* by_address: pages that no thread waits for are stored in ascending order, whatever was seen. This
 * is the paper's async-no-pattern. The paper does not mention the exception, but its counts of
 * waits require that a page with waiting threads is stored first. */
int vv_write_order_init(struct vv_write_order *o, size_t n, bool by_address);
void vv_write_order_fini(struct vv_write_order *o); /* an empty one is fine */
/* Copies the past of `old`'s pages from..from+n-1 to the pages at..at+n-1 of o, when pages are
 * renumbered. The present epoch of `old` is past to o. Dirty flags are not copied: the caller
 * marks. */
void vv_write_order_inherit(struct vv_write_order *o, size_t at, const struct vv_write_order *old, size_t from, size_t n);

/* Marks a page dirty of which no write was seen: a scan found it dirty, or its state is unknown. */
void vv_write_order_mark(struct vv_write_order *o, uint32_t page);
/* Algorithm 1. Schedules the dirty pages and turns the accesses seen into the past. Returns the
 * number of scheduled pages. A checkpoint that is still busy has failed (vv_write_order_fail). */
size_t vv_write_order_begin(struct vv_write_order *o);

/* The position of the page among the first writes of this epoch, from 1 on; 0: it was not
 * written. */
uint32_t vv_write_order_index(const struct vv_write_order *o, uint32_t page);
/* The first page from `page` on that is in the schedule, or o->n. */
size_t vv_write_order_scheduled(const struct vv_write_order *o, size_t page);

/* Algorithm 2, up to the wait: the first write to a protected page. With `room`, there is room for
 * a copy.
 * GO    The write may proceed. Recorded as AVOIDED, AFTER, or COW if the page was copied before.
 * COPY  The caller copies the page now. Recorded as COW, stored from the copy.
 * WAIT  The page is stored next. The caller waits until it is PROCESSED, then calls
 *       vv_write_order_waited. While the page is SCHEDULED and room has appeared, the caller may
 *       copy it instead (vv_write_order_copied).
 * A page that has an access already is free for all threads: GO, and nothing is counted. A waiting
 * thread that wakes and finds access[page] set must therefore make no copy: the page is being
 * written. A page that made one thread wait is recorded as WAIT, even if another thread writes
 * first. A thread that wakes may also call vv_write_order_write again and follow the result. That
 * is right in every case, also after the next begin. */
enum vv_write_order_do vv_write_order_write(struct vv_write_order *o, uint32_t page, bool room);
void vv_write_order_waited(struct vv_write_order *o, uint32_t page); /* recorded as WAIT */

/* Algorithm 4, and algorithm 3 up to the storing: takes the next page to store out of the schedule.
 * The page becomes INPROGRESS, or stays SCHEDULED if it is stored from a copy. Returns
 * VV_WRITE_ORDER_NONE when none is left. First come pages that threads wait for, then pages with a
 * copy, each in the order of arrival. Then the past decides: WAIT, COW, AVOIDED, AFTER, each by
 * index. Pages without a past come last. */
uint32_t vv_write_order_next(struct vv_write_order *o);
/* The same with a page of the caller's choice; false if the page is no longer in the schedule. */
bool vv_write_order_take(struct vv_write_order *o, uint32_t page);
/* The page is stored: PROCESSED. */
void vv_write_order_done(struct vv_write_order *o, uint32_t page);
/* A scheduled page need not be stored: PROCESSED, and out of the schedule. */
void vv_write_order_release(struct vv_write_order *o, uint32_t page);
/* Everything is stored: from now on first writes are AFTER. */
void vv_write_order_end(struct vv_write_order *o);
/* The checkpoint failed: all pages scheduled at its begin are dirty again and PROCESSED, and first
 * writes are AFTER. Pages written since then stay dirty too. */
void vv_write_order_fail(struct vv_write_order *o);

/* Returns the scheduled page without a copy that is expected to be written soonest. The caller
 * copies it before anything is written, or examines it before it is stored. Each call returns
 * another page, in the predicted order, until none is left; begin starts again. Pages taken by
 * next, released or copied in the meantime are left out. */
uint32_t vv_write_order_eager(struct vv_write_order *o);
/* The page is unprotected before it is written, because that is safe and the page is expected to be
 * written next. Its access is recorded now. */
void vv_write_order_presume(struct vv_write_order *o, uint32_t page);
/* The scheduled page has been copied: it is stored from the copy, before pages without one. Nothing
 * happens if the page has a copy already or is no longer in the schedule. */
void vv_write_order_copied(struct vv_write_order *o, uint32_t page);
/* Are there copies still to be stored, before pages without one? */
bool vv_write_order_copies_first(struct vv_write_order *o);

struct vv_write_order {
	size_t n;
	bool by_address;
	/* set after init: a past is its index alone, but AFTER stays last. If copies are made ahead
	 * of the program, a WAIT or COW means little; the order of writes means all. */
	bool by_access;
	bool busy;           /* CheckpointInProgress */
	uint32_t left;       /* |LastDirty|: scheduled, not yet taken or released */
	uint8_t *state;      /* enum vv_write_order_state */
	uint8_t *access;     /* AT: enum vv_access of the present epoch */
	uint32_t counter;    /* AccessOrder */
	uint64_t count[VV_ACCESS_KINDS]; /* first writes of the present epoch by kind */
	/* The rest is private to core/plan/write_order.c. */
	struct vv_write_order_own *own;
};

#endif
