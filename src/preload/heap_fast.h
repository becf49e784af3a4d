/* malloc and free of small objects, inline: a few instructions in addition to jemalloc's. */
#ifndef VV_PRELOAD_HEAP_FAST_H
#define VV_PRELOAD_HEAP_FAST_H

#include "preload/heap.h"

/* Returns the number of grains for n bytes; 0: n is 0, or too large. Jemalloc also has objects of 8
 * bytes, for which the marks are too coarse. */
static inline size_t vv_heap_grains(size_t n)
{
	return (n + VV_HEAP_GRAIN - 1) / VV_HEAP_GRAIN;
}

/* For a few grains, their number is the mark, which makes malloc fast. */
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

/* Up to this number jemalloc has a size for each number of grains: an object has no bytes behind
 * its grains. */
static inline bool vv_heap_are_exact(size_t grains)
{
	return grains - 1 < 8;
}

/* For so few bytes, jemalloc's calloc is slower. */
static inline void *vv_heap_alloc_exact_zeroed(size_t grains)
{
	uint64_t *p = vv_heap_alloc_few(grains);

	for (size_t i = 0; p && i < grains; i++)
		p[2 * i] = p[2 * i + 1] = 0;
	return p;
}

/* Only for vv_heap_is_plain objects. */
static inline void vv_heap_free_plain(void *p)
{
	*vv_heap_mark(p) = 0;
	vv_je_free(p);
}

#endif
