/* Handlers of signals that come in the midst of a call: one that writes the heap, all the time, and one that ends the program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { PAGE = 4096, PAGES = 4096, EVERY_NS = 400000 };

struct state {
	long step, sum;
	unsigned at;
	unsigned char *written, memory[PAGES * PAGE];
};

static struct state *s;

static void write_some(int sig)
{
	(void)sig;
	for (int i = 0; i < 4; i++)
		s->written[(s->at = s->at * 1664525u + 1013904223u) % (PAGES * PAGE)]++;
}

static void end(int sig)
{
	(void)sig;
	write_some(0);
	exit(3);
}

int main(int argc, char **argv)
{
	struct itimerspec every = { { 0, EVERY_NS }, { 0, EVERY_NS } };
	long steps = argc > 1 ? atol(argv[1]) : 10;
	timer_t timer;

	s = calloc(1, sizeof(*s));
	if (!s || !(s->written = calloc(PAGES, PAGE)))
		return 1;
	signal(SIGUSR2, write_some);
	signal(SIGTERM, end);
	if (timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 }, &timer) < 0 ||
	    timer_settime(timer, 0, &every, NULL) < 0)
		return 1;
	for (; s->step < steps; s->step++) {
		for (long i = 0; i < PAGES; i += 1 + s->step % 3)
			s->memory[i * PAGE + s->step % PAGE] = (unsigned char)(s->sum += i);
		if (varve_checkpoint_here() < 0)
			return 4;
	}
	printf("%ld steps, %ld\n", s->step, s->sum);
	return 0;
}
