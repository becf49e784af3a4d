/* The same with eight threads, which allocate from the beginning: each has its own objects, and gives some of them to the next one to free. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { THREADS = 8, SLOTS = 400, PER_STEP = 100 };

struct object {
	uint32_t n, tag;
	uint8_t byte[];
};

struct worker {
	uint64_t random, sum;
	struct object *mine[SLOTS], *given[SLOTS];
};

static struct state {
	long step;
	struct worker *worker[THREADS];
} *st;

/* These are not state: threads wait in them when the state is put back. */
static pthread_barrier_t begin, end;
static long steps;
static int over;

static uint64_t draw(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	return w->random ^= w->random << 17;
}

static struct object *make(struct worker *w)
{
	uint32_t n = (uint32_t)(draw(w) % 50 ? draw(w) % 600 : draw(w) % 60000);
	struct object *o = malloc(sizeof(*o) + n);

	if (!o)
		exit(3);
	o->n = n;
	o->tag = (uint32_t)draw(w);
	for (uint32_t i = 0; i < n; i++)
		o->byte[i] = (uint8_t)(o->tag + i);
	return o;
}

static void drop(struct worker *w, struct object **at)
{
	struct object *o = *at;

	if (!o)
		return;
	for (uint32_t i = 0; i < o->n; i++)
		if (o->byte[i] != (uint8_t)(o->tag + i)) {
			fprintf(stderr, "step %ld: another content at %p\n", st->step, (void *)o);
			exit(3);
		}
	w->sum = w->sum * 31 + o->tag;
	free(o);
	*at = NULL;
}

static void work(int me)
{
	struct worker *w = st->worker[me];

	for (int i = 0; i < SLOTS; i++)
		drop(w, &w->given[i]);
	for (int i = 0; i < PER_STEP; i++) {
		int s = (int)(draw(w) % SLOTS);

		drop(w, &w->mine[s]);
		w->mine[s] = make(w);
	}
}

static void give(void)
{
	for (int t = 0; t < THREADS; t++)
		for (int i = 0; i < SLOTS; i += 9) {
			st->worker[(t + 1) % THREADS]->given[i] = st->worker[t]->mine[i];
			st->worker[t]->mine[i] = NULL;
		}
}

static void *live(void *arg)
{
	int me = (int)(intptr_t)arg;
	struct worker *w = calloc(1, sizeof(*w));

	w->random = 88172645463325252u + (uint64_t)me;
	st->worker[me] = w;
	for (int i = 0; i < SLOTS; i++)
		w->mine[i] = make(w);
	pthread_barrier_wait(&end);
	for (;;) {
		pthread_barrier_wait(&begin);
		if (over)
			return NULL;
		work(me);
		pthread_barrier_wait(&end);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	uint64_t sum = 0;
	useconds_t nap = argc > 2 ? (useconds_t)atol(argv[2]) : 0;

	steps = argc > 1 ? atol(argv[1]) : 50;
	st = calloc(1, sizeof(*st));
	pthread_barrier_init(&begin, NULL, THREADS + 1);
	pthread_barrier_init(&end, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, live, (void *)(intptr_t)i) != 0)
			return 3;
	pthread_barrier_wait(&end);
	while (st->step < steps) {
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
		give();
		st->step++;
		if (varve_checkpoint_here() < 0)
			return 4;
		usleep(nap);
	}
	over = 1;
	pthread_barrier_wait(&begin);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		sum = sum * 1000003 + st->worker[i]->sum;
	}
	printf("%ld %llx\n", st->step, (unsigned long long)sum);
	return 0;
}
