// ctest: TIMEOUT 300 COST 2
/* Thousands of global arrays, of several regions each, whose parts have other ghost cells than before. Each finds its own among names that
 * begin alike, and the time grows with their number, not with its square. */
#include "support/place.h"
#include "vv_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <varve/varve.h>

enum { PARTS = 4, COUNT = 2 /* elements of a part */, GHOST = 1, FEW = 1000, MANY = 4 * FEW };

static double memory[MANY][PARTS][COUNT + 2 * GHOST];

/* Between "a1#0" and "a1#1", in the order of bytes, there may be neither "a1!" nor "a10#0". */
static void name_part(int array, int part, char out[32])
{
	snprintf(out, 32, array % 2 ? "a%d!#%d" : "a%d#%d", array / 2, part);
}

static varve *declare(const char *store, int n, size_t ghost)
{
	varve *v = NULL;

	CHECK_EQ(varve_open(store, "many", "mode=sync", &v), 0);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < PARTS; k++) {
			size_t global = PARTS * COUNT, start = (size_t)k * COUNT, count = COUNT;
			char name[32];

			name_part(i, k, name);
			CHECK_EQ(varve_protect_slab(v, name, memory[i][k], VARVE_F64, 1, &global, &start, &count, &ghost), 0);
		}
	return v;
}

static double value(int array, int element)
{
	return array * 100.0 + element;
}

static double restart_s(const char *store, int n)
{
	varve *v = declare(store, n, 0);
	clock_t begin;
	double s;

	for (int i = 0; i < n; i++)
		for (int e = 0; e < PARTS * COUNT; e++)
			memory[i][e / COUNT][e % COUNT] = value(i, e);
	CHECK_EQ(varve_checkpoint(v), 0);
	CHECK_EQ(varve_close(v), 0);
	memset(memory, 0, sizeof(memory));
	v = declare(store, n, GHOST);
	begin = clock();
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	s = (double)(clock() - begin) / CLOCKS_PER_SEC;
	CHECK_EQ(varve_close(v), 0);
	for (int i = 0; i < n; i++)
		for (int e = 0; e < PARTS * COUNT; e++)
			CHECK(memory[i][e / COUNT][GHOST + e % COUNT] == value(i, e));
	return s;
}

int main(void)
{
	char few[] = "few-XXXXXX", many[] = "many-XXXXXX";
	double a, b;

	CHECK(mkdtemp(few) && mkdtemp(many));
	a = restart_s(few, FEW);
	b = restart_s(many, MANY);
	if (b > 10 * a + 0.1) {
		fprintf(stderr, "%d arrays take %.2f s, and %d take %.2f s\n", FEW, a, MANY, b);
		return 1;
	}
	place_remove(few);
	place_remove(many);
	return 0;
}
