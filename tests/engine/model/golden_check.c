/* Golden stores: content that a released version wrote must be read for ever.
 *
 *	golden_check make STORE    writes the store of this version
 *	golden_check code STORE    the same, with all that can be coded
 *	golden_check check STORE   opens it, and compares every region of every epoch with what was written */
#include "support/settle.h"
#include "vv_test.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve.h>

enum { FINE = 32, CHUNKS = 12000, FIELD = 9000, EPOCHS = 6 };

static uint8_t mask[CHUNKS * FINE]; /* many runs: epochs 2.. are deltas on it */
static double field[FIELD];
static uint8_t odd[1237];
static uint64_t step;

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
	for (size_t i = 0; i < sizeof(odd); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		odd[i] = e % 2 ? (uint8_t)x : 0;
	}
}

static void declare(varve *v, uint64_t e)
{
	size_t shape[3] = { 9, 10, 100 };

	ok(varve_protect(v, "step", &step, sizeof(step)));
	ok(varve_protect(v, "mask", mask, sizeof(mask)));
	ok(varve_protect_array(v, "field", field, VARVE_F64, 3, shape));
	if (e != 4) /* a region that goes and comes back, with another length */
		ok(varve_protect(v, "odd", odd, e < 4 ? sizeof(odd) : 1000));
	else
		ok(varve_unprotect(v, "odd"));
	ok(varve_protect(v, "empty", NULL, 0));
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
		int rc;

		ok(varve_open(store, "golden", NULL, &v));
		content(e);
		memcpy(was_mask, mask, sizeof(mask));
		memcpy(was_field, field, sizeof(field));
		memcpy(was_odd, odd, sizeof(odd));
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
		CHECK(memcmp(field, was_field, sizeof(field)) == 0);
		CHECK(e == 4 || memcmp(odd, was_odd, e < 4 ? sizeof(odd) : 1000) == 0);
		ok(varve_close(v));
	}
}

int main(int argc, char **argv)
{
	static const char *const plain[] = { "chunk=32 codec=none", "chunk=32 codec=zstd:3", "chunk=32 codec=lz4" };
	static const char *const coded[] = { "chunk=128 block=4096 codec=zstd", "chunk=32 block=4096 codec=zstd:9",
					     "chunk=256 block=4096 codec=zstd:3" };

	CHECK(argc == 3);
	if (strcmp(argv[1], "make") == 0)
		make(argv[2], plain);
	else if (strcmp(argv[1], "code") == 0)
		make(argv[2], coded);
	else
		check(argv[2]);
	return 0;
}
