/* Golden stores: content that a released version wrote must be read for ever.
 *
 *	golden_check make STORE    writes the store of this version
 *	golden_check code STORE    the same, with all that can be coded
 *	golden_check types STORE   the same, with arrays of small floating-point numbers
 *	golden_check records STORE the same, with structs of named fields
 *	golden_check parts STORE   parts of a global array, a list and a shared region
 *	golden_check check STORE   opens it, and compares every region of every epoch with what was written */
#include "support/settle.h"
#include "vv_test.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve.h>

enum { FINE = 32, CHUNKS = 12000, FIELD = 9000, EPOCHS = 6 };

static uint8_t mask[CHUNKS * FINE]; /* many runs: epochs 2.. are deltas on it */
static double field[FIELD];
static uint8_t odd[1237];
static uint64_t step;
static uint16_t small[2 * FIELD]; /* a quarter each: bf16, e4m3, f16, e5m2 */
static int has_small;
static struct particle {
	double x[3];
	int32_t id;
	uint8_t kind, rest[3]; /* no byte is left to the compiler */
} particle[500];
static int has_records;

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* The content of an epoch, from its number alone. */
static void content(uint64_t e)
{
	uint64_t x = e * 0x9e3779b97f4a7c15ull + 1;

	step = e;
	memset(mask, 0, sizeof(mask));
	for (size_t i = 0; i < CHUNKS; i += 2)
		mask[i * FINE + 3] = (uint8_t)(i / 2000);
	mask[e * 3 * FINE] = (uint8_t)e;
	for (size_t i = 0; i < FIELD; i++)
		field[i] = (double)(i % 97) * 0.5 + (i < e * 50 ? (double)e : 0);
	for (size_t i = 0; i < 2 * FIELD; i++)
		small[i] = (uint16_t)(0x3f80 + i % 89 * e);
	memset(particle, 0, sizeof(particle));
	for (int i = 0; i < 500; i++)
		particle[i] = (struct particle){ { i, i * 0.5, i < 7 * (int)e ? (double)e : 0 }, i, (uint8_t)(i % 3), { 0 } };
	for (size_t i = 0; i < sizeof(odd); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		odd[i] = e % 2 ? (uint8_t)x : 0;
	}
}

static void declare(varve *v, uint64_t e)
{
	static const struct varve_field fields[] = { VARVE_FIELD(struct particle, x, VARVE_F64), VARVE_FIELD(struct particle, id, VARVE_I32),
						     VARVE_FIELD(struct particle, kind, VARVE_U8) };
	size_t shape[3] = { 9, 10, 100 };

	ok(varve_protect(v, "step", &step, sizeof(step)));
	ok(varve_protect(v, "mask", mask, sizeof(mask)));
	ok(varve_protect_array(v, "field", field, VARVE_F64, 3, shape));
	if (e != 4) /* a region that goes and comes back, with another length */
		ok(varve_protect(v, "odd", odd, e < 4 ? sizeof(odd) : 1000));
	else
		ok(varve_unprotect(v, "odd"));
	ok(varve_protect(v, "empty", NULL, 0));
	if (has_small) {
		ok(varve_protect_array(v, "bf16", small, VARVE_BF16, 2, (size_t[]){ 90, 50 }));
		ok(varve_protect_array(v, "f16", small + FIELD, VARVE_F16, 1, (size_t[]){ 4500 }));
		ok(varve_protect_array(v, "e4m3", small + 4500, VARVE_F8_E4M3, 2, (size_t[]){ 90, 100 }));
		ok(varve_protect_array(v, "e5m2", small + FIELD + 4500, VARVE_F8_E5M2, 3, (size_t[]){ 9, 10, 100 }));
	}
	if (has_records)
		ok(varve_protect_records(v, "particles", particle, 500, sizeof(particle[0]), fields, 3));
}

static void make(const char *store, const char *const options[3])
{
	varve *v = NULL;

	for (uint64_t e = 1; e <= EPOCHS; e++) {
		ok(varve_open(store, "golden", options[(e - 1) % 3], &v));
		content(e);
		if (e == 4)
			declare(v, 1);
		declare(v, e);
		ok(settle_checkpoint(v));
		CHECK_EQ(varve_epoch(v), e);
		ok(varve_close(v));
	}
}

static void check(const char *store)
{
	varve *v = NULL;

	for (uint64_t e = 1; e <= EPOCHS; e++) {
		uint8_t was_mask[sizeof(mask)], was_odd[sizeof(odd)];
		double was_field[FIELD];
		uint16_t was_small[2 * FIELD];
		struct particle was_particle[500];
		struct varve_region_info info;
		int rc;

		ok(varve_open(store, "golden", NULL, &v));
		has_small = varve_region(v, e, "e5m2", &info) == 0;
		CHECK(!has_small || (info.type == VARVE_F8_E5M2 && info.bytes == 9000));
		has_records = varve_region(v, e, "particles", &info) == 0;
		CHECK(!has_records || (info.type == VARVE_RECORD && info.bytes == sizeof(particle)));
		content(e);
		memcpy(was_particle, particle, sizeof(particle));
		if (has_records)
			memset(particle, 1, sizeof(particle));
		memcpy(was_mask, mask, sizeof(mask));
		memcpy(was_field, field, sizeof(field));
		memcpy(was_odd, odd, sizeof(odd));
		memcpy(was_small, small, sizeof(small));
		if (has_small)
			memset(small, 1, sizeof(small));
		memset(mask, 1, sizeof(mask));
		memset(field, 1, sizeof(field));
		memset(odd, 1, sizeof(odd));
		step = 99;
		if (e == 4)
			declare(v, 1);
		declare(v, e);
		rc = varve_restart(v, e);
		ok(rc);
		CHECK_EQ(rc, 1);
		CHECK_EQ(step, e);
		CHECK(memcmp(mask, was_mask, sizeof(mask)) == 0);
		CHECK(memcmp(small, was_small, sizeof(small)) == 0);
		CHECK(memcmp(particle, was_particle, sizeof(particle)) == 0);
		CHECK(memcmp(field, was_field, sizeof(field)) == 0);
		CHECK(e == 4 || memcmp(odd, was_odd, e < 4 ? sizeof(odd) : 1000) == 0);
		ok(varve_close(v));
	}
}

