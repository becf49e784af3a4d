#include "support/fileset.h"
#include "support/formats.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <math.h>
#include <unistd.h>

enum { NX = 16, NY = 12, NZ = 10, LEVELS = 10, RECORDS = 3, SPARSE_BYTES = 4 << 20, NOISE_BYTES = 50000 };

bool fileset_name(enum fileset_kind kind, unsigned rank, char out[FILESET_NAME])
{
	static const struct {
		const char *before, *after;
	} parts[FILESET_KINDS] = {
		{ "field_", ".npy" }, { "data/state_", ".nc" }, { "restart_", ".dat" }, { "log_", ".txt" },
		{ "empty", "" },      { "sparse", ".bin" },     { "data/noise", ".bin" },
	};

	if (kind < FILESET_EMPTY)
		snprintf(out, FILESET_NAME, "%s%04u%s", parts[kind].before, rank, parts[kind].after);
	else
		snprintf(out, FILESET_NAME, "%s%s", parts[kind].before, parts[kind].after);
	return kind < FILESET_EMPTY || rank == 0;
}

size_t fileset_list(unsigned ranks, char (*out)[FILESET_NAME], size_t max)
{
	char name[FILESET_NAME];
	size_t n = 0;

	for (unsigned rank = 0; rank < ranks; rank++)
		for (unsigned kind = 0; kind < FILESET_KINDS; kind++)
			if (fileset_name(kind, rank, name) && n++ < max)
				memcpy(out[n - 1], name, FILESET_NAME);
	return n;
}

/* A wave through the whole domain, of which each rank has a slab. */
static double wave(unsigned rank, unsigned step, unsigned x, unsigned y, unsigned z)
{
	return 300 + 10 * sin(0.2 * (x + rank * NX) + 0.01 * step) * cos(0.3 * y) + 0.5 * z;
}

static void put_big(uint8_t *to, const void *from, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, from, n);
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
}

static void make_field(unsigned rank, unsigned step, struct vv_buf *b)
{
	static double v[NZ][NY][NX];

	for (unsigned z = 0; z < NZ; z++)
		for (unsigned y = 0; y < NY; y++)
			for (unsigned x = 0; x < NX; x++)
				v[z][y][x] = wave(rank, step, x, y, z);
	formats_npy(b, 1, "'<f8'", false, "(10, 12, 16)", v, sizeof(v));
}

static void make_state(unsigned rank, unsigned step, struct vv_buf *b)
{
	static const struct formats_dim dim[] = { { "time", 0 }, { "z", NZ }, { "y", NY }, { "x", NX }, { "len", 80 } };
	static uint8_t grid[NY * NX * 4], field[RECORDS * NZ * NY * NX * 8], time[RECORDS * 8];
	static const uint8_t title[80] = "a state of the test";
	struct formats_var var[] = { { "title", 2, 1, { 4 }, title, 0, 0 },
				     { "grid", 5, 2, { 2, 3 }, grid, 0, 0 },
				     { "time", 6, 1, { 0 }, time, 0, 0 },
				     { "temperature", 6, 4, { 0, 1, 2, 3 }, field, 0, 0 } };
	struct formats_cdf c = { .version = rank % 3 == 2 ? 5 : rank % 3 + 1, .records = RECORDS, .dim = dim, .n_dims = 5, .var = var, .n_vars = 4 };

	for (unsigned i = 0; i < NY * NX; i++)
		put_big(grid + 4 * i, &(float){ (float)(i % NX + rank * NX) * 0.1f }, 4);
	for (unsigned i = 0; i < RECORDS; i++)
		put_big(time + 8 * i, &(double){ 60. * step + i }, 8);
	for (unsigned i = 0; i < RECORDS * NZ * NY * NX; i++) {
		double v = wave(rank, step + i / (NZ * NY * NX), i % NX, i / NX % NY, i / NX / NY % NZ);

		put_big(field + 8 * (size_t)i, &v, 8);
	}
	formats_cdf(b, &c);
}

/* Scalars, then the levels of three fields: one moves, one stays as it is, one is zero. */
static void make_restart(unsigned rank, unsigned step, struct vv_buf *b)
{
	static const struct formats_marks marks = { 4, false, 0 };
	float level[NY][NX];

	for (uint32_t i = 0; i < 5; i++)
		formats_record(b, &marks, &(uint32_t){ step * i }, 4);
	for (unsigned field = 0; field < 3; field++)
		for (unsigned z = 0; z < LEVELS; z++) {
			for (unsigned y = 0; y < NY; y++)
				for (unsigned x = 0; x < NX; x++)
					level[y][x] = field == 2 ? 0 : (float)wave(rank, field ? 0 : step, x, y, z);
			formats_record(b, &marks, level, sizeof(level));
		}
}

static void make_log(unsigned rank, unsigned step, struct vv_buf *b)
{
	uint64_t state = rank + 1;
	size_t n = 20000 + 3000 * (size_t)step;
	uint8_t *p = vv_buf_room(b, n);

	CHECK(p != NULL);
	gen_text(&state, p, n);
	b->n += n;
}

static void make_noise(unsigned rank, unsigned step, struct vv_buf *b)
{
	uint64_t state = 1000 + step;
	uint8_t *p = vv_buf_room(b, NOISE_BYTES);

	(void)rank;
	CHECK(p != NULL);
	gen_bytes(&state, p, NOISE_BYTES);
	b->n += NOISE_BYTES;
}

static void make_empty(unsigned rank, unsigned step, struct vv_buf *b)
{
	(void)rank;
	(void)step;
	b->n = 0;
}

/* The end of the sparse file; its length comes from where it is written. */
static void make_end(unsigned rank, unsigned step, struct vv_buf *b)
{
	(void)rank;
	vv_buf_printf(b, "the end of step %u\n", step);
}

static void write_sparse(const char *path, const struct vv_buf *end)
{
	FILE *f;

	place_write(path, "", 0);
	CHECK_EQ(truncate(path, SPARSE_BYTES), 0);
	f = fopen(path, "r+b");
	CHECK(f && fseek(f, SPARSE_BYTES, SEEK_SET) == 0 && fwrite(end->p, 1, end->n, f) == end->n && fclose(f) == 0);
}

void fileset_write(const char *folder, unsigned ranks, unsigned step)
{
	static void (*const make[FILESET_KINDS])(unsigned, unsigned, struct vv_buf *) = { make_field, make_state, make_restart, make_log,
											   make_empty, make_end, make_noise };
	char path[PLACE_MAX], name[FILESET_NAME];
	struct vv_buf b = { 0 };

	place_make_dir(folder);
	snprintf(path, sizeof(path), "%s/data", folder);
	place_make_dir(path);
	for (unsigned rank = 0; rank < ranks; rank++)
		for (unsigned kind = 0; kind < FILESET_KINDS; kind++) {
			if (!fileset_name(kind, rank, name))
				continue;
			b.n = 0;
			make[kind](rank, step, &b);
			CHECK_EQ(vv_buf_check(&b), 0);
			snprintf(path, sizeof(path), "%s/%s", folder, name);
			if (kind == FILESET_SPARSE)
				write_sparse(path, &b);
			else
				place_write(path, b.p, b.n);
		}
	vv_buf_fini(&b);
}
