// ctest: COST 5
/* Tens of thousands of regions: no step may look through all of them for each. */
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <varve/varve.h>

enum { MANY = 30000 };

static uint64_t value[MANY];
static char url[PLACE_MAX];

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

static const char *name_of(size_t i)
{
	static char name[64];

	snprintf(name, sizeof(name), "domain/block.%zu/temperature", i);
	return name;
}

static uint64_t content(size_t i, uint64_t epoch)
{
	return (i + 1) * 0x9e3779b97f4a7c15ull + epoch;
}

static void fill(uint64_t epoch)
{
	for (size_t i = 0; i < MANY; i++)
		value[i] = content(i, epoch);
}

static void protect(varve *v, size_t i)
{
	ok(varve_protect(v, name_of(i), &value[i], sizeof(value[i])));
}

static void reopen(varve **v)
{
	ok(varve_close(*v));
	ok(varve_open(url, "many", "log=error", v));
}

static void round_trip(void)
{
	varve *v = NULL;

	ok(varve_open(url, "many", "log=error", &v));
	for (size_t i = 0; i < MANY; i++)
		protect(v, i);
	for (size_t i = 0; i < MANY; i++)
		protect(v, i); /* again: the same regions */
	for (uint64_t epoch = 1; epoch <= 2; epoch++) {
		fill(epoch);
		ok(settle_checkpoint(v));
	}
	reopen(&v);
	memset(value, 0, sizeof(value));
	for (size_t i = MANY; i-- > 0;) /* in another order than they were stored in */
		protect(v, i);
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	for (size_t i = 0; i < MANY; i++)
		CHECK_EQ(value[i], content(i, 2));
	ok(settle_checkpoint(v));
	ok(varve_close(v));
}

/* Regions that go, from the front, the back and between, and some that come again: each name stays with its memory. */
static void come_and_go(void)
{
	varve *v = NULL;
	struct varve_region_info info;

	ok(varve_open(url, "many", "log=error", &v));
	for (size_t i = 0; i < MANY; i++)
		protect(v, i);
	for (size_t i = 0; i < MANY; i++)
		if (i % 3 == 0)
			ok(varve_unprotect(v, name_of(i)));
	for (size_t i = MANY; i-- > 0;)
		if (i % 3 == 1)
			ok(varve_unprotect(v, name_of(i)));
	for (size_t i = 0; i < MANY; i++)
		if (i % 3 != 2)
			CHECK_EQ(varve_unprotect(v, name_of(i)), VARVE_ENOENT);
	for (size_t i = 0; i < MANY; i += 6)
		protect(v, i);
	fill(7);
	ok(settle_checkpoint(v));
	memset(value, 0, sizeof(value));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	for (size_t i = 0; i < MANY; i++)
		CHECK_EQ(value[i], i % 3 == 2 || i % 6 == 0 ? content(i, 7) : 0);
	CHECK_EQ(varve_region(v, VARVE_LATEST, name_of(1), &info), VARVE_ENOENT);
	ok(varve_region(v, VARVE_LATEST, name_of(2), &info));
	ok(varve_close(v));
}

/* The session's own memory goes another way out, without a look at its name. */
static void owned(void)
{
	enum { N = 5000 };
	void *p[N];
	varve *v = NULL;

	ok(varve_open("mem:owned", "many", "log=error", &v));
	for (size_t i = 0; i < N; i++)
		CHECK((p[i] = varve_alloc(v, name_of(i), 1)) != NULL);
	ok(varve_free(v, p[N - 1]));
	for (size_t i = 0; i < N - 1; i += 2)
		ok(varve_free(v, p[i]));
	for (size_t i = 1; i < N - 1; i += 2)
		CHECK(!varve_alloc(v, name_of(i), 1));
	for (size_t i = 0; i < N - 1; i += 2)
		CHECK((p[i] = varve_alloc(v, name_of(i), 1)) != NULL);
	ok(settle_checkpoint(v));
	ok(varve_close(v));
}

int main(void)
{
	place_path(url, "store");
	round_trip();
	come_and_go();
	owned();
	return 0;
}
