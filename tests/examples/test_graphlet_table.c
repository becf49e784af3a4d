// The table of examples/graphlets: both layouts, threads that add at the same time, counters that overflow.
#include <pthread.h>
#include <stdlib.h>
#include "../../examples/graphlets/graph.c"
#include "../../examples/graphlets/table.c"
#include "vv_test.h"

enum { VERTICES = 7, ORBITS = 5, ROUNDS = 20000 };

static void *add_often(void *arg)
{
	static const struct tally what[] = { { 0, 0, 1 }, { 6, 4, 2 }, { 3, 1, 3 } };

	for (int i = 0; i < ROUNDS; i++)
		if (!table_add(arg, what, 3))
			return arg;
	return NULL;
}

static void check_adding(bool columns)
{
	struct table *t = table_new(&table_host, VERTICES, ORBITS, columns);
	uint32_t expect[VERTICES * ORBITS] = { 0 }, *got;
	pthread_t other;
	void *failed;

	CHECK(t);
	got = table_read(t);
	CHECK(got && memcmp(got, expect, sizeof(expect)) == 0);
	free(got);
	CHECK(pthread_create(&other, NULL, add_often, t) == 0);
	CHECK(!add_often(t));
	CHECK(pthread_join(other, &failed) == 0 && !failed);
	expect[0] = 2 * ROUNDS;
	expect[VERTICES * ORBITS - 1] = 4 * ROUNDS;
	expect[columns ? 1 * VERTICES + 3 : 3 * ORBITS + 1] = 6 * ROUNDS;
	got = table_read(t);
	CHECK(got && memcmp(got, expect, sizeof(expect)) == 0);
	free(got);
	table_free(t);
}

static void check_overflow(void)
{
	struct table *t = table_new(&table_host, VERTICES, ORBITS, false);

	CHECK(t);
	CHECK(table_add(t, &(struct tally){ 2, 2, UINT32_MAX }, 1));
	CHECK(table_add(t, NULL, 0));
	CHECK(table_add(t, &(struct tally){ 2, 1, UINT32_MAX - 1 }, 1));
	CHECK(table_add(t, &(struct tally){ 2, 1, 1 }, 1));
	CHECK(!table_add(t, &(struct tally){ 2, 2, 1 }, 1));
	CHECK(!table_add(t, &(struct tally){ 2, 1, UINT32_MAX }, 1));
	table_free(t);
	table_free(NULL);
}

static void check_too_large(void)
{
	CHECK(!room_for(UINT64_MAX / 2, "a table for the test"));
	CHECK(room_for(1, "a table for the test"));
}

int main(void)
{
	check_adding(false);
	check_adding(true);
	check_overflow();
	check_too_large();
	return 0;
}
