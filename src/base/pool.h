/* A thread pool. A thread that waits for a task runs other tasks meanwhile. So a pool without
 * threads still makes progress, and every core works while the caller waits. */
#ifndef VV_BASE_POOL_H
#define VV_BASE_POOL_H

#include "base/parallel_for.h"
#include <stdbool.h>
#include <stddef.h>

struct vv_pool;

struct vv_task {
	void (*run)(struct vv_task *t);
	struct vv_task *next; /* for the pool */
	bool done;            /* for the pool, under its lock */
	bool left;            /* for the pool: no thread waits for the task */
};

/* `threads` threads besides the caller; 0 is allowed. If the system grants fewer, a warning reports
 * it and the pool uses those. */
int vv_pool_new(unsigned threads, struct vv_pool **out);
/* NULL is allowed; no task that a thread waits for may be in progress */
void vv_pool_free(struct vv_pool *p);

/* The task must stay in place until waited for. A task may wait only for tasks that it submitted
 * itself. */
void vv_pool_submit(struct vv_pool *p, struct vv_task *t);
/* The same for a task that comes before all tasks of vv_pool_submit. */
void vv_pool_submit_first(struct vv_pool *p, struct vv_task *t);
void vv_pool_wait(struct vv_pool *p, struct vv_task *t);
/* Submits a task that only vv_pool_free waits for. It may free itself, or submit itself again from
 * its own run. The pool's threads run it when there is no other task, so a long task should be
 * divided into steps. A pool without threads runs it at once. */
void vv_pool_leave(struct vv_pool *p, struct vv_task *t);

/* Runs one task that no thread has begun and that a thread waits for; false if there is none. */
bool vv_pool_help(struct vv_pool *p);

/* Calls fn(arg, i) for i in 0..n-1 on all threads, including the caller's; returns when all are
 * done. */
void vv_pool_each(struct vv_pool *p, size_t n, void (*fn)(void *arg, size_t i), void *arg);
/* The same for iterations that wait more than they compute: up to `threads` at a time, including
 * the caller's. Threads beyond the pool's are started for this call; if that fails, the existing
 * ones do the work. */
void vv_pool_each_deep(struct vv_pool *p, unsigned threads, size_t n, void (*fn)(void *arg, size_t i), void *arg);
/* The same as a loop. Without threads, or if p is NULL, the loop is sequential. */
struct vv_parallel_for vv_pool_loop(struct vv_pool *p);

unsigned vv_pool_width(const struct vv_pool *p); /* threads, including the caller's */
/* Cores that this process may use. */
unsigned vv_pool_cores(void);

#endif
