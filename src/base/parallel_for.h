/* A loop whose turns may be taken at once and in any order: how functions that know of no threads are given some. */
#ifndef VV_BASE_PARALLEL_FOR_H
#define VV_BASE_PARALLEL_FOR_H

#include <stddef.h>

struct vv_parallel_for {
	void (*each)(void *ctx, size_t n, void (*turn)(void *arg, size_t i), void *arg); /* NULL: one after the other */
	void *ctx;
	unsigned width; /* turns that are taken at once, where each is not NULL */
};

/* turn(arg, i) for i in 0..n-1; returns when all are done. */
static inline void vv_parallel_for_each(const struct vv_parallel_for *l, size_t n, void (*turn)(void *arg, size_t i), void *arg)
{
	if (l->each)
		l->each(l->ctx, n, turn, arg);
	for (size_t i = 0; !l->each && i < n; i++)
		turn(arg, i);
}

#endif
