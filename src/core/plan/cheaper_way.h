/* Two ways of doing the same, one of which costs less here: found out by doing it the other way now and then. */
#ifndef VV_CORE_PLAN_CHEAPER_WAY_H
#define VV_CORE_PLAN_CHEAPER_WAY_H

struct vv_cheaper_way { /* zeros: nothing is known */
	double cost[2];       /* of each way, as far as is known */
	unsigned tries[2];
	unsigned better;      /* the way to go, 0 or 1 */
	unsigned rest, pause; /* times to go until the other one is tried again, and how many there were */
};

/* The way for this time. */
unsigned vv_cheaper_way_choose(const struct vv_cheaper_way *d);
/* What it cost, whichever was taken. */
void vv_cheaper_way_note(struct vv_cheaper_way *d, unsigned way, double cost);

#endif
