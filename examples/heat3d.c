/* Heat in a box of air: a hot cube cools and drifts with a slow wind. Kill the program whenever you like and start it
 * again: it goes on from its last checkpoint and ends with the same bits as a run that was never disturbed.
 *
 *	build/examples/heat3d --store /scratch/ckpt --n 96 --steps 200 --every 10
 *
 * What varve needs is in four places: attach() opens, protects and restarts; save() takes a checkpoint, which is stored while
 * the simulation goes on; tell() waits for it; simulate() calls them, and closes. The rest is the simulation. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve.h>

struct settings {
	const char *store; /* NULL: no checkpoints */
	const char *lineage;
	const char *codec; /* NULL: as configured */
	const char *out;   /* NULL: the field is not written */
	long n, steps, every;
};

/* ---- the simulation ------------------------------------------------------------------------------------------------ */

struct heat {
	size_t n;
	int64_t step;
	double *T, *next; /* n x n x n each; the border of T never changes */
};

static const double cold = 20.0, hot = 90.0;

static bool heat_init(struct heat *h, size_t n)
{
	size_t cells = n * n * n, lo = n / 4, hi = n / 2;

	h->n = n;
	h->step = 0;
	h->T = malloc(cells * sizeof(double));
	h->next = malloc(cells * sizeof(double));
	if (!h->T || !h->next)
		return false;
	for (size_t i = 0; i < cells; i++)
		h->T[i] = h->next[i] = cold;
	for (size_t z = lo; z < hi; z++)
		for (size_t y = lo; y < hi; y++)
			for (size_t x = lo; x < hi; x++)
				h->T[(z * n + y) * n + x] = hot;
	return true;
}

/* One explicit step: diffusion to the six neighbours, and wind along x (upwind difference). */
static void heat_step(struct heat *h)
{
	const double diffusion = 0.02, wind = 0.05;
	size_t n = h->n, row = n, plane = n * n;
	double *swap;

	for (size_t z = 1; z + 1 < n; z++)
		for (size_t y = 1; y + 1 < n; y++) {
			const double *t = h->T + z * plane + y * row;
			double *u = h->next + z * plane + y * row;

			for (size_t x = 1; x + 1 < n; x++) {
				double around = t[x - 1] + t[x + 1] + t[x - row] + t[x + row] + t[x - plane] + t[x + plane];

				u[x] = t[x] + diffusion * (around - 6.0 * t[x]) - wind * (t[x] - t[x - 1]);
			}
		}
	swap = h->T;
	h->T = h->next;
	h->next = swap;
	h->step++;
}

/* To the next step at which a checkpoint may be taken, or to the last step. */
static void advance(struct heat *h, const struct settings *set)
{
	do
		heat_step(h);
	while (h->step % set->every && h->step < set->steps);
}

/* FNV-1a over the bytes: two fields with the same sum are the same bit for bit. */
static uint64_t heat_checksum(const struct heat *h)
{
	const unsigned char *p = (const unsigned char *)h->T;
	uint64_t sum = 0xcbf29ce484222325u;

	for (size_t i = 0; i < h->n * h->n * h->n * sizeof(double); i++)
		sum = (sum ^ p[i]) * 0x100000001b3u;
	return sum;
}

static bool heat_write(const struct heat *h, const char *path)
{
	size_t cells = h->n * h->n * h->n;
	FILE *f = fopen(path, "wb");
	bool fine = f && fwrite(h->T, sizeof(double), cells, f) == cells;

	if (f && fclose(f) != 0)
		fine = false;
	if (!fine)
		fprintf(stderr, "heat3d: cannot write '%s': %s\n", path, strerror(errno));
	return fine;
}

/* ---- checkpoints ---------------------------------------------------------------------------------------------------- */

/* The field changes places with its successor at every step, so it is declared anew: the name stays, the memory moves. */
static int protect(varve *v, struct heat *h)
{
	int rc = varve_protect(v, "step", &h->step, sizeof(h->step));

	return rc < 0 ? rc : varve_protect_array(v, "T", h->T, VARVE_F64, 3, (size_t[]){ h->n, h->n, h->n });
}

