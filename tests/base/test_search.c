/* Search by halves, beside looking at one after the other. */
#include "base/search.h"
#include "support/gen.h"
#include "vv_test.h"

enum { MOST = 40 };

static size_t by_hand(const int *v, size_t lo, size_t hi, int x)
{
	while (lo < hi && v[lo] < x)
		lo++;
	return lo;
}

static void test_any(void)
{
	uint64_t state = 1;

	for (int round = 0; round < 20000; round++) {
		size_t n = gen_below(&state, MOST), lo = gen_below(&state, n + 1), asked = 0, i;
		int v[MOST] = { 0 }, x;

		for (size_t k = 1; k < n; k++)
			v[k] = v[k - 1] + (int)gen_below(&state, 3); /* some are the same */
		x = (int)gen_below(&state, 2 * MOST) - 1;
		VV_SEARCH(i, lo, n, (asked++, v[i] < x));
		CHECK_EQ(i, by_hand(v, lo, n, x));
		CHECK(asked <= 6);
	}
}

static void test_more_left_out_than_there_are(void)
{
	size_t i;

	VV_SEARCH(i, 1, 0, i < 100);
	CHECK_EQ(i, 1);
}

int main(void)
{
	test_any();
	test_more_left_out_than_there_are();
	return 0;
}
