#include "core/plan/interval.h"
#include <math.h>

/* Daly's higher-order estimate of the optimum, valid for cost < 2 mtbf; beyond it the mtbf
 * itself. */
static double daly(double cost, double mtbf)
{
	double x = cost / (2 * mtbf);

	if (x >= 1)
		return mtbf;
	return sqrt(2 * cost * mtbf) * (1 + sqrt(x) / 3 + x / 9) - cost;
}

double vv_interval_after(const struct vv_interval *d, double cost)
{
	double wait = d->interval, least;

	if (d->mtbf > 0 && (wait <= 0 || daly(cost, d->mtbf) < wait))
		wait = daly(cost, d->mtbf);
	if (d->overhead > 0) {
		least = cost * (1 - d->overhead) / d->overhead;
		wait = wait > least ? wait : least;
	}
	return wait > 0 ? wait : 0;
}
