/* Threads that keep small objects, of which they replace some in each step, and an array; and that need scratch memory of all sizes, from 16 bytes to 1 MiB, many
 * threads to 4 KiB.
 * The first argument is the last step of this life, the second how many threads there are. At its end: the step, a sum, and the most memory it had. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve_here.h>

enum { MOST = 24, SLOTS = 1000, LG_FIRST = 4, LG_LAST = 20, LG_LAST_OF_MANY = 12, AT_ONCE = 8 };

struct worker {
	uint64_t random, sum;
	size_t n_array;
	uint8_t *array;
	uint8_t *slot[SLOTS];
};

static struct state {
	long step;
	struct worker *worker[MOST];
} *st;

static pthread_barrier_t begin, end; /* no state: threads wait in them when it is put back */
static int threads, over;

static uint64_t draw(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	return w->random ^= w->random << 17;
}

static void *need(void *p, uint8_t byte, size_t n)
{
	if (!p)
		exit(3);
	memset(p, byte, n);
	return p;
}

/* Any number of bytes, as often few as many. */
static size_t size(struct worker *w)
{
	unsigned last = threads > 8 ? LG_LAST_OF_MANY : LG_LAST;
	size_t most = (size_t)1 << (LG_FIRST + draw(w) % (last - LG_FIRST + 1));

	return most / 2 + draw(w) % (most / 2 + 1);
}

static void replace_some(struct worker *w)
{
	for (int i = 0; i < SLOTS / 5; i++) {
		uint8_t **s = &w->slot[draw(w) % SLOTS];
		size_t n = 1 + draw(w) % 300;

		w->sum = w->sum * 31 + (*s ? **s : 0);
		free(*s);
		*s = need(malloc(n), (uint8_t)n, n);
	}
}

static void use_scratch(struct worker *w)
{
	uint8_t *scratch[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++) {
		size_t n = size(w), more;

		scratch[i] = need(i % 4 ? malloc(n) : aligned_alloc(64, (n + 63) & ~(size_t)63), (uint8_t)n, n);
		if (i % 5)
			continue;
		more = size(w);
		scratch[i] = need(realloc(scratch[i], more), (uint8_t)more, more);
	}
	for (int i = 0; i < AT_ONCE; i++) {
		w->sum = w->sum * 31 + scratch[i][0];
		free(scratch[i]);
	}
}

static void work(struct worker *w)
{
	replace_some(w);
	use_scratch(w);
	if (st->step % 8 == 0) { /* it moves */
		free(w->array);
		w->n_array = 30000 + draw(w) % 20000;
		w->array = need(calloc(w->n_array, 1), (uint8_t)w->sum, w->n_array);
	}
	w->sum = w->sum * 31 + w->array[draw(w) % w->n_array];
}

static void *live(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&begin);
		if (over)
			return NULL;
		work(st->worker[(intptr_t)arg]);
		pthread_barrier_wait(&end);
	}
}

static void start(pthread_t *thread)
{
	pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	for (int i = 0; i <= threads; i++) {
		st->worker[i] = calloc(1, sizeof(*st->worker[i]));
		st->worker[i]->random = 88172645463325252u + (uint64_t)i;
		if (i < threads && pthread_create(&thread[i], NULL, live, (void *)(intptr_t)i) != 0)
			exit(3);
	}
}

static void report(void)
{
	char line[200];
	uint64_t sum = 0;
	FILE *f = fopen("/proc/self/status", "r");

	for (int i = 0; i <= threads; i++)
		sum = sum * 1000003 + st->worker[i]->sum;
	printf("%ld %llx\n", st->step, (unsigned long long)sum);
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			fputs(line, stdout);
}

int main(int argc, char **argv)
{
	pthread_t thread[MOST];
	long last = atol(argv[1]);

	threads = argc > 2 ? atoi(argv[2]) : 0;
	st = calloc(1, sizeof(*st));
	start(thread);
	while (st->step < last) {
		pthread_barrier_wait(&begin);
		work(st->worker[threads]);
		pthread_barrier_wait(&end);
		st->step++;
		if (varve_checkpoint_here() < 0)
			return 4;
	}
	over = 1;
	pthread_barrier_wait(&begin);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	report();
	return 0;
}
