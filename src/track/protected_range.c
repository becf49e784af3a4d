/* A sorted array of ranges, replaced as one object. A reader increments `looking` for the few
 * instructions until it holds the range that it found. A writer waits until `looking` is 0, and
 * then owns the old array. A range that is still held, perhaps for long, is freed by a later
 * change. */
#include "track/protected_range.h"
#include "base/err.h"
#include "base/search.h"
#include "track/memory.h"
#include <sched.h>
#include <stdlib.h>

struct range_table {
	size_t n;
	struct vv_protected_range *range[];
};

static _Atomic(struct range_table *) table; /* NULL while there is no range */
/* Has the same capacity: removing a range needs no memory. */
static struct range_table *spare;
static atomic_uint looking;
static struct vv_protected_range *retired;

struct vv_protected_range *vv_protected_range_new(uintptr_t lo, uintptr_t hi, void *owner)
{
	size_t words = ((hi - lo) / vv_memory_page() + 63) / 64;
	struct vv_protected_range *r = calloc(1, sizeof(*r) + 2 * words * sizeof(r->bit[0]));

	if (!r) {
		vv_err_set(VV_ENOMEM, "no memory to write-protect a range");
		return NULL;
	}
	r->lo = lo;
	r->hi = hi;
	r->owner = owner;
	r->words = words;
	return r;
}

/* The position of the first range that ends above lo. */
static size_t place_of(const struct range_table *t, uintptr_t lo)
{
	size_t i;

	VV_SEARCH(i, 0, t ? t->n : 0, t->range[i]->hi <= lo);
	return i;
}

struct vv_protected_range *vv_protected_range_acquire(uintptr_t lo, uintptr_t hi)
{
	struct vv_protected_range *found = NULL;
	const struct range_table *t;
	size_t i;

	atomic_fetch_add(&looking, 1);
	t = atomic_load(&table);
	i = place_of(t, lo);
	if (t && i < t->n && t->range[i]->lo < hi) {
		found = t->range[i];
		atomic_fetch_add(&found->held, 1);
	}
	atomic_fetch_sub(&looking, 1);
	return found;
}

void vv_protected_range_release(struct vv_protected_range *r)
{
	atomic_fetch_sub(&r->held, 1);
}

bool vv_protected_range_any(void)
{
	return atomic_load(&table) != NULL;
}

bool vv_protected_range_is_unused(uintptr_t lo, uintptr_t hi)
{
	const struct range_table *t = atomic_load(&table);
	size_t i = place_of(t, lo);

	return !t || i == t->n || t->range[i]->lo >= hi;
}

bool vv_protected_range_reap(const void *owner)
{
	struct vv_protected_range **at = &retired;
	bool more = false;

	while (*at) {
		struct vv_protected_range *r = *at;

		if (atomic_load(&r->held) == 0) {
			*at = r->next;
			free(r);
		} else {
			more |= r->owner == owner;
			at = &r->next;
		}
	}
	return more;
}

/* Replaces the table and returns the old one. When it returns, no thread reads the old table any
 * more. */
static struct range_table *publish(struct range_table *t)
{
	struct range_table *old = atomic_exchange(&table, t);

	while (atomic_load(&looking) != 0)
		sched_yield();
	vv_protected_range_reap(NULL);
	return old;
}

int vv_protected_range_insert(struct vv_protected_range *r)
{
	const struct range_table *old = atomic_load(&table);
	size_t n = old ? old->n : 0, i = place_of(old, r->lo), size = sizeof(*old) + (n + 1) * sizeof(old->range[0]);
	struct range_table *t = malloc(size), *other = malloc(size);

	if (!t || !other) {
		free(t);
		free(other);
		return vv_err_set(VV_ENOMEM, "no memory to write-protect a range");
	}
	t->n = n + 1;
	for (size_t k = 0; k < t->n; k++)
		t->range[k] = k < i ? old->range[k] : k == i ? r : old->range[k - 1];
	free(spare);
	spare = other;
	free(publish(t));
	return 0;
}

void vv_protected_range_remove(struct vv_protected_range *r)
{
	const struct range_table *t = atomic_load(&table);
	struct range_table *shorter = spare;
	size_t n = 0;

	for (size_t k = 0; k < t->n; k++)
		if (t->range[k] != r)
			shorter->range[n++] = t->range[k];
	shorter->n = n;
	spare = publish(n > 0 ? shorter : NULL);
	if (n == 0) {
		free(shorter);
		free(spare);
		spare = NULL;
	}
	/* not before: a reader may just be acquiring it */
	r->next = retired;
	retired = r;
	vv_protected_range_reap(NULL);
}

struct vv_protected_range *vv_protected_range_of(const void *owner)
{
	const struct range_table *t = atomic_load(&table);

	for (size_t i = 0; t && i < t->n; i++)
		if (t->range[i]->owner == owner)
			return t->range[i];
	return NULL;
}

void vv_protected_range_forked(void)
{
	const struct range_table *t = atomic_load(&table);

	atomic_store(&looking, 0);
	for (size_t i = 0; t && i < t->n; i++)
		atomic_store(&t->range[i]->held, 0);
	for (struct vv_protected_range *r = retired; r; r = r->next)
		atomic_store(&r->held, 0);
}

long vv_protected_range_set(struct vv_protected_range *r, enum vv_protected_range_mark mark, uintptr_t lo, uintptr_t hi, bool on)
{
	size_t page = vv_memory_page(), i = (lo - r->lo) / page, end = (hi - r->lo) / page;
	_Atomic uint64_t *bit = r->bit + (size_t)mark * r->words;
	long more = 0;

	while (i < end) {
		size_t stop = (i | 63) + 1 < end ? (i | 63) + 1 : end;
		uint64_t bits = ~UINT64_C(0) >> (64 - (stop - i)) << i % 64;

		if (on)
			more += __builtin_popcountll(bits & ~atomic_fetch_or(&bit[i / 64], bits));
		else if (atomic_load(&bit[i / 64]) & bits)
			more -= __builtin_popcountll(bits & atomic_fetch_and(&bit[i / 64], ~bits));
		i = stop;
	}
	return more;
}

static bool is_marked(struct vv_protected_range *r, enum vv_protected_range_mark mark, uintptr_t page)
{
	return page >= r->lo && page < r->hi && vv_protected_range_next(r, mark, page, page + vv_memory_page(), true) == page;
}

long vv_protected_range_borders(struct vv_protected_range *r, enum vv_protected_range_mark mark, uintptr_t lo, uintptr_t hi, bool on)
{
	bool left = is_marked(r, mark, lo - vv_memory_page()), right = is_marked(r, mark, hi), now = left;
	long more = (left != on) + (right != on);

	for (uintptr_t at = vv_protected_range_next(r, mark, lo, hi, !now); at < hi; at = vv_protected_range_next(r, mark, at, hi, !now)) {
		now = !now;
		more--;
	}
	return more - (now != right);
}

uintptr_t vv_protected_range_next(struct vv_protected_range *r, enum vv_protected_range_mark mark, uintptr_t lo, uintptr_t hi, bool on)
{
	size_t page = vv_memory_page(), i = (lo - r->lo) / page, end = (hi - r->lo) / page;
	_Atomic uint64_t *bit = r->bit + (size_t)mark * r->words;

	while (i < end) {
		uint64_t word = atomic_load(&bit[i / 64]);
		uint64_t bits = (on ? word : ~word) >> i % 64;

		if (bits) {
			i += (size_t)__builtin_ctzll(bits);
			break;
		}
		i = (i | 63) + 1;
	}
	return i < end ? r->lo + i * page : hi;
}
