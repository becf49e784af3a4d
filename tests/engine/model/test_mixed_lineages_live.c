// ctest: COST 2
/* A session among files of another copy of its lineage: it goes back and forth before it refers to what it knew, and layers are replaced under it, by longer and by shorter ones. What it lays
 * down afterwards restores exactly, or is refused, then or at once; and it goes on. */
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve.h>

enum { PAGE = 4096, PAGES = 16, SIZE = PAGE * PAGES };

static const char *const options[] = { "log=error", "mode=sync log=error codec=none", "grain=256 log=error", "history=0 log=error" };
static const char *option;
static uint8_t memory[SIZE], want[SIZE];
static char a[PLACE_MAX], b[PLACE_MAX];

static void page(int n, uint64_t content)
{
	uint64_t state = content * 77;

	gen_bytes(&state, memory + n * PAGE, PAGE);
}

static void pages(int n, uint64_t content)
{
	for (int i = 0; i < n; i++)
		page(i, content + (uint64_t)i);
}

static varve *open_at(const char *store)
{
	varve *v = NULL;

	CHECK_EQ(varve_open(store, "L", option, &v), 0);
	CHECK_EQ(varve_protect(v, "m", memory, SIZE), 0);
	return v;
}

static int lay(varve *v)
{
	int rc = varve_checkpoint(v);

	return rc ? rc : varve_wait(v, varve_epoch(v));
}

/* Files of the one's folder come into the same folder of the other. */
static void copy(const char *from, const char *to, const char *folder, const char *what)
{
	char command[3 * PLACE_MAX];

	snprintf(command, sizeof(command), "mkdir -p '%s/%s' && cp -a '%s/%s'/%s '%s/%s'", to, folder, from, folder, what, to, folder);
	CHECK_EQ(system(command), 0);
}

/* Epoch 1, which both have; then each has its own. */
static void make_twins(int more_of_a, int more_of_b, bool third_of_a)
{
	varve *v;

	place_remove(a);
	place_remove(b);
	v = open_at(a);
	pages(PAGES, 100);
	CHECK_EQ(lay(v), 0);
	CHECK_EQ(varve_close(v), 0);
	copy(a, b, ".", ".");
	for (int t = 0; t < 2; t++) {
		v = open_at(t ? b : a);
		CHECK_EQ(varve_restart(v, 1), 1);
		pages(t ? more_of_b : more_of_a, t ? 400 : 200);
		CHECK_EQ(lay(v), 0);
		if (t || third_of_a) {
			pages(t ? 1 : 8, t ? 500 : 300);
			CHECK_EQ(lay(v), 0);
		}
		CHECK_EQ(varve_close(v), 0);
	}
}

/* Exactly what it was, or refused. */
static int comes_back(uint64_t epoch)
{
	varve *v = open_at(a);
	int rc;

	memset(memory, 0, SIZE);
	rc = varve_restart(v, epoch);
	CHECK(rc == VARVE_EDAMAGED || (rc == 1 && memcmp(memory, want, SIZE) == 0));
	CHECK_EQ(varve_close(v), 0);
	return rc;
}

static void back_and_forth(int way)
{
	struct varve_region_info info;
	uint64_t last;
	varve *v;

	make_twins(8, 8, true);
	v = open_at(a);
	if (way < 5) {
		CHECK_EQ(varve_restart(v, 3), 1);
		page(9, 200); /* is in layer 2 */
		CHECK_EQ(lay(v), 0);
	}
	if (way == 2 || way == 7)
		CHECK_EQ(varve_restart_region(v, 3, "m", want, SIZE), 0);
	if (way == 3)
		CHECK_EQ(varve_restart(v, 3), 1);
	if (way == 4)
		CHECK_EQ(varve_region(v, 2, "m", &info), 0);
	if (way)
		CHECK_EQ(varve_restart(v, 1), 1);
	for (int i = 0; i < 4; i++) {
		page(10 + i, 201 + (uint64_t)i);
		if (i % 2)
			CHECK_EQ(lay(v), 0);
	}
	last = varve_epoch(v);
	memcpy(want, memory, SIZE);
	CHECK_EQ(varve_close(v), 0);
	CHECK_EQ(comes_back(last), 1);
	copy(b, a, "L/00000000", "0000000002.r0.layer");
	comes_back(last);
}

/* The other's epochs 2 and 3 come into the place of its own while it runs. */
static void under_way(int more_of_b, uint64_t back_to)
{
	int failed = 0;
	varve *v;

	make_twins(8, more_of_b, false);
	v = open_at(a);
	CHECK_EQ(varve_restart(v, 2), 1);
	page(9, 650);
	page(12, 201);
	CHECK_EQ(lay(v), 0);
	copy(b, a, "L/00000000", "000000000[23].*");
	CHECK_EQ(varve_restart(v, back_to), 1);
	for (uint64_t i = 0; i < 5; i++) {
		int rc;

		page(9, 700 + i);
		if (i == 1)
			page(10, 201);
		rc = lay(v);
		CHECK(rc == 0 || rc == VARVE_EDAMAGED);
		if (rc)
			CHECK(strstr(varve_last_error(), "another copy") || strstr(varve_last_error(), "0000000002.r0.layer"));
		failed += rc != 0;
	}
	CHECK(failed <= 1);
	memcpy(want, memory, SIZE);
	back_to = varve_epoch(v);
	CHECK_EQ(varve_close(v), 0);
	CHECK_EQ(comes_back(back_to), 1);
}

int main(void)
{
	place_path(a, "a");
	place_path(b, "b");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		option = options[i];
		for (int way = 0; way < 8; way++)
			back_and_forth(way);
		for (int more = 1; more <= 12; more += 3)
			for (uint64_t to = 1; to <= 3; to += 2)
				under_way(more, to);
	}
	return 0;
}
