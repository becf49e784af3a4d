/* The pool: every task runs once, waits may nest, a pool without threads works too. Meant to be run under TSan as well. */
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "support/refuse.h"
#include "vv_test.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned widths[] = { 0, 1, 2, 5 };
enum { N_WIDTHS = sizeof(widths) / sizeof(widths[0]) };

static struct vv_pool *make(unsigned threads)
{
	struct vv_pool *p = NULL;

	CHECK_EQ(vv_pool_new(threads, &p), 0);
	CHECK_EQ(vv_pool_width(p), threads + 1);
	return p;
}

struct count_task {
	struct vv_task task;
	int runs; /* not atomic: the pool's lock must order it */
};

static void count(struct vv_task *t)
{
	((struct count_task *)t)->runs++;
}

static void check_many(unsigned threads, int backwards)
{
	enum { MANY = 3000 };
	static struct count_task t[MANY];
	struct vv_pool *p = make(threads);

	memset(t, 0, sizeof(t));
	for (int i = 0; i < MANY; i++) {
		t[i].task.run = count;
		vv_pool_submit(p, &t[i].task);
	}
	for (int i = 0; i < MANY; i++) {
		int k = backwards ? MANY - 1 - i : i;

		vv_pool_wait(p, &t[k].task);
		CHECK_EQ(t[k].runs, 1);
	}
	vv_pool_free(p);
}

/* A task can be submitted again once it was waited for; waiting twice is harmless. */
static void check_reuse(unsigned threads)
{
	struct vv_pool *p = make(threads);
	struct count_task t = { .task.run = count };

	for (int i = 1; i <= 500; i++) {
		vv_pool_submit(p, &t.task);
		vv_pool_wait(p, &t.task);
		vv_pool_wait(p, &t.task);
		CHECK_EQ(t.runs, i);
	}
	vv_pool_free(p);
}

/* A tree: each task submits two, waits for them, and adds up. */
struct tree_task {
	struct vv_task task;
	struct vv_pool *pool;
	int depth;
	long leaves;
};

static void grow_tree(struct vv_task *t)
{
	struct tree_task *me = (struct tree_task *)t, child[2];

	if (me->depth == 0) {
		me->leaves = 1;
		return;
	}
	for (int i = 0; i < 2; i++) {
		child[i] = (struct tree_task){ .task.run = grow_tree, .pool = me->pool, .depth = me->depth - 1 };
		vv_pool_submit(me->pool, &child[i].task);
	}
	vv_pool_wait(me->pool, &child[0].task);
	vv_pool_wait(me->pool, &child[1].task);
	me->leaves = child[0].leaves + child[1].leaves;
}

static void check_tree(unsigned threads)
{
	struct vv_pool *p = make(threads);
	struct tree_task root = { .task.run = grow_tree, .pool = p, .depth = 9 };

	vv_pool_submit(p, &root.task);
	vv_pool_wait(p, &root.task);
	CHECK_EQ(root.leaves, 512);
	vv_pool_free(p);
}

static void mark(void *arg, size_t i)
{
	((unsigned char *)arg)[i]++;
}

/* One byte before and one after must stay as they were. */
static void check_each(unsigned threads)
{
	struct vv_pool *p = make(threads);

	for (size_t n = 0; n <= 200; n++) {
		unsigned char seen[202] = { 0 };

		vv_pool_each(p, n, mark, seen + 1);
		for (size_t i = 0; i < sizeof(seen); i++)
			CHECK_EQ(seen[i], i >= 1 && i <= n);
	}
	vv_pool_free(p);
}

struct nest {
	struct vv_pool *pool;
	unsigned char cell[20][20];
};

static void inner(void *arg, size_t i)
{
	((unsigned char *)arg)[i]++;
}

static void outer(void *arg, size_t i)
{
	struct nest *n = arg;

	vv_pool_each(n->pool, 20, inner, n->cell[i]);
}

static void check_nested_each(unsigned threads)
{
	struct nest n = { .pool = make(threads) };

	for (int round = 1; round <= 20; round++) {
		vv_pool_each(n.pool, 20, outer, &n);
		for (size_t i = 0; i < 400; i++)
			CHECK_EQ(n.cell[i / 20][i % 20], round);
	}
	vv_pool_free(n.pool);
}

