/* Sets of checkpoint files for pack.py, made without any library: netCDF classic (CDF-2), .npy and plain bytes.
 *
 * usage: bench_pack KIND FOLDER RANKS STEP BYTES     BYTES: of all ranks
 *	hydro      doubles on a grid cut along its slowest dimension: a blast wave into turbulence; five variables and a scalar, CDF
 *	wave       floats, .npy: all ranks hold the same field in one half, and nearly the same in the other
 *	particles  positions, velocities and numbers of particles that were shuffled long ago, CDF
 *	smooth     doubles, .npy: waves, known to ten digits, of other lengths in each file
 *	noise      bytes that nothing compresses */
#include "support.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct out {
	FILE *f;
	char path[4096];
};

static void out_open(struct out *o, const char *folder, const char *kind, int rank, const char *ending)
{
	snprintf(o->path, sizeof(o->path), "%s/%s.%04d.%s", folder, kind, rank, ending);
	o->f = fopen(o->path, "wb");
	if (!o->f)
		bench_die("cannot make '%s': %s", o->path, strerror(errno));
}

static void put(struct out *o, const void *p, size_t n)
{
	if (fwrite(p, 1, n, o->f) != n)
		bench_die("cannot write '%s': %s", o->path, strerror(errno));
}

static void out_close(struct out *o)
{
	if (fclose(o->f))
		bench_die("cannot write '%s': %s", o->path, strerror(errno));
}

/* High byte first, as netCDF wants it. */
static void put_big(struct out *o, uint64_t v, unsigned width)
{
	uint8_t b[8];

	for (unsigned i = 0; i < width; i++)
		b[i] = (uint8_t)(v >> 8 * (width - 1 - i));
	put(o, b, width);
}

static void put_double(struct out *o, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, 8);
	put_big(o, bits, 8);
}

/* ---- netCDF classic ------------------------------------------------------------------------------------------------------ */

enum { CDF_INT = 4, CDF_DOUBLE = 6 };

struct cdf_variable {
	const char *name;
	uint32_t type, n_dims, dim[3];
};

struct cdf {
	const char *dim_name[4];
	uint64_t dim[4];
	uint32_t n_dims, n_variables;
	const struct cdf_variable *variable;
};

static void put_name(struct out *o, const char *name)
{
	size_t n = strlen(name);

	put_big(o, n, 4);
	put(o, name, n);
	put(o, "\0\0\0", (4 - n % 4) % 4);
}

static uint64_t bytes_of(const struct cdf *c, const struct cdf_variable *v)
{
	uint64_t n = v->type == CDF_DOUBLE ? 8 : 4;

	for (uint32_t i = 0; i < v->n_dims; i++)
		n *= c->dim[v->dim[i]];
	return n;
}

/* The numbers follow, variable by variable. */
static void put_cdf(struct out *o, const struct cdf *c)
{
	uint64_t begin = 4 + 4 + 8 + 8 + 8;

	for (uint32_t i = 0; i < c->n_dims; i++)
		begin += 4 + (strlen(c->dim_name[i]) + 3) / 4 * 4 + 4;
	for (uint32_t i = 0; i < c->n_variables; i++)
		begin += 4 + (strlen(c->variable[i].name) + 3) / 4 * 4 + 4 + 4 * c->variable[i].n_dims + 8 + 4 + 4 + 8;
	put(o, "CDF\2", 4);
	put_big(o, 0, 4);
	put_big(o, 10, 4);
	put_big(o, c->n_dims, 4);
	for (uint32_t i = 0; i < c->n_dims; i++) {
		put_name(o, c->dim_name[i]);
		put_big(o, c->dim[i], 4);
	}
	put_big(o, 0, 8);
	put_big(o, 11, 4);
	put_big(o, c->n_variables, 4);
	for (uint32_t i = 0; i < c->n_variables; i++) {
		const struct cdf_variable *v = &c->variable[i];
		uint64_t n = bytes_of(c, v);

		put_name(o, v->name);
		put_big(o, v->n_dims, 4);
		for (uint32_t k = 0; k < v->n_dims; k++)
			put_big(o, v->dim[k], 4);
		put_big(o, 0, 8);
		put_big(o, v->type, 4);
		put_big(o, n < UINT32_MAX - 3 ? n : UINT32_MAX, 4);
		put_big(o, begin, 8);
		begin += n;
	}
}

