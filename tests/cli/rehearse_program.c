/* Weights on springs, for `varve run --rehearse`. Without -D it is sound. FORGETS: velocities are in no region; HEAP: they are on the heap; FIRST: a checkpoint
 * comes before the step; CLOCK: a region has the time in it, and with CLOCK=2 no other; NEVER: it does not restart; LARGER: a region is larger when
 * it is started again; HERE: it declares nothing; GROWS: it allocates in each step. With MPI, rank 0 is sound. Its argument: how many steps. */
#ifdef MPI
#include <varve/varve_mpi.h>
#else
#include <varve/varve.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <varve/varve_here.h>

enum { N = 1000 };

struct state {
	long step;
	double position[N];
	char *note;
};

static double variable[N];
static double now;
static double *velocity = variable;
static int forgets;

static void advance(struct state *s)
{
	struct timespec t;

	for (int i = 1; i < N; i++) {
		velocity[i] -= 0.01 * s->position[i];
		s->position[i] += 0.01 * velocity[i];
	}
	s->step++;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now += (double)t.tv_nsec;
#ifdef GROWS
	s->note = realloc(s->note, (size_t)(s->step * 1000));
#endif
}

#ifdef HERE
static int run(struct state *s, long steps)
{
	varve_root_here(s);
	while (s->step < steps) {
		advance(s);
		varve_checkpoint_here();
	}
	return 0;
}
#else
static int open_session(varve **v)
{
#ifdef MPI
	return varve_open_mpi(MPI_COMM_WORLD, "own-store", "springs", "keep=1 interval=1h", v);
#else
	return varve_open("own-store", "springs", "keep=1 interval=1h", v);
#endif
}

static int declare(varve *v, struct state *s)
{
	const size_t shape[] = { N };
	size_t len = sizeof(s->step);
	int rc = 0;

#ifdef LARGER
	len = access("again", F_OK) == 0 ? sizeof(s->step) + 8 : len;
	fclose(fopen("again", "w"));
#endif
#if CLOCK != 2
	rc = varve_protect(v, "step", &s->step, len);
	if (rc == 0)
		rc = varve_protect_array(v, "position", s->position, VARVE_F64, 1, shape);
	if (rc == 0 && !forgets)
		rc = varve_protect_array(v, "velocity", velocity, VARVE_F64, 1, shape);
#endif
#if CLOCK
	rc = rc ? rc : varve_protect(v, "now", &now, sizeof(now));
#endif
	return rc;
}

static int run(struct state *s, long steps)
{
	varve *v = NULL;
	int rc = open_session(&v);

	if (rc == 0)
		rc = declare(v, s);
#ifndef NEVER
	if (rc == 0)
		rc = varve_restart(v, VARVE_LATEST);
#endif
	if (rc < 0)
		return printf("%s; step is %lx\n", varve_last_error(), s->step), 1;
	while (s->step < steps) {
#ifdef FIRST
		if (varve_due(v) > 0 && varve_checkpoint(v) < 0)
			return 1;
		advance(s);
#else
		advance(s);
		if (varve_due(v) > 0 && varve_checkpoint(v) < 0)
			return 1;
#endif
	}
	return varve_close(v) < 0;
}
#endif

int main(int argc, char **argv)
{
	struct state *s;
	int rc;

#ifdef FORGETS
	forgets = 1;
#endif
#ifdef MPI
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	forgets &= rank;
#endif
	s = calloc(1, sizeof(*s));
#ifdef HEAP
	velocity = calloc(N, sizeof(*velocity));
#endif
	if (!s || !velocity)
		return 1;
	for (int i = 0; i < N; i++)
		s->position[i] = i;
	rc = run(s, argc > 1 ? atol(argv[1]) : 100);
#ifdef MPI
	MPI_Finalize();
#endif
	return rc;
}
