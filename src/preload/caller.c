#include "preload/caller.h"
#include "preload/library.h"

static struct vv_caller_table ready[VV_CALLER_PHASES];
__thread struct vv_caller_table *vv_caller_mine = &ready[0];

/* Examined pages, of the program and of others: the page number, and one more bit for the owner. */
enum { OUTSIDE, PROGRAM };
static struct vv_caller_table found;

static uintptr_t word_of(uintptr_t at, uintptr_t whose)
{
	return (at >> VV_CALLER_PAGE_BITS << 1) + whose;
}

/* A page has two slots. The second, which is another page's first, is for a page that a later one
 * has replaced. */
static _Atomic(uintptr_t) *place(uintptr_t page, bool second)
{
	return &found.page[(page ^ (second ? VV_CALLER_PAGES / 2 : 0)) % VV_CALLER_PAGES];
}

static uintptr_t recall(uintptr_t at)
{
	uintptr_t page = at >> VV_CALLER_PAGE_BITS, word = atomic_load_explicit(place(page, false), memory_order_relaxed);

	if (word >> 1 != page)
		word = atomic_load_explicit(place(page, true), memory_order_relaxed);
	return word >> 1 == page ? word : 0;
}

static void keep(uintptr_t word)
{
	_Atomic(uintptr_t) *at = place(word >> 1, false);
	uintptr_t other = atomic_load_explicit(at, memory_order_relaxed);

	if (other && other >> 1 != word >> 1)
		atomic_store_explicit(place(other >> 1, true), other, memory_order_relaxed);
	atomic_store(at, word);
}

/* A phase that has just ended must not be known after vv_caller_forget. */
void vv_caller_note(uintptr_t at, uintptr_t phase, const _Atomic(int) *now)
{
	uintptr_t page = at >> VV_CALLER_PAGE_BITS;
	_Atomic(uintptr_t) *known = &ready[phase].page[page % VV_CALLER_PAGES];

	vv_caller_mine = &ready[phase];
	atomic_store(known, page);
	if ((uintptr_t)atomic_load(now) != phase)
		atomic_store(known, 0);
}

bool vv_caller_is_program(uintptr_t at)
{
	uintptr_t word = recall(at);

	if (!word) {
		word = word_of(at, vv_library_is_program(at) ? PROGRAM : OUTSIDE);
		keep(word);
	}
	return word == word_of(at, PROGRAM);
}

bool vv_caller_makes_workers(uintptr_t at)
{
	return vv_library_makes_workers(at) || vv_caller_is_program(at);
}

static void forget(struct vv_caller_table *t)
{
	for (size_t i = 0; i < VV_CALLER_PAGES; i++)
		if (atomic_load(&t->page[i]))
			atomic_store(&t->page[i], 0);
}

void vv_caller_forget(void)
{
	forget(&found);
	for (size_t i = 1; i < VV_CALLER_PHASES; i++)
		forget(&ready[i]);
}