/* ---- .npy ---------------------------------------------------------------------------------------------------------------- */

static void put_npy(struct out *o, const char *type, size_t a, size_t b, size_t c)
{
	char head[128];
	int n = snprintf(head + 10, sizeof(head) - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%zu, %zu, %zu), }", type, a, b, c);

	memset(head + 10 + n, ' ', sizeof(head) - 10 - (size_t)n);
	memcpy(head, "\x93NUMPY\1\0\x76\0", 10); /* 118 bytes follow */
	head[127] = '\n';
	put(o, head, sizeof(head));
}

/* ---- kinds --------------------------------------------------------------------------------------------------------------- */

struct set {
	const char *kind, *folder;
	int ranks, step;
	uint64_t bytes; /* of a rank */
};

/* A sum of modes, smaller the shorter they are. */
static double turbulence(double x, double y, double z)
{
	static const double mode[][4] = {
		{ 3, 5, 2, 0.3 }, { 7, 2, 9, 1.1 }, { 13, 11, 4, 2.3 }, { 19, 23, 17, 0.7 }, { 41, 31, 29, 1.9 }, { 67, 71, 59, 2.9 },
	};
	double sum = 0;

	for (size_t i = 0; i < sizeof(mode) / sizeof(mode[0]); i++)
		sum += sin(mode[i][0] * x + mode[i][1] * y + mode[i][2] * z + mode[i][3]) / (double)(1 + i * i);
	return sum;
}

static void cell(double x, double y, double z, double t, double out[5])
{
	double r = sqrt(x * x + y * y + z * z), front = 0.2 + 0.5 * t, jump = 0.5 - 0.5 * tanh((r - front) * 60);
	double swirl = turbulence(x + 0.3 * t, y, z), push = jump * r / (front + 0.1);

	out[0] = 1 + 3 * jump * exp((r - front) * 4) + 0.02 * swirl;
	out[1] = push * x + 0.05 * turbulence(y, z + t, x);
	out[2] = push * y + 0.05 * turbulence(z, x - t, y);
	out[3] = push * z;
	out[4] = (0.1 + jump) / (out[0] * 0.4) + 0.5 * (out[1] * out[1] + out[2] * out[2] + out[3] * out[3]);
}

static void hydro(const struct set *s, int rank)
{
	static const struct cdf_variable variables[] = {
		{ "time", CDF_DOUBLE, 0, { 0 } },
		{ "density", CDF_DOUBLE, 3, { 0, 1, 2 } },
		{ "x_velocity", CDF_DOUBLE, 3, { 0, 1, 2 } },
		{ "y_velocity", CDF_DOUBLE, 3, { 0, 1, 2 } },
		{ "z_velocity", CDF_DOUBLE, 3, { 0, 1, 2 } },
		{ "energy", CDF_DOUBLE, 3, { 0, 1, 2 } },
	};
	size_t side = (size_t)cbrt((double)s->bytes / 40), n = side * side * side;
	struct cdf c = { { "x", "y", "z" }, { side, side, side }, 3, 6, variables };
	double *field = calloc(n, 5 * sizeof(*field)), t = 0.02 * s->step, h = 1.0 / (double)side;
	struct out o;

	if (!field)
		bench_die("out of memory");
	for (size_t i = 0; i < n; i++) {
		double v[5], x = (double)(i / side / side) + (double)side * rank;

		cell(x * h / s->ranks, (double)(i / side % side) * h, (double)(i % side) * h, t, v);
		for (size_t k = 0; k < 5; k++)
			field[k * n + i] = v[k];
	}
	out_open(&o, s->folder, s->kind, rank, "nc");
	put_cdf(&o, &c);
	put_double(&o, t);
	for (size_t i = 0; i < n * 5; i++)
		put_double(&o, field[i]);
	out_close(&o);
	free(field);
}

