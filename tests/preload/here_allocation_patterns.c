/* Programs that do what is unusual, for test_here.py: here_allocation_patterns MODE STEPS [NAP_US]
 *
 *	storm   threads allocate without rest, also during checkpoints, and the program forks at every step
 *	tail    a thread's function leaves the last word to malloc
 *	local   the state hangs on a variable of main alone, and everything is in one source file
 *	shed    has many objects at its first step, and gives them up one by one during checkpoints, once it has come back
 *	sparse  a GiB of which little is written; prints its resident memory in MiB when it has just come back */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { THREADS = 4 };

enum { MANY = 3000, LARGE = 1 << 16 };

struct state {
	long step, sum;
	char *buffer;
	char *text[100];
	char *object[MANY];
};

static volatile int go, stop;

static void *storm(void *arg)
{
	unsigned r = (unsigned)(size_t)arg + 1;
	char *p[256] = { 0 };

	while (!go)
		usleep(100);
	while (!stop) {
		size_t n = 1 + (r = r * 1664525 + 1013904223, r >> 8) % 20000;
		int i = (int)(r >> 10) % 256;

		free(p[i]);
		p[i] = malloc(n);
		memset(p[i], i, n);
		if (!(r & 0x3f00))
			usleep(100);
	}
	return NULL;
}

static void *duplicate(void *arg)
{
	return strdup(arg);
}

static void *reserve(void *arg)
{
	return malloc((size_t)arg);
}

static char *by_thread(void *(*fn)(void *), void *arg)
{
	void *result = NULL;
	pthread_t t;

	if (pthread_create(&t, NULL, fn, arg) == 0)
		pthread_join(t, &result);
	return result;
}

static void tail_step(struct state *s)
{
	char text[32], *copy;
	int i = (int)(s->step % 100);

	snprintf(text, sizeof(text), "step %ld", s->step);
	free(s->text[i]);
	s->text[i] = by_thread(duplicate, text);
	copy = by_thread(reserve, (void *)(size_t)100);
	strcpy(copy, s->text[(i * 7) % (i + 1)]);
	s->sum = s->sum * 31 + (long)strlen(copy) + copy[5];
	free(copy);
}

static void *shed(void *arg)
{
	struct state *s = arg;

	for (int i = 0; i < MANY; i++) {
		free(s->object[i]);
		s->object[i] = NULL;
		usleep(100);
	}
	return NULL;
}

/* What is new at a step is written to as long as there is any. */
static void shed_step(struct state *s, int back)
{
	static pthread_t thread;

	if (back)
		pthread_create(&thread, NULL, shed, s);
	for (int i = 0; s->step == 0 && i < MANY; i++)
		s->object[i] = memset(malloc(LARGE), i, LARGE);
}

static long resident(void)
{
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmRSS: %ld", &kib);
	fclose(f);
	return kib / 1024;
}

int main(int argc, char **argv)
{
	struct state *s = calloc(1, sizeof(*s));
	pthread_t thread[THREADS];
	const char *mode = argv[1];
	long steps = atol(argv[2]);
	int back;
	useconds_t nap = argc > 3 ? (useconds_t)atol(argv[3]) : 0;

	varve_root_here(s);
	s->buffer = calloc(1, strcmp(mode, "sparse") == 0 ? (size_t)1 << 30 : 1 << 20);
	for (long i = 0; strcmp(mode, "storm") == 0 && i < THREADS; i++)
		pthread_create(&thread[i], NULL, storm, (void *)i);
	for (; s->step < steps; s->step++) {
		if (strcmp(mode, "tail") == 0)
			tail_step(s);
		s->buffer[s->step * 4099 % (1 << 20)]++;
		s->sum += s->buffer[s->step * 31 % (1 << 20)] + s->step;
		if (strcmp(mode, "storm") == 0) {
			pid_t pid = fork();

			if (pid == 0)
				_exit(0);
			waitpid(pid, NULL, 0);
		}
		back = varve_checkpoint_here() == 1;
		if (back && strcmp(mode, "sparse") == 0)
			printf("%ld MiB\n", resident());
		if (strcmp(mode, "shed") == 0)
			shed_step(s, back);
		go = 1;
		usleep(nap);
	}
	stop = 1;
	for (long i = 0; strcmp(mode, "storm") == 0 && i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("%ld %ld\n", s->step, s->sum);
	return argc < 3;
}