static int attach(const struct settings *set, struct heat *h, varve **v)
{
	char options[64] = "";
	int rc;

	if (set->codec)
		snprintf(options, sizeof(options), "codec=%s", set->codec);
	rc = varve_open(set->store, set->lineage, options, v);
	if (rc == 0)
		rc = protect(*v, h);
	if (rc == 0)
		rc = varve_restart(*v, VARVE_LATEST);
	if (rc > 0)
		printf("restarted from epoch %" PRIu64 " at step %" PRId64 "\n", varve_epoch(*v), h->step);
	return rc < 0 ? rc : 0;
}

/* What became of the checkpoint taken at `step`; waits until it is durable. */
static int tell(varve *v, int64_t step)
{
	struct varve_stats st;
	int rc = varve_wait(v, VARVE_LATEST);

	if (rc == 0)
		rc = varve_stats(v, &st);
	if (rc < 0)
		return rc;
	printf("epoch %4" PRIu64 "  step %5" PRId64 "  memory %" PRIu64 " B  new %9" PRIu64 " B  stored %9" PRIu64
	       " B  blocked %6.1f ms\n",
	       st.epoch, step, st.bytes_memory, st.bytes_new, st.bytes_layer, st.seconds_blocked * 1e3);
	fflush(stdout);
	return 0;
}

/* The one before, taken at step *saved, has had all the time since then to be stored. */
static int save(varve *v, struct heat *h, int64_t *saved)
{
	int rc = *saved ? tell(v, *saved) : 0;

	if (rc == 0)
		rc = protect(v, h);
	if (rc == 0)
		rc = varve_checkpoint(v);
	*saved = h->step;
	return rc;
}

static int simulate(const struct settings *set, struct heat *h)
{
	varve *v = NULL;
	int64_t saved = 0;
	int rc = set->store ? attach(set, h, &v) : 0;

	fflush(stdout);
	while (rc == 0 && h->step < set->steps) {
		advance(h, set);
		if (v && varve_due(v) && save(v, h, &saved) < 0)
			rc = -1;
	}
	if (rc == 0 && saved)
		rc = tell(v, saved);
	if (rc < 0)
		fprintf(stderr, "heat3d: %s\n", varve_last_error());
	if (varve_close(v) < 0 && rc == 0) {
		fprintf(stderr, "heat3d: %s\n", varve_last_error());
		rc = -1;
	}
	return rc;
}

/* ---- the command line ----------------------------------------------------------------------------------------------- */

static int usage(void)
{
	fputs("usage: heat3d [--store DIR] [--lineage NAME] [--codec none|lz4|zstd[:LEVEL]|auto]\n"
	      "              [--n CELLS] [--steps STEPS] [--every STEPS] [--out FILE]\n"
	      "without --store nothing is saved; VARVE_INTERVAL=30s spaces the checkpoints out in time\n",
	      stderr);
	return 2;
}

static bool number(const char *text, long least, long most, long *out)
{
	char *end;

	*out = strtol(text, &end, 10);
	return *text && !*end && *out >= least && *out <= most;
}

static bool parse(int argc, char **argv, struct settings *set)
{
	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
		bool fine = *value;

		if (strcmp(name, "--store") == 0)
			set->store = value;
		else if (strcmp(name, "--lineage") == 0)
			set->lineage = value;
		else if (strcmp(name, "--codec") == 0)
			set->codec = value;
		else if (strcmp(name, "--out") == 0)
			set->out = value;
		else if (strcmp(name, "--n") == 0)
			fine = number(value, 4, 4096, &set->n);
		else if (strcmp(name, "--steps") == 0)
			fine = number(value, 0, 1000000000, &set->steps);
		else if (strcmp(name, "--every") == 0)
			fine = number(value, 1, 1000000000, &set->every);
		else
			fine = false;
		if (!fine)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct settings set = { .lineage = "heat", .n = 96, .steps = 200, .every = 10 };
	struct heat h = { 0 };
	bool fine;

	if (!parse(argc, argv, &set))
		return usage();
	fine = heat_init(&h, (size_t)set.n);
	if (!fine)
		fprintf(stderr, "heat3d: no memory for two fields of %ld x %ld x %ld\n", set.n, set.n, set.n);
	fine = fine && simulate(&set, &h) == 0;
	if (fine)
		printf("checksum %016" PRIx64 " after step %" PRId64 "\n", heat_checksum(&h), h.step);
	if (fine && set.out)
		fine = heat_write(&h, set.out);
	free(h.T);
	free(h.next);
	return fine ? 0 : 1;
}
