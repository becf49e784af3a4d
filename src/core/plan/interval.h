/* The time of the next checkpoint: Young 1974, Daly 2006. */
#ifndef VV_CORE_PLAN_INTERVAL_H
#define VV_CORE_PLAN_INTERVAL_H

struct vv_interval {
	double interval; /* seconds; 0 = not set */
	double overhead; /* share of run time; 0 = not set */
	double mtbf;     /* seconds; 0 = not set */
};

/* Returns the seconds from the end of one checkpoint to the start of the next, if one costs `cost`
 * seconds. That is the shorter of the periods that `interval` and `mtbf` ask for, but never so
 * short that `overhead` is exceeded. 0 if nothing is set. */
double vv_interval_after(const struct vv_interval *d, double cost);

#endif
