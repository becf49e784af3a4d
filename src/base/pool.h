/* A few threads that run tasks. A thread that waits for a task runs others meanwhile, so a pool of no threads at all
 * still makes progress, and every core works while the caller waits. */
#ifndef VV_BASE_POOL_H
#define VV_BASE_POOL_H

#include "base/parallel_for.h"
#include <stdbool.h>
#include <stddef.h>

struct vv_pool;

struct vv_task {
	void (*run)(struct vv_task *t);
	struct vv_task *next; /* the pool's */
	bool done;            /* the pool's, under its lock */
	bool left;            /* the pool's: nobody waits for it */
};

/* `threads` helpers beside the caller; 0 is fine. Where the system gives fewer, a warning says so and those do it. */
int vv_pool_new(unsigned threads, struct vv_pool **out);
void vv_pool_free(struct vv_pool *p); /* NULL is fine; no task may be under way that somebody waits for */

/* The task must stay where it is until waited for. A task may wait for tasks that it submitted itself, for no others. */
void vv_pool_submit(struct vv_pool *p, struct vv_task *t);
void vv_pool_wait(struct vv_pool *p, struct vv_task *t);
/* Nobody waits for this one, but vv_pool_free; it may free itself, or be left once more by its own run. The pool's threads do it when there is no other task: so one
 * that takes long is better left in steps. In a pool of no threads it is done at once. */
void vv_pool_leave(struct vv_pool *p, struct vv_task *t);

/* Runs one task that no thread has begun, and somebody waits for; false if there is none. */
bool vv_pool_help(struct vv_pool *p);

/* fn(arg, i) for i in 0..n-1 on all threads, the caller's too; returns when all are done. */
void vv_pool_each(struct vv_pool *p, size_t n, void (*fn)(void *arg, size_t i), void *arg);
/* The same for turns that wait more than they compute: up to `threads` of them at a time, the caller's included. What is more than the pool has is started for this
 * and ended; if that fails, those that there are do it. */
void vv_pool_each_deep(struct vv_pool *p, unsigned threads, size_t n, void (*fn)(void *arg, size_t i), void *arg);
/* The same as a loop; of a pool without helpers, or NULL, one that takes its turns one after the other. */
struct vv_parallel_for vv_pool_loop(struct vv_pool *p);

unsigned vv_pool_width(const struct vv_pool *p); /* threads, the caller's included */
/* Cores this process may use. */
unsigned vv_pool_cores(void);

#endif
