#include "core/plan/write_order.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

/* The past of a page in one number, smaller meaning sooner: access kind, then index. AFTER stands
 * last, but before pages that were never seen. A past is kept until a newer access is seen. A page
 * that a scan found dirty, or that rested for an epoch, is most likely written again at its last
 * position. Old and new pasts are compared by their index alone. Both mean the same: how many other
 * pages come before this one. */
#define INDEX_BITS 30
#define NO_PAST UINT32_MAX
/* an index is at most the number of pages; the last one is NO_PAST's */
#define MOST_PAGES (((size_t)1 << INDEX_BITS) - 2)

enum {
	DIRTY = 1,   /* Dirty: to be scheduled by the next begin */
	PENDING = 2, /* LastDirty: scheduled, not yet taken or released */
	COPIED = 4,  /* stored from a copy */
	WAITED = 8,  /* some thread had to wait for it */
};

/* A page enters each queue at most once between two begins. A page that no longer qualifies at its
 * turn is skipped, so nothing is removed from the middle. */
struct write_order_queue {
	uint32_t *page;
	ptrdiff_t step; /* from one to the next */
	uint32_t at, n;
};

/* The last two queues share n entries: one fills them from the front, the other from the back. When
 * they meet, some pages are in both, because a page with a waiting thread was copied. The queue of
 * waiting pages then drops those. */
struct vv_write_order_own {
	uint8_t *flag;
	/* the index of a page with an access of this epoch, the past of any other */
	uint32_t *seen;
	/* all that begin scheduled, in the predicted order; at = where next stands */
	struct write_order_queue plan;
	struct write_order_queue ahead; /* the same pages; at = where eager stands */
	uint32_t *shared;
	struct write_order_queue waiting, copies;
};

/* Empties all queues. */
static void empty(struct vv_write_order *o)
{
	struct vv_write_order_own *own = o->own;

	own->plan = (struct write_order_queue){ own->plan.page, 1, 0, 0 };
	own->ahead = own->plan;
	own->waiting = (struct write_order_queue){ own->shared, 1, 0, 0 };
	own->copies = (struct write_order_queue){ own->shared + (o->n ? o->n - 1 : 0), -1, 0, 0 };
}

int vv_write_order_init(struct vv_write_order *o, size_t n, bool by_address)
{
	struct vv_write_order_own *own;

	*o = (struct vv_write_order){ 0 };
	if (n > MOST_PAGES)
		return vv_err_set(VV_EINVAL, "%zu pages are more than the %zu that can be ordered", n, MOST_PAGES);
	o->own = own = vv_mem_new(1, sizeof(*own));
	if (!own)
		return VV_ENOMEM;
	o->n = n;
	o->by_address = by_address;
	if (!(o->state = vv_mem_new(n, sizeof(*o->state))) || !(o->access = vv_mem_new(n, sizeof(*o->access))) ||
	    !(own->flag = vv_mem_new(n, sizeof(*own->flag))) || !(own->seen = vv_mem_new(n, sizeof(*own->seen))) ||
	    !(own->plan.page = vv_mem_new(n, sizeof(*own->plan.page))) || !(own->shared = vv_mem_new(n, sizeof(*own->shared)))) {
		vv_write_order_fini(o);
		return VV_ENOMEM;
	}
	memset(own->seen, 0xff, n * sizeof(*own->seen)); /* NO_PAST */
	empty(o);
	return 0;
}

void vv_write_order_fini(struct vv_write_order *o)
{
	struct vv_write_order_own *own = o->own;

	if (own) {
		vv_mem_free(own->flag);
		vv_mem_free(own->seen);
		vv_mem_free(own->plan.page);
		vv_mem_free(own->shared);
	}
	vv_mem_free(own);
	vv_mem_free(o->state);
	vv_mem_free(o->access);
	*o = (struct vv_write_order){ 0 };
}

/* The newest known past: this epoch's access, else the earlier past. */
static uint32_t newest_past(const struct vv_write_order *o, size_t page)
{
	uint32_t seen = o->own->seen[page];

	if (o->access[page] == VV_ACCESS_NONE || (o->by_access && o->access[page] != VV_ACCESS_AFTER))
		return seen;
	return (uint32_t)(o->access[page] - VV_ACCESS_WAIT) << INDEX_BITS | seen;
}

void vv_write_order_inherit(struct vv_write_order *o, size_t at, const struct vv_write_order *old, size_t from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		o->own->seen[at + i] = newest_past(old, from + i);
}

uint32_t vv_write_order_index(const struct vv_write_order *o, uint32_t page)
{
	return o->access[page] == VV_ACCESS_NONE ? 0 : o->own->seen[page];
}

void vv_write_order_mark(struct vv_write_order *o, uint32_t page)
{
	o->own->flag[page] |= DIRTY;
}

