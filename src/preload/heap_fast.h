/* malloc and free of small objects, inline: a few instructions beside those of jemalloc. */
#ifndef VV_PRELOAD_HEAP_FAST_H
#define VV_PRELOAD_HEAP_FAST_H

#include "preload/heap.h"

/* As many grains as hold n bytes; 0: none, or too many. jemalloc has objects of 8 bytes, too, for which the marks are too coarse. */
static inline size_t vv_heap_grains(size_t n)
{
	return (n + VV_HEAP_GRAIN - 1) / VV_HEAP_GRAIN;
}

/* If they are few, their number is the mark, and all that malloc does are a few instructions beside jemalloc's own. */
static inline bool vv_heap_are_few(size_t grains)
{
	return __builtin_expect(grains - 1 < VV_HEAP_SMALL / VV_HEAP_GRAIN, 1);
}

static inline void *vv_heap_alloc_few(size_t grains)
{
	void *p = vv_je_malloc(grains * VV_HEAP_GRAIN);

	if (__builtin_expect(p != NULL, 1))
		*vv_heap_mark(p) = (uint8_t)grains;
	return p;
}

/* Up to here jemalloc has a size for each number of grains: nothing is left of an object behind them. */
static inline bool vv_heap_are_exact(size_t grains)
{
	return grains - 1 < 8;
}

/* jemalloc's own way takes longer than to clear so little. */
static inline void *vv_heap_alloc_exact_zeroed(size_t grains)
{
	uint64_t *p = vv_heap_alloc_few(grains);

	for (size_t i = 0; p && i < grains; i++)
		p[2 * i] = p[2 * i + 1] = 0;
	return p;
}

/* Of one that vv_heap_is_plain. */
static inline void vv_heap_free_plain(void *p)
{
	*vv_heap_mark(p) = 0;
	vv_je_free(p);
}

#endif
