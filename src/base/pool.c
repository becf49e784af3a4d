#include "base/pool.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

struct pool_queue {
	struct vv_task *head, **tail;
};

struct vv_pool {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a task was added, or the pool ends */
	pthread_cond_t idle; /* a task was finished */
	struct pool_queue first; /* tasks that come before all others */
	struct pool_queue tasks;
	struct pool_queue left; /* tasks without a waiting thread: they come after all others */
	bool stop;
	unsigned n;
	pthread_t thread[];
};

static void enqueue(struct pool_queue *q, struct vv_task *t)
{
	t->next = NULL;
	*q->tail = t;
	q->tail = &t->next;
}

static struct vv_task *take(struct pool_queue *q)
{
	struct vv_task *t = q->head;

	if (t) {
		q->head = t->next;
		if (!q->head)
			q->tail = &q->head;
	}
	return t;
}

/* A task that a thread waits for. */
static struct vv_task *take_awaited(struct vv_pool *p)
{
	struct vv_task *t = take(&p->first);

	return t ? t : take(&p->tasks);
}

static void run_unlocked(struct vv_pool *p, struct vv_task *t)
{
	bool left = t->left;

	pthread_mutex_unlock(&p->lock);
	t->run(t);
	pthread_mutex_lock(&p->lock);
	if (left)
		return;
	t->done = true;
	pthread_cond_broadcast(&p->idle);
}

static void *work(void *arg)
{
	struct vv_pool *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop || p->first.head || p->tasks.head || p->left.head) {
		struct vv_task *t = take_awaited(p);

		t = t ? t : take(&p->left);
		if (t)
			run_unlocked(p, t);
		else
			pthread_cond_wait(&p->work, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Signals belong to the application: the pool's threads block all of them, except those that a
 * thread causes itself. */
static int spawn(struct vv_pool *p, unsigned threads)
{
	sigset_t all, old;
	int rc = 0;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (p->n < threads && rc == 0) {
		rc = pthread_create(&p->thread[p->n], NULL, work, p);
		p->n += rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

int vv_pool_new(unsigned threads, struct vv_pool **out)
{
	struct vv_pool *p = vv_mem_new(1, sizeof(*p) + threads * sizeof(pthread_t));
	int rc;

	if (!p)
		return VV_ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->idle, NULL);
	p->first.tail = &p->first.head;
	p->tasks.tail = &p->tasks.head;
	p->left.tail = &p->left.head;
	rc = spawn(p, threads);
	if (rc)
		vv_log_warn("%u of %u helping threads could not be started, the others do their work: %s", threads - p->n, threads,
			    strerror(rc));
	*out = p;
	return 0;
}

void vv_pool_free(struct vv_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->n; i++)
		pthread_join(p->thread[i], NULL);
	pthread_cond_destroy(&p->idle);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	vv_mem_free(p);
}

static void submit(struct vv_pool *p, struct vv_task *t, struct pool_queue *to)
{
	pthread_mutex_lock(&p->lock);
	t->done = false;
	t->left = to == &p->left;
	enqueue(to, t);
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
}

void vv_pool_submit(struct vv_pool *p, struct vv_task *t)
{
	submit(p, t, &p->tasks);
}

void vv_pool_submit_first(struct vv_pool *p, struct vv_task *t)
{
	submit(p, t, &p->first);
}

void vv_pool_leave(struct vv_pool *p, struct vv_task *t)
{
	if (p->n)
		submit(p, t, &p->left);
	else
		t->run(t);
}

void vv_pool_wait(struct vv_pool *p, struct vv_task *t)
{
	pthread_mutex_lock(&p->lock);
	while (!t->done) {
		struct vv_task *other = take_awaited(p);

		if (other)
			run_unlocked(p, other);
		else
			pthread_cond_wait(&p->idle, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
}

bool vv_pool_help(struct vv_pool *p)
{
	struct vv_task *t;

	pthread_mutex_lock(&p->lock);
	t = take_awaited(p);
	if (t)
		run_unlocked(p, t);
	pthread_mutex_unlock(&p->lock);
	return t;
}

struct pool_each {
	struct vv_task task;
	void (*fn)(void *arg, size_t i);
	void *arg;
	size_t n;
	atomic_size_t *next;
};

static void run_each(struct vv_task *t)
{
	struct pool_each *e = (struct pool_each *)t;

	for (;;) {
		size_t i = atomic_fetch_add(e->next, 1);

		if (i >= e->n)
			return;
		e->fn(e->arg, i);
	}
}

void vv_pool_each(struct vv_pool *p, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
	enum { MAX = 64 };
	struct pool_each e[MAX];
	atomic_size_t next = 0;
	size_t helpers = p->n < MAX ? p->n : MAX; /* beside this thread */
	struct pool_each mine = { .fn = fn, .arg = arg, .n = n, .next = &next };

	helpers = helpers < n ? helpers : n ? n - 1 : 0;
	for (size_t i = 0; i < helpers; i++) {
		e[i] = mine;
		e[i].task.run = run_each;
		vv_pool_submit(p, &e[i].task);
	}
	run_each(&mine.task);
	for (size_t i = 0; i < helpers; i++)
		vv_pool_wait(p, &e[i].task);
}

void vv_pool_each_deep(struct vv_pool *p, unsigned threads, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
	struct vv_pool *deep = NULL;

	if (threads > n)
		threads = (unsigned)n;
	if (threads <= vv_pool_width(p) || vv_pool_new(threads - 1, &deep) < 0)
		vv_err_clear();
	vv_pool_each(deep ? deep : p, n, fn, arg);
	vv_pool_free(deep);
}

unsigned vv_pool_width(const struct vv_pool *p)
{
	return p->n + 1;
}

static void each_on(void *pool, size_t n, void (*turn)(void *arg, size_t i), void *arg)
{
	vv_pool_each(pool, n, turn, arg);
}

struct vv_parallel_for vv_pool_loop(struct vv_pool *p)
{
	return (struct vv_parallel_for){ p && p->n ? each_on : NULL, p, p ? vv_pool_width(p) : 1 };
}

unsigned vv_pool_cores(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return n > 0 ? (unsigned)n : 1;
}
