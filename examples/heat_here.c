/* Heat in a plate, of which a part glows: an MPI program that declares nothing to varve, and is not linked with it. The one line is in the loop.
 *
 *	mpirun -n 4 varve run -- ./heat_here --steps 2000        or   varve run -n 4 -- ./heat_here --steps 2000
 *
 * Its state is what it has allocated; the step is a part of that. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve_here.h>

struct plate {
	long step;
	int width, height, rank, size;
	double *now, *next; /* a strip of the plate, with a row of each neighbour's */
	double *material;   /* does not change */
};

static double *make_grid(const struct plate *p)
{
	double *g = calloc((size_t)p->width * (size_t)(p->height + 2), sizeof(*g));

	if (!g)
		MPI_Abort(MPI_COMM_WORLD, 1);
	return g;
}

static struct plate *make_plate(int width, int height)
{
	struct plate *p = calloc(1, sizeof(*p));

	if (!p)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &p->size);
	p->width = width;
	p->height = height / p->size;
	p->now = make_grid(p);
	p->next = make_grid(p);
	p->material = make_grid(p);
	for (int y = 1; y <= p->height; y++)
		for (int x = 0; x < width; x++)
			p->material[y * width + x] = 0.15 + 0.1 * ((x / 16 + y / 16) % 2);
	return p;
}

static void exchange(struct plate *p)
{
	int above = p->rank ? p->rank - 1 : MPI_PROC_NULL, below = p->rank + 1 < p->size ? p->rank + 1 : MPI_PROC_NULL;
	double *row = p->now;
	int w = p->width, last = p->height;

	MPI_Sendrecv(row + w, w, MPI_DOUBLE, above, 0, row + (last + 1) * w, w, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(row + last * w, w, MPI_DOUBLE, below, 1, row, w, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The warm front moves outwards from the middle: what it has not reached stays as it is. */
static void advance(struct plate *p)
{
	int w = p->width;
	double *swap;

	if (p->rank == p->size / 2)
		p->now[(p->height / 2 + 1) * w + w / 2] = 100;
	exchange(p);
	for (int y = 1; y <= p->height; y++)
		for (int x = 1; x + 1 < w; x++) {
			const double *c = &p->now[y * w + x];

			p->next[y * w + x] = *c + p->material[y * w + x] * (c[-1] + c[1] + c[-w] + c[w] - 4 * *c);
		}
	swap = p->now;
	p->now = p->next;
	p->next = swap;
}

static double total(const struct plate *p)
{
	double mine = 0, all = 0;

	for (int y = 1; y <= p->height; y++)
		for (int x = 0; x < p->width; x++)
			mine += p->now[y * p->width + x];
	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

static long option(int argc, char **argv, const char *name, long value)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], name) == 0)
			value = atol(argv[i + 1]);
	return value;
}

int main(int argc, char **argv)
{
	long steps = option(argc, argv, "--steps", 200), every = option(argc, argv, "--every", 10);
	int n = (int)option(argc, argv, "--n", 512), level;
	struct plate *p;
	double begin, sum;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	begin = MPI_Wtime();
	p = make_plate(n, n);
	varve_root_here(p);
	while (p->step < steps) {
		advance(p);
		p->step++;
		if (p->step % every == 0)
			varve_checkpoint_here();
	}
	sum = total(p);
	if (p->rank == 0)
		printf("%ld steps, heat %.12g, %.3f s\n", p->step, sum, MPI_Wtime() - begin);
	MPI_Finalize();
	return 0;
}
