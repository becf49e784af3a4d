/* When the next checkpoint should be: Young 1974, Daly 2006. */
#ifndef VV_CORE_DUE_H
#define VV_CORE_DUE_H

struct vv_due {
	double interval; /* seconds; 0 = not set */
	double overhead; /* share of run time; 0 = not set */
	double mtbf;     /* seconds; 0 = not set */
};

/* Seconds from the end of one checkpoint to the start of the next, if one costs `cost` seconds. The shortest of what
 * `interval` and `mtbf` ask for, but never so short that `overhead` is exceeded. 0 if nothing is set. */
double vv_due_after(const struct vv_due *d, double cost);

#endif
