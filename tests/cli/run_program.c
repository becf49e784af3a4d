/* A program with one line of varve in it, for `varve run`: run_program STEPS MILLISECONDS [STEP=[TIMES:]END...]
 * It computes a number that comes out right only if each step was made once and in order, and prints it. At a step with an END it ends, always or so many times: by
 * a signal of that number, or, if it is negative, with that status. Step 0 is before its first call. "deaf": SIGTERM is ignored. "stays": it does not end before there is a file "go".
 * With -DMPI every rank does so, and rank 0 ends. Each step is told in the file "steps". */
#ifdef MPI
#include <mpi.h>
#endif
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void varve_checkpoint_here(void) __attribute__((weak));

#ifndef NOISE
#define NOISE (1 << 14)
#endif

struct state {
	uint64_t step, sum, noise[NOISE];
};

struct state *run_state; /* the stand-in for the library that captures memory looks for it by this name */
size_t run_state_len = sizeof(struct state);
static int rank;

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void advance(struct state *s)
{
	s->step++;
	s->sum = mix(s->sum + s->step + (uint64_t)rank);
	s->noise[s->sum % NOISE] = s->sum;
}

static void tell(uint64_t step)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%d %llu\n", rank, (unsigned long long)step), fd = open("steps", O_WRONLY | O_CREAT | O_APPEND, 0644);

	if (fd < 0 || write(fd, line, (size_t)n) != n)
		exit(9);
	close(fd);
}

/* The first so many times somebody asks; marks are files. */
static int is_among(uint64_t step, long times)
{
	for (long i = 0; i < times; i++) {
		char mark[64];
		int fd;

		snprintf(mark, sizeof(mark), "ended-%llu-%ld", (unsigned long long)step, i);
		fd = open(mark, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd >= 0) {
			close(fd);
			return 1;
		}
	}
	return 0;
}

static void end_if(const char *word, uint64_t step)
{
	char *end;
	uint64_t at = strtoull(word, &end, 10);
	long what;

	if (at != step || *end != '=' || rank)
		return;
	what = strtol(end + 1, &end, 10);
	if (*end == ':') {
		if (!is_among(step, what))
			return;
		what = strtol(end + 1, &end, 10);
	}
	if (what < 0)
		_exit((int)-what);
	signal((int)what, SIG_DFL);
	raise((int)what);
}

static void rest(const char *milliseconds)
{
	usleep((useconds_t)atoi(milliseconds) * 1000);
	if (varve_checkpoint_here)
		varve_checkpoint_here();
}

int main(int argc, char **argv)
{
	int stays = 0;
	uint64_t steps = argc > 2 ? strtoull(argv[1], NULL, 10) : 0, right = 0;

#ifdef MPI
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "deaf") == 0)
			signal(SIGTERM, SIG_IGN);
		stays |= strcmp(argv[i], "stays") == 0;
	}
	run_state = calloc(1, sizeof(*run_state));
	if (!run_state)
		return 9;
	for (int i = 3; i < argc; i++)
		end_if(argv[i], 0);
	if (varve_checkpoint_here)
		varve_checkpoint_here(); /* goes on where it was */
	while (run_state->step < steps) {
		advance(run_state);
		tell(run_state->step);
		for (int i = 3; i < argc; i++)
			end_if(argv[i], run_state->step);
		rest(argv[2]);
	}
	while (stays && access("go", F_OK) != 0)
		rest(argv[2]);
	for (uint64_t s = 1; s <= steps; s++)
		right = mix(right + s + (uint64_t)rank);
#ifdef MPI
	MPI_Finalize();
#endif
	printf("%s after %llu steps\n", run_state->sum == right ? "right" : "wrong", (unsigned long long)steps);
	return 0;
}
