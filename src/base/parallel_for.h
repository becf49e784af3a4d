/* A loop whose iterations may run concurrently and in any order. It gives threads to functions that
 * do not depend on a thread pool. */
#ifndef VV_BASE_PARALLEL_FOR_H
#define VV_BASE_PARALLEL_FOR_H

#include <stddef.h>

struct vv_parallel_for {
	/* NULL: sequential */
	void (*each)(void *ctx, size_t n, void (*turn)(void *arg, size_t i), void *arg);
	void *ctx;
	unsigned width; /* concurrent iterations, if each is not NULL */
};

/* Calls turn(arg, i) for i in 0..n-1; returns when all are done. */
static inline void vv_parallel_for_each(const struct vv_parallel_for *l, size_t n, void (*turn)(void *arg, size_t i), void *arg)
{
	if (l->each)
		l->each(l->ctx, n, turn, arg);
	for (size_t i = 0; !l->each && i < n; i++)
		turn(arg, i);
}

#endif
