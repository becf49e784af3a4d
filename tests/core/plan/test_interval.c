/* The interval: given, from an overhead, from Daly's estimate; checked against a brute-force search for the optimum. */
#include "core/plan/interval.h"
#include "vv_test.h"
#include <math.h>

/* Expected run time per unit of work with exponential failures, interval t, cost c (restart cost left out). */
static double waste(double t, double c, double m)
{
	return m * (exp((t + c) / m) - 1) / t;
}

static void near_optimum(double c, double m)
{
	struct vv_interval d = { .mtbf = m };
	double best = INFINITY, got = waste(vv_interval_after(&d, c), c, m);

	for (double t = c / 10; t < 10 * m; t *= 1.001)
		best = fmin(best, waste(t, c, m));
	CHECK(got <= best * 1.005);
}

int main(void)
{
	struct vv_interval none = { 0 }, every = { .interval = 10 }, share = { .overhead = 0.02 };
	struct vv_interval both = { .interval = 10, .overhead = 0.02 }, rare = { .interval = 10, .mtbf = 1e9 };

	CHECK(vv_interval_after(&none, 5) == 0);
	CHECK(vv_interval_after(&every, 5) == 10);
	CHECK(fabs(vv_interval_after(&share, 1) - 49) < 1e-9); /* 1 s in 50 */
	CHECK(vv_interval_after(&share, 0) == 0);
	CHECK(fabs(vv_interval_after(&both, 1) - 49) < 1e-9); /* the budget wins */
	CHECK(vv_interval_after(&both, 0.01) == 10);
	CHECK(vv_interval_after(&rare, 1) == 10);
	near_optimum(1, 3600);
	near_optimum(30, 3600);
	near_optimum(600, 3600);
	near_optimum(0.01, 86400);
	return 0;
}