enum { DIGIT_BITS = 11, DIGITS = 3, DIGIT_VALUES = 1 << DIGIT_BITS };
_Static_assert(DIGIT_BITS * DIGITS >= 32, "the digits cover a past");

static uint32_t digit(const struct vv_write_order_own *own, uint32_t page, int d)
{
	return own->seen[page] >> (d * DIGIT_BITS) & (DIGIT_VALUES - 1);
}

static bool sorted(const struct vv_write_order_own *own)
{
	for (uint32_t i = 1; i < own->plan.n; i++)
		if (own->seen[own->plan.page[i - 1]] > own->seen[own->plan.page[i]])
			return false;
	return true;
}

/* Sorts the plan by past, and pages of equal past by number. It is a radix sort from the low digit
 * up. It is stable, and the pages come in ascending order, which settles ties. The memory of the
 * other queues is free at this time and is used. */
static void sort_plan(struct vv_write_order_own *own)
{
	uint32_t start[DIGITS][DIGIT_VALUES] = { 0 }, *page = own->plan.page, *to = own->shared, n = own->plan.n;

	for (uint32_t i = 0; i < n; i++)
		for (int d = 0; d < DIGITS; d++)
			start[d][digit(own, page[i], d)]++;
	for (int d = 0; d < DIGITS; d++) {
		uint32_t sum = 0, *from = page;

		if (start[d][digit(own, page[0], d)] == n)
			continue; /* the same digit everywhere */
		for (int v = 0; v < DIGIT_VALUES; v++) {
			uint32_t count = start[d][v];

			start[d][v] = sum;
			sum += count;
		}
		for (uint32_t i = 0; i < n; i++)
			to[start[d][digit(own, from[i], d)]++] = from[i];
		page = to;
		to = from;
	}
	own->plan.page = page;
	own->shared = to;
}

static void schedule(struct vv_write_order *o, uint32_t page)
{
	struct vv_write_order_own *own = o->own;

	own->seen[page] = newest_past(o, page);
	o->access[page] = VV_ACCESS_NONE;
	o->state[page] = VV_WRITE_ORDER_SCHEDULED;
	own->flag[page] = PENDING;
	own->plan.page[own->plan.n++] = page;
}

/* The first page from p on that has any flag, or n: most pages have none in most epochs, so eight
 * at a time. */
static size_t flagged(const struct vv_write_order *o, size_t p)
{
	uint64_t eight;

	for (; o->n - p >= sizeof(eight); p += sizeof(eight)) {
		memcpy(&eight, o->own->flag + p, sizeof(eight));
		if (eight)
			break;
	}
	while (p < o->n && !o->own->flag[p])
		p++;
	return p;
}

size_t vv_write_order_scheduled(const struct vv_write_order *o, size_t page)
{
	while ((page = flagged(o, page)) < o->n && !(o->own->flag[page] & PENDING))
		page++;
	return page;
}

size_t vv_write_order_begin(struct vv_write_order *o)
{
	struct vv_write_order_own *own = o->own;

	if (o->busy)
		vv_write_order_fail(o);
	own->plan.n = 0;
	/* Only dirty pages have anything to reset: every recorded access makes its page dirty. */
	for (size_t p = flagged(o, 0); p < o->n; p = flagged(o, p + 1)) {
		if (own->flag[p] & DIRTY)
			schedule(o, (uint32_t)p);
		else
			own->flag[p] = 0;
	}
	/* a plan without a past, or of pages written in ascending order, is sorted already */
	if (!o->by_address && !sorted(own))
		sort_plan(own);
	o->left = own->plan.n;
	empty(o);
	own->plan.n = own->ahead.n = o->left;
	o->counter = 0;
	memset(o->count, 0, sizeof(o->count));
	o->busy = true;
	return o->left;
}

static uint32_t *place(const struct write_order_queue *q, uint32_t i)
{
	return &q->page[q->step * (ptrdiff_t)i];
}

/* The next page of the queue whose flags in `mask` are exactly `want`. */
static uint32_t pull(const struct vv_write_order_own *own, struct write_order_queue *q, unsigned mask, unsigned want)
{
	while (q->at < q->n) {
		uint32_t page = *place(q, q->at++);

		if ((own->flag[page] & mask) == want)
			return page;
	}
	return VV_WRITE_ORDER_NONE;
}

/* Keeps only the pages with threads that still wait. */
static void squeeze_waiting(struct vv_write_order_own *own)
{
	struct write_order_queue *q = &own->waiting;
	uint32_t page, n = 0;

	while ((page = pull(own, q, PENDING | COPIED, PENDING)) != VV_WRITE_ORDER_NONE)
		*place(q, n++) = page;
	q->at = 0;
	q->n = n;
}

/* Adds a page to `waiting` or `copies`; a page for `copies` is COPIED already. */
static void push(struct vv_write_order *o, struct write_order_queue *q, uint32_t page)
{
	if (o->own->waiting.n + o->own->copies.n == o->n)
		squeeze_waiting(o->own);
	*place(q, q->n++) = page;
}

