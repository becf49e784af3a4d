#include "core/plan/cheaper_way.h"

/* How often the loser is tried again: less and less, so that it costs little even where it is many times dearer. */
enum { PAUSE_FIRST = 4, PAUSE_MOST = 256 };

/* The first time is dearer than all others, so that none is judged by it. */
enum { FIRST = 2 };

/* It wins only by this much: what is as good as equal does not alternate. */
static const double MARGIN = 0.9;

unsigned vv_cheaper_way_choose(const struct vv_cheaper_way *d)
{
	if (d->tries[0] < FIRST || d->tries[1] < FIRST)
		return d->tries[0] && d->tries[1] < FIRST;
	return d->rest ? d->better : 1 - d->better;
}

/* Other programs make a thing dearer for a time, never cheaper: what is less is believed at once, what is more by and by. */
static double settle(double known, double now)
{
	return now < known ? now : known + (now - known) / 16;
}

void vv_cheaper_way_note(struct vv_cheaper_way *d, unsigned way, double cost)
{
	unsigned other = 1 - d->better;

	d->cost[way] = d->tries[way] ? settle(d->cost[way], cost) : cost;
	d->tries[way] += d->tries[way] < FIRST;
	if (d->tries[0] < FIRST || d->tries[1] < FIRST)
		return;
	if (d->cost[other] < MARGIN * d->cost[d->better]) {
		d->better = other;
		d->rest = d->pause = PAUSE_FIRST;
	} else if (!d->pause) {
		d->rest = d->pause = PAUSE_FIRST;
	} else if (way == other) {
		d->pause = d->pause < PAUSE_MOST ? 2 * d->pause : PAUSE_MOST;
		d->rest = d->pause;
	} else if (d->rest) {
		d->rest--;
	}
}
