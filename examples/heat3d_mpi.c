/* Heat in a bar, on any number of ranks: each has n x n x n cells of it, and what a cell gives away depends on its temperature, by a
 * table that is the same on all ranks. Kill any rank whenever you like and start the job again: it goes on from its last
 * checkpoint and ends with the same bits as a run that was never disturbed.
 *
 *	mpirun -n 4 build/examples/heat3d_mpi /scratch/ckpt 96 200 10
 *
 * What varve needs is in main: open, protect, restart; checkpoint when it is due; close. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <varve/varve_mpi.h>

enum { TABLE = 1 << 18 };
static const double cold = 20.0, hot = 90.0;

struct heat {
	size_t n;        /* cells along each side of a rank's part */
	int64_t step;
	double *T, *U;   /* n planes of n x n cells, and one before and behind them that belong to the neighbours */
	double *conduct; /* by temperature, `TABLE` values from cold to hot */
	int rank, ranks;
};

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "heat3d_mpi: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

static double *field(size_t cells)
{
	double *p = malloc(cells * sizeof(double));

	if (!p)
		die("out of memory");
	return p;
}

/* In each part a hot cube, hotter from rank to rank. */
static void heat_init(struct heat *h)
{
	size_t n = h->n, plane = n * n, lo = n / 4, hi = n / 2;

	h->T = field((n + 2) * plane);
	h->U = field((n + 2) * plane);
	h->conduct = field(TABLE);
	for (int i = 0; i < TABLE; i++)
		h->conduct[i] = 0.02 + 0.1 * i / (TABLE + i);
	for (size_t i = 0; i < (n + 2) * plane; i++)
		h->T[i] = h->U[i] = cold;
	for (size_t z = lo; z < hi; z++)
		for (size_t y = lo; y < hi; y++)
			for (size_t x = lo; x < hi; x++)
				h->T[(z + 1) * plane + y * n + x] = cold + (hot - cold) * (h->rank + 1) / h->ranks;
}

/* The neighbours' planes; at the ends of the bar there is nobody, and the plane stays cold. */
static void exchange(const struct heat *h, double *f)
{
	int plane = (int)(h->n * h->n);
	int below = h->rank ? h->rank - 1 : MPI_PROC_NULL, above = h->rank + 1 < h->ranks ? h->rank + 1 : MPI_PROC_NULL;
	double *first = f + plane, *last = f + h->n * (size_t)plane;

	MPI_Sendrecv(first, plane, MPI_DOUBLE, below, 0, last + plane, plane, MPI_DOUBLE, above, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Sendrecv(last, plane, MPI_DOUBLE, above, 1, f, plane, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Diffusion to the six neighbours. */
static void sweep(const struct heat *h, const double *from, double *to)
{
	size_t n = h->n, plane = n * n;

	for (size_t z = 1; z <= n; z++)
		for (size_t y = 1; y + 1 < n; y++) {
			const double *t = from + z * plane + y * n;
			double *u = to + z * plane + y * n;

			for (size_t x = 1; x + 1 < n; x++) {
				double around = t[x - 1] + t[x + 1] + t[x - n] + t[x + n] + t[x - plane] + t[x + plane];
				double c = h->conduct[(size_t)((t[x] - cold) / (hot - cold) * (TABLE - 1) + 0.5)];

				u[x] = t[x] + c * (around - 6.0 * t[x]);
			}
		}
}

/* Forth and back, so that T is always the same memory: varve sees what is written, wherever it is, but here it finds it faster. */
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

/* FNV-1a over the bytes of all ranks, in their order: two bars with the same sum are the same bit for bit. */
static uint64_t checksum(const struct heat *h)
{
	const unsigned char *p = (const unsigned char *)(h->T + h->n * h->n);
	uint64_t sum = 0xcbf29ce484222325u;

	if (h->rank)
		MPI_Recv(&sum, 1, MPI_UINT64_T, h->rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (size_t i = 0; i < h->n * h->n * h->n * sizeof(double); i++)
		sum = (sum ^ p[i]) * 0x100000001b3u;
	if (h->rank + 1 < h->ranks)
		MPI_Send(&sum, 1, MPI_UINT64_T, h->rank + 1, 2, MPI_COMM_WORLD);
	MPI_Bcast(&sum, 1, MPI_UINT64_T, h->ranks - 1, MPI_COMM_WORLD);
	return sum;
}

static void run(struct heat *h, const char *store, long steps, long every)
{
	varve *v = NULL;
	int rc;

	if (varve_open_mpi(MPI_COMM_WORLD, store, "heat", NULL, &v) < 0 ||
	    varve_protect(v, "step", &h->step, sizeof(h->step)) < 0 ||
	    varve_protect_array(v, "T", h->T, VARVE_F64, 3, (size_t[]){ h->n + 2, h->n, h->n }) < 0 ||
	    varve_protect_array(v, "conduct", h->conduct, VARVE_F64, 1, (size_t[]){ TABLE }) < 0)
		die(varve_last_error());
	rc = varve_restart(v, VARVE_LATEST); /* 1: we go on, 0: we begin; the same on all ranks, as is every answer of varve */
	if (rc < 0)
		die(varve_last_error());
	if (rc && h->rank == 0)
		printf("restarted from epoch %" PRIu64 " at step %" PRId64 "\n", varve_epoch(v), h->step);
	while (h->step < steps) {
		advance(h, steps, every);
		if (varve_due(v) && varve_checkpoint(v) < 0) /* interval=10m, overhead=2% or mtbf=4h; else every time */
			die(varve_last_error()); /* or go on: everything older is there, and the next one may succeed */
	}
	if (varve_close(v) < 0) /* the last one is durable now, on all ranks, or this says why it is not */
		die(varve_last_error());
}

int main(int argc, char **argv)
{
	struct heat h = { 0 };
	long n = argc == 5 ? atol(argv[2]) : 0, steps = argc == 5 ? atol(argv[3]) : 0, every = argc == 5 ? atol(argv[4]) : 0;
	uint64_t sum;
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level); /* varve makes do with MPI_THREAD_FUNNELED, too */
	MPI_Comm_rank(MPI_COMM_WORLD, &h.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &h.ranks);
	if (n < 4 || n > 4096 || steps < 0 || every < 1)
		die("usage: heat3d_mpi STORE CELLS STEPS EVERY\n\ta rank has CELLS x CELLS x CELLS; a checkpoint EVERY so many STEPS");
	h.n = (size_t)n;
	heat_init(&h);
	run(&h, argv[1], steps, every);
	sum = checksum(&h);
	if (h.rank == 0)
		printf("checksum %016" PRIx64 " after step %" PRId64 " on %d ranks\n", sum, h.step, h.ranks);
	free(h.T);
	free(h.U);
	free(h.conduct);
	MPI_Finalize();
	return 0;
}