/* ---- parts of the state of all ranks --------------------------------------------------------- */

enum { ROWS = 30, COLUMNS = 40, ITEMS = 100 };

static double upper[ROWS + 2][COLUMNS + 2], lower[ROWS + 2][COLUMNS + 2], whole[ROWS][COLUMNS];
static int32_t items[ITEMS][3];

static double cell(uint64_t e, long row, long column)
{
	return (double)(row * 1000 + column) + (row % 3 ? 0 : (double)e / 8);
}

/* Two parts, of 11 and 19 rows, with a ghost cell around each. */
static void declare_parts(varve *v, uint64_t e)
{
	size_t global[2] = { ROWS, COLUMNS }, start[2] = { 0, 0 }, count[2] = { 11, COLUMNS }, ghost[2] = { 1, 1 };

	for (long row = -1; row <= 11; row++)
		for (long column = -1; column <= COLUMNS; column++)
			upper[row + 1][column + 1] = cell(e, row, column);
	for (long row = 10; row <= ROWS; row++)
		for (long column = -1; column <= COLUMNS; column++)
			lower[row - 10][column + 1] = cell(e, row, column);
	for (int i = 0; i < ITEMS; i++)
		for (int k = 0; k < 3; k++)
			items[i][k] = i * k + (int)e;
	step = e;
	ok(varve_protect_slab(v, "T#upper", upper, VARVE_F64, 2, global, start, count, ghost));
	start[0] = 11;
	count[0] = ROWS - 11;
	ok(varve_protect_slab(v, "T#lower", lower, VARVE_F64, 2, global, start, count, ghost));
	ok(varve_protect_list(v, "list", items, VARVE_I32, 3, ITEMS));
	ok(varve_protect_shared(v, "step", &step, sizeof(step)));
}

static void make_parts(const char *store, const char *const options[3])
{
	varve *v = NULL;

	for (uint64_t e = 1; e <= 3; e++) {
		ok(varve_open(store, "golden", options[e - 1], &v));
		declare_parts(v, e);
		ok(settle_checkpoint(v));
		ok(varve_close(v));
	}
}

/* As it was, and as one part without ghost cells. */
static void check_parts(const char *store)
{
	size_t global[2] = { ROWS, COLUMNS }, start[2] = { 0, 0 };
	varve *v = NULL;

	for (uint64_t e = 1; e <= 3; e++) {
		ok(varve_open(store, "golden", NULL, &v));
		declare_parts(v, 99);
		ok(varve_restart(v, e));
		for (long row = -1; row <= 11; row++)
			for (long column = -1; column <= COLUMNS; column++)
				CHECK(upper[row + 1][column + 1] == cell(e, row, column));
		CHECK(step == e && items[7][2] == 14 + (int)e);
		ok(varve_unprotect(v, "T#upper"));
		ok(varve_unprotect(v, "T#lower"));
		ok(varve_protect_slab(v, "T", whole, VARVE_F64, 2, global, start, global, NULL));
		ok(varve_restart(v, e));
		for (long row = 0; row < ROWS; row++)
			for (long column = 0; column < COLUMNS; column++)
				CHECK(whole[row][column] == cell(e, row, column));
		ok(varve_close(v));
	}
}

static bool has_parts(const char *store)
{
	varve *v = NULL;
	bool has;

	ok(varve_open(store, "golden", NULL, &v));
	has = varve_list_share(v, 1, "list", NULL, NULL) == 1;
	ok(varve_close(v));
	return has;
}

int main(int argc, char **argv)
{
	static const char *const plain[] = { "chunk=32 codec=none", "chunk=32 codec=zstd:3", "chunk=32 codec=lz4" };
	static const char *const coded[] = { "chunk=128 block=4096 codec=zstd", "chunk=32 block=4096 codec=zstd:9",
					     "chunk=256 block=4096 codec=zstd:3" };

	CHECK(argc == 3);
	has_small = strcmp(argv[1], "types") == 0;
	has_records = strcmp(argv[1], "records") == 0;
	if (strcmp(argv[1], "check") == 0)
		(has_parts(argv[2]) ? check_parts : check)(argv[2]);
	else if (strcmp(argv[1], "parts") == 0)
		make_parts(argv[2], coded);
	else
		make(argv[2], strcmp(argv[1], "make") == 0 ? plain : coded);
	return 0;
}