/* More threads than vv_pool_each has helpers for, and several callers at once. */
static void *call_each(void *arg)
{
	struct vv_pool *p = arg;

	for (int round = 0; round < 30; round++) {
		unsigned char seen[150] = { 0 };

		vv_pool_each(p, sizeof(seen), mark, seen);
		for (size_t i = 0; i < sizeof(seen); i++)
			CHECK_EQ(seen[i], 1);
	}
	return NULL;
}

static void check_callers(unsigned threads)
{
	struct vv_pool *p = make(threads);
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, call_each, p) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	vv_pool_free(p);
}

struct crowd {
	pthread_barrier_t all;
	atomic_uint turns;
};

static void meet(void *arg, size_t i)
{
	struct crowd *c = arg;

	(void)i;
	atomic_fetch_add(&c->turns, 1);
	pthread_barrier_wait(&c->all);
}

/* As many turns at a time as were asked for, whatever the pool has; and never more threads than turns. */
static void check_deep(unsigned threads)
{
	enum { DEEP = 12, ROUNDS = 3 };
	struct vv_pool *p = make(threads);
	unsigned char seen[150] = { 0 };
	struct crowd c = { .turns = 0 };

	CHECK(pthread_barrier_init(&c.all, NULL, DEEP) == 0);
	vv_pool_each_deep(p, DEEP, DEEP * ROUNDS, meet, &c);
	CHECK_EQ(atomic_load(&c.turns), DEEP * ROUNDS);
	vv_pool_each_deep(p, 1000, DEEP, meet, &c);
	CHECK_EQ(atomic_load(&c.turns), DEEP * (ROUNDS + 1));
	pthread_barrier_destroy(&c.all);
	vv_pool_each_deep(p, DEEP, 0, mark, seen);
	CHECK_EQ(seen[0], 0);
	vv_pool_each_deep(p, 0, sizeof(seen), mark, seen);
	for (size_t i = 0; i < sizeof(seen); i++)
		CHECK_EQ(seen[i], 1);
	vv_pool_free(p);
}

static void look_at_signals(struct vv_task *t)
{
	sigset_t set;

	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &set) == 0);
	((struct count_task *)t)->runs = sigismember(&set, SIGUSR1) && sigismember(&set, SIGTERM) ? 2 : 1;
}

/* The caller's signal mask is unchanged, the helpers take none. The helper alone can run the task: nobody waits. */
static void test_signals(void)
{
	struct vv_pool *p = make(1);
	struct count_task t = { .task.run = look_at_signals };
	sigset_t set;

	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &set) == 0);
	CHECK(!sigismember(&set, SIGUSR1));
	vv_pool_submit(p, &t.task);
	vv_pool_free(p);
	CHECK_EQ(t.runs, 2);
}

/* Freeing runs what is still queued. */
static void test_free_runs_the_rest(void)
{
	struct vv_pool *p = make(2);
	struct count_task t[100];

	for (int i = 0; i < 100; i++) {
		t[i] = (struct count_task){ .task.run = count };
		vv_pool_submit(p, &t[i].task);
	}
	vv_pool_free(p);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(t[i].runs, 1);
	vv_pool_free(NULL);
}

static void test_no_memory(void)
{
	struct vv_pool *p = NULL;

	vv_mem_fail_at(1);
	CHECK_EQ(vv_pool_new(2, &p), VV_ENOMEM);
	vv_mem_fail_at(0);
	CHECK(p == NULL);
}

