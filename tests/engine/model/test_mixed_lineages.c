// ctest: COST 13
/* Two copies of a lineage that both went on, and whose files were mixed, in all ways that chance comes upon: each epoch then restores as it was in one of the two, or fails, and says why. It is
 * never something else, though the layers have the same numbers and each of them is whole. */
#include "base/err.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve.h>

enum { PIECE = 512, PIECES = 96, SIZE = PIECE * PIECES, CONTENTS = 400, COMMON = 4, OWN = 6, LAST = COMMON + OWN, TWINS = 2, MIXTURES = 150 };

static const char *const options[] = {
	"chunk=512 block=4KiB codec=none mode=sync log=error threads=1",
	"chunk=512 block=4KiB mode=sync log=error threads=1 history=0",
	"grain=128 block=4KiB codec=none mode=sync log=error threads=1",
};

static uint8_t memory[SIZE], was[TWINS][LAST + 1][SIZE];
static const char *option;

/* Pieces of few kinds, so that layers refer to many others. */
static void write_some(uint64_t *state)
{
	for (int i = 0; i < 12; i++) {
		uint64_t content = 1000 + gen_below(state, CONTENTS);

		gen_bytes(&content, memory + gen_below(state, PIECES) * PIECE, PIECE);
	}
}

/* Each epoch by a session of its own, or several by one. */
static void go_on(const char *url, int twin, uint64_t from, uint64_t to, uint64_t seed)
{
	uint64_t state = seed;
	varve *v = NULL;

	for (uint64_t e = from; e <= to; e++) {
		if (!v) {
			CHECK_EQ(varve_open(url, "L", option, &v), 0);
			CHECK_EQ(varve_protect(v, "m", memory, SIZE), 0);
			CHECK_EQ(varve_restart(v, VARVE_LATEST), e > 1);
		}
		write_some(&state);
		CHECK_EQ(varve_checkpoint(v), 0);
		memcpy(was[twin][e], memory, SIZE);
		if (gen_below(&state, 3) == 0 || e == to) {
			CHECK_EQ(varve_close(v), 0);
			v = NULL;
		}
	}
}

static void path_of(char *out, const char *dir, uint64_t epoch, bool commit)
{
	snprintf(out, PLACE_MAX + 64, "%s/L/00000000/%010llu%s", dir, (unsigned long long)epoch, commit ? ".commit" : ".r0.layer");
}

static void copy(const char *from, const char *to, uint64_t epoch, bool commit)
{
	char a[PLACE_MAX + 64], b[PLACE_MAX + 64];
	uint8_t *p;
	size_t n;

	path_of(a, from, epoch, commit);
	path_of(b, to, epoch, commit);
	p = place_read(a, &n);
	place_write(b, p, n);
	free(p);
}

static void copy_lineage(const char *from, const char *to, uint64_t last)
{
	char a[PLACE_MAX + 64], b[PLACE_MAX + 64];
	uint8_t *p;
	size_t n;

	place_make_dir(to);
	snprintf(b, sizeof(b), "%s/L", to);
	place_make_dir(b);
	snprintf(a, sizeof(a), "%s/L/lineage", from);
	p = place_read(a, &n);
	snprintf(b, sizeof(b), "%s/L/lineage", to);
	place_write(b, p, n);
	free(p);
	snprintf(b, sizeof(b), "%s/L/00000000", to);
	place_make_dir(b);
	for (uint64_t e = 1; e <= last; e++) {
		copy(from, to, e, false);
		copy(from, to, e, true);
	}
}

/* Which twin's the memory is as of that epoch; -1: nobody's. */
static int whose(uint64_t epoch)
{
	for (int t = 0; t < TWINS; t++)
		if (memcmp(memory, was[t][epoch], SIZE) == 0)
			return t;
	return -1;
}

struct outcome {
	unsigned right, refused, told;
};

static void restore_each(const char *url, struct outcome *o)
{
	for (uint64_t e = 1; e <= LAST; e++) {
		varve *v = NULL;
		int rc;

		CHECK_EQ(varve_open(url, "L", option, &v), 0);
		CHECK_EQ(varve_protect(v, "m", memory, SIZE), 0);
		memset(memory, 0xee, SIZE);
		rc = varve_restart(v, e);
		CHECK(rc == 1 || rc == VARVE_EDAMAGED);
		if (rc == 1)
			CHECK(whose(e) >= 0);
		o->right += rc == 1;
		o->refused += rc != 1;
		o->told += rc != 1 && strstr(varve_last_error(), "another copy of the lineage") != NULL;
		CHECK(e > COMMON || rc == 1);
		CHECK_EQ(varve_close(v), 0);
	}
}

/* One session: the newest that is whole, and then on from there, and back to it. */
static void restore_newest(const char *url, uint64_t *state)
{
	static uint8_t now[SIZE];
	varve *v = NULL;
	uint64_t e;

	CHECK_EQ(varve_open(url, "L", option, &v), 0);
	CHECK_EQ(varve_protect(v, "m", memory, SIZE), 0);
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	e = varve_epoch(v);
	CHECK(e >= COMMON && whose(e) >= 0);
	write_some(state);
	memcpy(now, memory, SIZE);
	CHECK_EQ(varve_checkpoint(v), 0);
	CHECK_EQ(varve_close(v), 0);
	memset(memory, 0, SIZE);
	CHECK_EQ(varve_open(url, "L", option, &v), 0);
	CHECK_EQ(varve_protect(v, "m", memory, SIZE), 0);
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK(varve_epoch(v) > LAST && memcmp(memory, now, SIZE) == 0);
	CHECK_EQ(varve_close(v), 0);
}

static void try_options(uint64_t *state)
{
	char twin[TWINS][PLACE_MAX], mixed[PLACE_MAX];
	struct outcome all = { 0 }, whole = { 0 };

	place_path(twin[0], "a");
	place_path(twin[1], "b");
	place_path(mixed, "mixed");
	memset(memory, 0, SIZE);
	go_on(twin[0], 0, 1, COMMON, 7);
	memcpy(was[1], was[0], sizeof(was[0]));
	copy_lineage(twin[0], twin[1], COMMON);
	for (int t = 0; t < TWINS; t++)
		go_on(twin[t], t, COMMON + 1, LAST, 100 + (uint64_t)t);
	for (int t = 0; t < TWINS; t++)
		restore_each(twin[t], &whole);
	CHECK_EQ(whole.refused, 0);
	for (int i = 0; i < MIXTURES; i++) {
		uint64_t layers = gen_below(state, 3), commits = gen_below(state, 2); /* one by one; all the same; as the layers */

		copy_lineage(twin[0], mixed, LAST);
		for (uint64_t e = COMMON + 1; e <= LAST; e++) {
			bool other = layers == 0 ? gen_below(state, 2) : layers == 1 ? e % 2 : e > COMMON + 1 + (uint64_t)i % OWN;

			copy(twin[other], mixed, e, false);
			copy(twin[commits ? gen_below(state, 2) : other], mixed, e, true);
		}
		restore_each(mixed, &all);
		restore_newest(mixed, state);
		place_remove(mixed);
	}
	CHECK(all.right > 0 && all.told > MIXTURES / 2);
	for (int t = 0; t < TWINS; t++)
		place_remove(twin[t]);
}

int main(void)
{
	uint64_t state = 3;

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		option = options[i];
		try_options(&state);
	}
	return 0;
}
