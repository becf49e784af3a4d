/* Heat in a cube of n x n x n cells, on any number of ranks, and after a restart on any other number. Each rank has some planes of the
 * cube, with a ghost plane of its neighbour before and behind them. Kill any rank whenever you like and start the job again, with more
 * or fewer ranks: it goes on from its last checkpoint and ends with the same bits as a run that was never disturbed.
 *
 *	mpirun -n 8 build/examples/heat_elastic /scratch/ckpt 96 200 10
 *	mpirun -n 6 build/examples/heat_elastic /scratch/ckpt 96 200 10
 *
 * What varve needs to know is which part of the cube a rank has: varve_protect_slab in run(). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <varve/varve_mpi.h>

static const double cold = 20.0, hot = 90.0;

struct heat {
	size_t n;            /* cells along each side of the cube */
	size_t first, planes; /* of this rank; maybe none */
	int64_t step;
	double *T, *U;       /* planes of n x n cells, and a ghost plane before and behind them */
	int below, above;    /* ranks with the neighbouring planes */
	int rank, ranks;
};

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "heat_elastic: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

/* The first plane of a rank; that of rank `ranks` is n. */
static size_t first_plane(const struct heat *h, int rank)
{
	return h->n * (size_t)rank / (size_t)h->ranks;
}

/* The rank next to this one, in direction `by`, that has any planes. */
static int neighbour(const struct heat *h, int by)
{
	int r = h->rank + by;

	while (r >= 0 && r < h->ranks && first_plane(h, r) == first_plane(h, r + 1))
		r += by;
	return h->planes && r >= 0 && r < h->ranks ? r : MPI_PROC_NULL;
}

static void heat_init(struct heat *h)
{
	size_t n = h->n, plane = n * n;

	h->first = first_plane(h, h->rank);
	h->planes = first_plane(h, h->rank + 1) - h->first;
	h->below = neighbour(h, -1);
	h->above = neighbour(h, 1);
	h->T = malloc((h->planes + 2) * plane * sizeof(double));
	h->U = malloc((h->planes + 2) * plane * sizeof(double));
	if (!h->T || !h->U)
		die("out of memory");
	for (size_t i = 0; i < (h->planes + 2) * plane; i++)
		h->T[i] = h->U[i] = cold;
	for (size_t z = 0; z < h->planes; z++)
		for (size_t y = n / 4; y < n / 2; y++)
			for (size_t x = n / 4; x < n / 2; x++)
				if (h->first + z >= n / 4 && h->first + z < n / 2)
					h->T[(z + 1) * plane + y * n + x] = hot;
}

/* The neighbours' planes; outside of the cube it stays cold. */
static void exchange(const struct heat *h, double *f)
{
	int plane = (int)(h->n * h->n);
	double *first = f + plane, *last = f + h->planes * (size_t)plane;

	MPI_Sendrecv(first, plane, MPI_DOUBLE, h->below, 0, last + plane, plane, MPI_DOUBLE, h->above, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(last, plane, MPI_DOUBLE, h->above, 1, f, plane, MPI_DOUBLE, h->below, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Diffusion to the six neighbours. */
static void sweep(const struct heat *h, const double *from, double *to)
{
	size_t n = h->n, plane = n * n;

	for (size_t z = 1; z <= h->planes; z++)
		for (size_t y = 1; y + 1 < n; y++) {
			const double *t = from + z * plane + y * n;
			double *u = to + z * plane + y * n;

			for (size_t x = 1; x + 1 < n; x++)
				u[x] = t[x] + 0.1 * (t[x - 1] + t[x + 1] + t[x - n] + t[x + n] + t[x - plane] + t[x + plane] - 6.0 * t[x]);
		}
}

static void heat_step(struct heat *h)
{
	exchange(h, h->T);
	sweep(h, h->T, h->U);
	exchange(h, h->U);
	sweep(h, h->U, h->T);
	h->step++;
}

/* To the next step at which a checkpoint may be taken, or to the last step. */
static void advance(struct heat *h, long steps, long every)
{
	do
		heat_step(h);
	while (h->step % every && h->step < steps);
}

/* FNV-1a over the planes of all ranks, in their order: it does not depend on the number of ranks. */
static uint64_t checksum(const struct heat *h)
{
	const unsigned char *p = (const unsigned char *)(h->T + h->n * h->n);
	uint64_t sum = 0xcbf29ce484222325u;

	if (h->rank)
		MPI_Recv(&sum, 1, MPI_UINT64_T, h->rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (size_t i = 0; i < h->planes * h->n * h->n * sizeof(double); i++)
		sum = (sum ^ p[i]) * 0x100000001b3u;
	if (h->rank + 1 < h->ranks)
		MPI_Send(&sum, 1, MPI_UINT64_T, h->rank + 1, 2, MPI_COMM_WORLD);
	MPI_Bcast(&sum, 1, MPI_UINT64_T, h->ranks - 1, MPI_COMM_WORLD);
	return sum;
}

static void run(struct heat *h, const char *store, long steps, long every)
{
	size_t cube[3] = { h->n, h->n, h->n }, start[3] = { h->first, 0, 0 }, count[3] = { h->planes, h->n, h->n }, ghost[3] = { 1, 0, 0 };
	varve *v = NULL;
	int rc;

	if (varve_open_mpi(MPI_COMM_WORLD, store, "heat", NULL, &v) < 0 ||
	    varve_protect_shared(v, "step", &h->step, sizeof(h->step)) < 0 ||
	    varve_protect_slab(v, "T", h->T, VARVE_F64, 3, cube, start, count, ghost) < 0)
		die(varve_last_error());
	rc = varve_restart(v, VARVE_LATEST); /* whatever number of ranks wrote it */
	if (rc < 0)
		die(varve_last_error());
	if (rc && h->rank == 0)
		printf("%d ranks: restarted from epoch %" PRIu64 " at step %" PRId64 "\n", h->ranks, varve_epoch(v), h->step);
	while (h->step < steps) {
		advance(h, steps, every);
		if (varve_due(v) && varve_checkpoint(v) < 0)
			die(varve_last_error());
	}
	if (varve_close(v) < 0)
		die(varve_last_error());
}

int main(int argc, char **argv)
{
	struct heat h = { 0 };
	long n = argc == 5 ? atol(argv[2]) : 0, steps = argc == 5 ? atol(argv[3]) : 0, every = argc == 5 ? atol(argv[4]) : 0;
	uint64_t sum;
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &h.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &h.ranks);
	if (n < 4 || n > 4096 || steps < 0 || every < 1)
		die("usage: heat_elastic STORE N STEPS EVERY, with N from 4 to 4096");
	h.n = (size_t)n;
	heat_init(&h);
	run(&h, argv[1], steps, every);
	sum = checksum(&h);
	if (h.rank == 0)
		printf("%d ranks, step %" PRId64 ", checksum %016" PRIx64 "\n", h.ranks, h.step, sum);
	MPI_Finalize();
	return 0;
}