/* Where no thread can be started, whoever waits does the work. */
static void test_no_threads(void)
{
	struct vv_pool *p = NULL;
	struct count_task t = { .task.run = count };
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		if (!refuse_threads())
			_exit(0);
		CHECK_EQ(vv_pool_new(3, &p), 0);
		CHECK_EQ(vv_pool_width(p), 1);
		vv_pool_submit(p, &t.task);
		vv_pool_wait(p, &t.task);
		CHECK_EQ(t.runs, 1);
		vv_pool_free(p);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

struct left_task {
	struct vv_task task;
	atomic_int *runs;
};

static void count_and_free(struct vv_task *t)
{
	atomic_fetch_add(((struct left_task *)t)->runs, 1);
	free(t);
}

static void nothing(void *arg, size_t i)
{
	(void)arg;
	(void)i;
}

/* Tasks that nobody waits for free themselves, between others that are waited for; all have been run when the pool ends. */
static void check_left(unsigned threads)
{
	enum { MANY = 500 };
	struct vv_pool *p = make(threads);
	atomic_int runs = 0;

	for (int i = 0; i < MANY; i++) {
		struct left_task *t = calloc(1, sizeof(*t));

		CHECK(t);
		*t = (struct left_task){ .task.run = count_and_free, .runs = &runs };
		vv_pool_leave(p, &t->task);
		if (i % 3 == 0)
			vv_pool_each(p, 4, nothing, NULL);
		if (threads == 0)
			CHECK_EQ(runs, i + 1);
	}
	vv_pool_free(p);
	CHECK_EQ(runs, MANY);
}

struct steps { /* left once more by its own run, until it has come to its end */
	struct vv_task task;
	struct vv_pool *pool;
	int steps; /* not atomic: the pool's lock must order it */
};

static void do_step(struct vv_task *t)
{
	struct steps *s = (struct steps *)t;

	if (++s->steps < 5)
		vv_pool_leave(s->pool, t);
}

struct gate {
	struct vv_task task;
	atomic_bool open, entered;
};

static void wait_at_gate(struct vv_task *t)
{
	struct gate *g = (struct gate *)t;

	atomic_store(&g->entered, true);
	while (!atomic_load(&g->open))
		usleep(100);
}

/* Whoever waits does nothing that nobody waits for, and all else goes before it. */
static void test_left_come_last(void)
{
	struct vv_pool *p = make(1);
	struct gate gate = { .task.run = wait_at_gate };
	struct steps left = { .task.run = do_step, .pool = p };
	struct count_task t = { .task.run = count };

	vv_pool_submit(p, &gate.task);
	while (!atomic_load(&gate.entered))
		usleep(100);
	vv_pool_leave(p, &left.task);
	vv_pool_submit(p, &t.task);
	vv_pool_wait(p, &t.task); /* the thread is at the gate: the caller did it */
	CHECK_EQ(t.runs, 1);
	CHECK(!vv_pool_help(p));
	vv_pool_each(p, 10, nothing, NULL);
	CHECK_EQ(left.steps, 0);
	atomic_store(&gate.open, true);
	vv_pool_wait(p, &gate.task);
	vv_pool_free(p);
	CHECK_EQ(left.steps, 5);
}

/* The pool's thread is at the gate, so the caller runs the tasks in the pool's order. */
static void test_first_come_first(void)
{
	struct vv_pool *p = make(1);
	struct gate gate = { .task.run = wait_at_gate };
	struct count_task usual = { .task.run = count }, first[2] = { { .task.run = count }, { .task.run = count } };

	vv_pool_submit(p, &gate.task);
	while (!atomic_load(&gate.entered))
		usleep(100);
	vv_pool_submit(p, &usual.task);
	for (int i = 0; i < 2; i++)
		vv_pool_submit_first(p, &first[i].task);
	for (int i = 0; i < 2; i++) {
		CHECK(vv_pool_help(p));
		CHECK_EQ(first[i].runs, 1);
		CHECK_EQ(usual.runs, 0);
	}
	vv_pool_wait(p, &first[1].task);
	vv_pool_wait(p, &usual.task);
	CHECK_EQ(usual.runs, 1);
	vv_pool_submit_first(p, &first[0].task); /* freeing runs it, too */
	atomic_store(&gate.open, true);
	vv_pool_wait(p, &gate.task);
	vv_pool_free(p);
	CHECK_EQ(first[0].runs, 2);
}

int main(void)
{
	for (size_t i = 0; i < N_WIDTHS; i++) {
		check_many(widths[i], 0);
		check_many(widths[i], 1);
		check_reuse(widths[i]);
		check_tree(widths[i]);
		check_each(widths[i]);
		check_nested_each(widths[i]);
		check_callers(widths[i]);
		check_left(widths[i]);
		check_deep(widths[i]);
	}
	check_callers(80);
	test_signals();
	test_free_runs_the_rest();
	test_left_come_last();
	test_first_come_first();
	test_no_memory();
	test_no_threads();
	CHECK(vv_pool_cores() >= 1);
	return 0;
}
