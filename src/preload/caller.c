#include "preload/caller.h"
#include "preload/library.h"

_Atomic(uintptr_t) vv_caller_known[VV_CALLER_PAGES];

/* A page has two places: the second, which is another's first, is for one that lost its own to a page that called later. */
static _Atomic(uintptr_t) *place(uintptr_t page, bool second)
{
	return &vv_caller_known[(page ^ (second ? VV_CALLER_PAGES / 2 : 0)) % VV_CALLER_PAGES];
}

static uintptr_t recall(uintptr_t at)
{
	uintptr_t page = at >> VV_CALLER_PAGE_BITS, word = atomic_load_explicit(place(page, false), memory_order_relaxed);

	if (word >> VV_CALLER_WHOSE_BITS != page)
		word = atomic_load_explicit(place(page, true), memory_order_relaxed);
	return word >> VV_CALLER_WHOSE_BITS == page ? word : 0;
}

static void keep(uintptr_t word)
{
	_Atomic(uintptr_t) *at = place(word >> VV_CALLER_WHOSE_BITS, false);
	uintptr_t other = atomic_load_explicit(at, memory_order_relaxed);

	if (other && other >> VV_CALLER_WHOSE_BITS != word >> VV_CALLER_WHOSE_BITS)
		atomic_store_explicit(place(other >> VV_CALLER_WHOSE_BITS, true), other, memory_order_relaxed);
	atomic_store(at, word);
}

/* A phase that ends just now must not be known after vv_caller_forget. */
void vv_caller_note(uintptr_t at, uintptr_t phase, const _Atomic(int) *now)
{
	keep(vv_caller_word(at, phase));
	if ((uintptr_t)atomic_load(now) != phase)
		keep(vv_caller_word(at, VV_CALLER_PROGRAM));
}

bool vv_caller_is_program(uintptr_t at)
{
	uintptr_t word = recall(at);

	if (!word) {
		word = vv_caller_word(at, vv_library_is_program(at) ? VV_CALLER_PROGRAM : VV_CALLER_OUTSIDE);
		keep(word);
	}
	return word != vv_caller_word(at, VV_CALLER_OUTSIDE);
}

bool vv_caller_makes_workers(uintptr_t at)
{
	return vv_library_makes_workers(at) || vv_caller_is_program(at);
}

void vv_caller_forget(void)
{
	for (size_t i = 0; i < VV_CALLER_PAGES; i++)
		atomic_store(&vv_caller_known[i], 0);
}