/* Records the first access of this epoch. A page that made a thread wait is a WAIT, even if another
 * thread writes first. */
static void record(struct vv_write_order *o, uint32_t page, enum vv_access kind)
{
	if (o->own->flag[page] & WAITED)
		kind = VV_ACCESS_WAIT;
	o->access[page] = (uint8_t)kind;
	o->own->seen[page] = ++o->counter;
	o->count[kind]++;
	o->own->flag[page] |= DIRTY;
}

enum vv_write_order_do vv_write_order_write(struct vv_write_order *o, uint32_t page, bool room)
{
	uint8_t *flag = &o->own->flag[page];

	if (o->access[page] != VV_ACCESS_NONE)
		return VV_WRITE_ORDER_GO; /* two threads met at one page */
	if (o->state[page] == VV_WRITE_ORDER_PROCESSED) {
		record(o, page, o->busy ? VV_ACCESS_AVOIDED : VV_ACCESS_AFTER);
		return VV_WRITE_ORDER_GO;
	}
	if (*flag & COPIED) {
		record(o, page, VV_ACCESS_COW);
		return VV_WRITE_ORDER_GO;
	}
	if (o->state[page] == VV_WRITE_ORDER_SCHEDULED && room) {
		vv_write_order_copied(o, page);
		record(o, page, VV_ACCESS_COW);
		return VV_WRITE_ORDER_COPY;
	}
	if ((*flag & (PENDING | WAITED)) == PENDING)
		push(o, &o->own->waiting, page);
	*flag |= WAITED;
	return VV_WRITE_ORDER_WAIT;
}

void vv_write_order_presume(struct vv_write_order *o, uint32_t page)
{
	if (o->access[page] != VV_ACCESS_NONE)
		return;
	record(o, page, o->state[page] == VV_WRITE_ORDER_PROCESSED ? VV_ACCESS_AVOIDED : VV_ACCESS_COW);
}

void vv_write_order_waited(struct vv_write_order *o, uint32_t page)
{
	if (o->access[page] == VV_ACCESS_NONE)
		record(o, page, VV_ACCESS_WAIT);
}

bool vv_write_order_take(struct vv_write_order *o, uint32_t page)
{
	uint8_t *flag = &o->own->flag[page];

	if (!(*flag & PENDING))
		return false;
	*flag &= (uint8_t)~PENDING;
	o->left--;
	if (!(*flag & COPIED))
		o->state[page] = VV_WRITE_ORDER_INPROGRESS;
	return true;
}

uint32_t vv_write_order_next(struct vv_write_order *o)
{
	struct vv_write_order_own *own = o->own;
	uint32_t page = VV_WRITE_ORDER_NONE;

	page = pull(own, &own->waiting, PENDING | COPIED, PENDING);
	if (page == VV_WRITE_ORDER_NONE && !o->by_address)
		page = pull(own, &own->copies, PENDING, PENDING);
	if (page == VV_WRITE_ORDER_NONE)
		page = pull(own, &own->plan, PENDING, PENDING);
	if (page != VV_WRITE_ORDER_NONE)
		vv_write_order_take(o, page);
	return page;
}

void vv_write_order_done(struct vv_write_order *o, uint32_t page)
{
	vv_write_order_release(o, page);
}

void vv_write_order_release(struct vv_write_order *o, uint32_t page)
{
	if (o->own->flag[page] & PENDING)
		o->left--;
	o->own->flag[page] &= (uint8_t)~PENDING;
	o->state[page] = VV_WRITE_ORDER_PROCESSED;
}

void vv_write_order_end(struct vv_write_order *o)
{
	o->busy = false;
}

void vv_write_order_fail(struct vv_write_order *o)
{
	struct vv_write_order_own *own = o->own;

	for (uint32_t i = 0; i < own->plan.n; i++) {
		own->flag[own->plan.page[i]] = DIRTY;
		o->state[own->plan.page[i]] = VV_WRITE_ORDER_PROCESSED;
	}
	o->left = 0;
	o->busy = false;
}

uint32_t vv_write_order_eager(struct vv_write_order *o)
{
	return pull(o->own, &o->own->ahead, PENDING | COPIED, PENDING);
}

bool vv_write_order_copies_first(struct vv_write_order *o)
{
	struct write_order_queue *q = &o->own->copies;

	if (o->by_address)
		return false;
	while (q->at < q->n && !(o->own->flag[*place(q, q->at)] & PENDING))
		q->at++;
	return q->at < q->n;
}

void vv_write_order_copied(struct vv_write_order *o, uint32_t page)
{
	uint8_t *flag = &o->own->flag[page];

	if ((*flag & (PENDING | COPIED)) != PENDING)
		return;
	*flag |= COPIED;
	push(o, &o->own->copies, page);
}