static void wave(const struct set *s, int rank)
{
	size_t side = (size_t)cbrt((double)s->bytes / 4);
	struct out o;

	out_open(&o, s->folder, s->kind, rank, "npy");
	put_npy(&o, "<f4", side, side, side);
	for (size_t i = 0; i < side * side * side; i++) {
		double h = 1.0 / (double)side, x = (double)(i / side / side) * h, y = (double)(i / side % side) * h, z = (double)(i % side) * h;
		double own = x < 0.5 ? 1e-4 * sin(17 * y + rank) * (1 + z) : 0;
		float v = (float)(sin(5 * x) * cos(7 * y + 0.01 * s->step) + 0.1 * turbulence(x, y, z) + own);

		put(&o, &v, 4);
	}
	out_close(&o);
}

static double uniform(uint64_t *seed)
{
	return (double)(bench_random(seed) >> 11) * 0x1p-53;
}

static void particles(const struct set *s, int rank)
{
	static const struct cdf_variable variables[] = {
		{ "id", CDF_INT, 1, { 0 } }, { "position", CDF_DOUBLE, 2, { 0, 1 } }, { "velocity", CDF_DOUBLE, 2, { 0, 1 } },
	};
	size_t n = s->bytes / 52;
	struct cdf c = { { "particle", "axis" }, { n, 3 }, 2, 3, variables };
	uint64_t seed = (uint64_t)rank + 1;
	struct out o;

	out_open(&o, s->folder, s->kind, rank, "nc");
	put_cdf(&o, &c);
	for (size_t i = 0; i < n; i++)
		put_big(&o, (i * 40503 + (size_t)rank) % (n * (size_t)s->ranks), 4);
	for (size_t i = 0; i < n; i++) /* a lattice that has melted */
		for (size_t k = 0; k < 3; k++)
			put_double(&o, (double)(i / (k ? k * 31 : 1) % 32) * 1.68 + 0.2 * uniform(&seed) + 0.001 * s->step);
	for (size_t i = 0; i < n * 3; i++)
		put_double(&o, (uniform(&seed) + uniform(&seed) + uniform(&seed) - 1.5) * 2);
	out_close(&o);
}

static void smooth(const struct set *s, int rank)
{
	size_t side = (size_t)cbrt((double)s->bytes / 8);
	uint64_t seed = (uint64_t)rank * 31 + (uint64_t)s->step;
	struct out o;

	out_open(&o, s->folder, s->kind, rank, "npy");
	put_npy(&o, "<f8", side, side, side);
	for (size_t i = 0; i < side * side * side; i++) {
		double h = (6.28 + 0.5 * rank) / (double)side, x = (double)(i / side / side) * h, y = (double)(i / side % side) * h, z = (double)(i % side) * h;
		double v = 300 + sin(x + rank) * cos(0.7 * y) + cos(y) * sin(z + 0.1 * s->step) * x + 1e-9 * uniform(&seed);

		put(&o, &v, 8);
	}
	out_close(&o);
}

static void noise(const struct set *s, int rank)
{
	uint64_t seed = (uint64_t)rank * 7919 + (uint64_t)s->step;
	struct out o;

	out_open(&o, s->folder, s->kind, rank, "bin");
	for (uint64_t i = 0; i < s->bytes / 8; i++) {
		uint64_t v = bench_random(&seed);

		put(&o, &v, 8);
	}
	out_close(&o);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(const struct set *s, int rank);
	} kinds[] = { { "hydro", hydro }, { "wave", wave }, { "particles", particles }, { "smooth", smooth }, { "noise", noise } };
	struct set s;

	if (argc != 6)
		bench_die("usage: bench_pack KIND FOLDER RANKS STEP BYTES");
	s = (struct set){ argv[1], argv[2], atoi(argv[3]), atoi(argv[4]), 0 };
	if (s.ranks < 1)
		bench_die("%s ranks: want at least 1", argv[3]);
	s.bytes = strtoull(argv[5], NULL, 10) / (uint64_t)s.ranks;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (int rank = 0; strcmp(kinds[i].name, s.kind) == 0; rank++) {
			if (rank == s.ranks)
				return 0;
			kinds[i].make(&s, rank);
		}
	bench_die("no kind '%s'", s.kind);
}
