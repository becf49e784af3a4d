/* Small objects that stay, of which each step replaces some, and scratch memory of 8 to 10.4 MB, of another size in each step. All scratch is freed before the call.
 * The first argument is the last step of this life, the second how many threads each step starts and joins; these need scratch memory, too.
 * At its end: the step, a sum, and the most memory it had. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve_here.h>

enum { STRINGS = 500, ARRAYS = 50, AT_ONCE = 300, MOST = 16, LG_MOST = 16 };

static struct state {
	long step;
	uint64_t sum;
	size_t length[STRINGS];
	uint8_t *string[STRINGS];
	uint8_t *array[ARRAYS];
} *st;

static void *need(void *p, int byte, size_t n)
{
	if (!p)
		exit(3);
	return memset(p, byte, n);
}

static void *use_scratch(void *arg)
{
	unsigned random = (unsigned)st->step * MOST + (unsigned)(intptr_t)arg;
	void *scratch[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++) {
		size_t most = (size_t)1 << rand_r(&random) % (LG_MOST + 1), n = 1 + (size_t)rand_r(&random) % most;

		scratch[i] = need(malloc(n), i, n);
	}
	for (int i = 0; i < AT_ONCE; i++)
		free(scratch[i]);
	return NULL;
}

static void run_threads(int n)
{
	pthread_t thread[MOST];

	for (int i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, use_scratch, (void *)(intptr_t)i) != 0)
			exit(3);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

static void use_large_scratch(void)
{
	size_t n = 8000000 + (size_t)(st->step % 7) * 400000;
	uint8_t *scratch = need(malloc(n), (int)st->step, n);

	st->sum = st->sum * 31 + scratch[n / 2];
	free(scratch);
}

static void replace_some(void)
{
	long i = st->step % STRINGS, j = st->step % ARRAYS;
	size_t n = 32000 + (size_t)(st->step * 37 % 2000) * 8;

	st->sum = st->sum * 31 + st->string[i][0] + st->string[i][st->length[i] - 1] + st->array[j][1000];
	st->length[i] += 40;
	st->string[i] = need(realloc(st->string[i], st->length[i]), (int)i, st->length[i]);
	free(st->array[j]);
	st->array[j] = need(malloc(n), (int)st->sum, n);
}

static void start(void)
{
	st = need(malloc(sizeof(*st)), 0, sizeof(*st));
	for (size_t i = 0; i < STRINGS; i++)
		st->string[i] = need(malloc(i + 1), 1, st->length[i] = i + 1);
	for (int i = 0; i < ARRAYS; i++)
		st->array[i] = need(malloc(40000), i, 40000);
}

static void report(void)
{
	char line[200];
	FILE *f = fopen("/proc/self/status", "r");

	printf("%ld %llx\n", st->step, (unsigned long long)st->sum);
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			fputs(line, stdout);
}

int main(int argc, char **argv)
{
	long last = atol(argv[1]);
	int threads = argc > 2 ? atoi(argv[2]) : 0;

	if (threads > MOST)
		return 2;
	start();
	varve_root_here(st);
	if (varve_checkpoint_here() < 0)
		return 4;
	while (st->step < last) {
		run_threads(threads);
		use_large_scratch();
		replace_some();
		st->step++;
		if (varve_checkpoint_here() < 0)
			return 4;
	}
	report();
	return 0;
}
