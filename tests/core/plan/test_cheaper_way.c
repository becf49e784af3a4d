/* Of two ways the cheaper one is taken, found out soon, kept although others disturb, and given up when things change; and trying the dearer
 * one costs little. */
#include "core/plan/cheaper_way.h"
#include "support/gen.h"
#include "vv_test.h"

struct count {
	unsigned taken[2];
	double spent;
};

/* noise: so many times as dear, at random, one time in `often`. */
static struct count go_on(struct vv_cheaper_way *d, const double cost[2], unsigned rounds, double noise, uint64_t often, uint64_t *state)
{
	struct count c = { .spent = 0 };

	for (unsigned i = 0; i < rounds; i++) {
		unsigned way = vv_cheaper_way_choose(d);
		double now = cost[way] * (often && gen_below(state, often) == 0 ? noise : 1);

		CHECK(way < 2);
		vv_cheaper_way_note(d, way, now);
		c.taken[way]++;
		c.spent += now;
	}
	return c;
}

static void test_first(void)
{
	for (unsigned good = 0; good < 2; good++) {
		double cost[2] = { 5, 5 };
		struct vv_cheaper_way d = { 0 };
		uint64_t state = 1;
		struct count c;

		cost[good] = 1;
		c = go_on(&d, cost, 4, 1, 0, &state);
		CHECK(c.taken[0] == 2 && c.taken[1] == 2);
		for (int i = 0; i < 4; i++) { /* after that at once the better one */
			CHECK_EQ(vv_cheaper_way_choose(&d), good);
			vv_cheaper_way_note(&d, good, 1);
		}
	}
}

/* The first is known from elsewhere before the second was ever chosen. */
static void test_known(void)
{
	struct vv_cheaper_way d = { 0 };

	vv_cheaper_way_note(&d, 0, 2);
	vv_cheaper_way_note(&d, 0, 2);
	CHECK_EQ(vv_cheaper_way_choose(&d), 1);
	vv_cheaper_way_note(&d, 1, 5); /* the first time does not count */
	CHECK_EQ(vv_cheaper_way_choose(&d), 1);
	vv_cheaper_way_note(&d, 1, 1);
	CHECK_EQ(vv_cheaper_way_choose(&d), 1);
}

static void test_cheap(uint64_t seed)
{
	unsigned good = (unsigned)(seed % 2);
	double cost[2] = { 6, 6 };
	struct vv_cheaper_way d = { 0 };
	uint64_t state = seed;
	struct count c;

	cost[good] = 1;
	c = go_on(&d, cost, 2000, 1, 0, &state);
	CHECK(c.spent < 1.05 * 2000);
	CHECK(c.taken[1 - good] >= 5); /* but it is not forgotten */
	d = (struct vv_cheaper_way){ 0 };
	c = go_on(&d, cost, 2000, 10, 5, &state); /* one in five ten times as dear */
	CHECK(c.taken[good] > 1900);
}

/* What was cheap becomes dear: found out by paying; what was dear becomes cheap: by trying. */
static void test_change(uint64_t seed)
{
	double cost[2] = { 1, 4 }, dear[2] = { 9, 4 }, cheap[2] = { 1, 0.2 };
	struct vv_cheaper_way d = { 0 };
	uint64_t state = seed;

	go_on(&d, cost, 1000, 1, 0, &state);
	CHECK(go_on(&d, dear, 100, 1, 0, &state).taken[1] > 80);
	d = (struct vv_cheaper_way){ 0 };
	go_on(&d, cost, 1000, 1, 0, &state);
	CHECK(go_on(&d, cheap, 1000, 1, 0, &state).taken[1] > 700);
}

/* Two that are alike, with some noise: no to and fro. */
static void test_alike(uint64_t seed)
{
	double cost[2] = { 1, 1.02 };
	struct vv_cheaper_way d = { 0 };
	unsigned turns = 0, last = 2;
	uint64_t state = seed;

	for (int i = 0; i < 3000; i++) {
		unsigned way = vv_cheaper_way_choose(&d);

		vv_cheaper_way_note(&d, way, cost[way] * (1 + 0.3 * (double)gen_below(&state, 100) / 100));
		turns += d.better != last;
		last = d.better;
	}
	CHECK(turns < 10);
}

int main(void)
{
	test_first();
	test_known();
	for (uint64_t seed = 1; seed <= 50; seed++) {
		test_cheap(seed);
		test_change(seed);
		test_alike(seed);
	}
	return 0;
}
