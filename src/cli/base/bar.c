#include "cli/base/bar.h"
#include "base/clock.h"
#include "cli/base/interrupt.h"
#include "cli/base/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 30 };

static const double patience = 1.0, between = 0.1; /* seconds */

static void draw(struct vv_bar *b, uint64_t done, uint64_t total, double now)
{
	double share = total ? (double)done / (double)total : 0, left;
	int full;

	share = share > 1 ? 1 : share;
	full = (int)(share * WIDTH);
	left = share > 0 ? ceil((now - b->start) * (1 - share) / share) : 0;
	fprintf(stderr, "\r\033[K%s [%.*s%*s] %3d %%", b->what, full, "##############################", WIDTH - full, "",
		(int)(share * 100));
	if (share > 0 && share < 1)
		fprintf(stderr, ", %s left", vv_text_duration(left).s);
	fflush(stderr);
	b->visible = true;
	b->drawn = now;
	vv_interrupt_line(true);
}

/* Any thread may call it; a thread that finds another one drawing continues with its work. */
static void step(void *arg, uint64_t done, uint64_t total)
{
	struct vv_bar *b = arg;
	double now = vv_clock_s();

	if (pthread_mutex_trylock(&b->lock) != 0)
		return;
	if (now - b->start >= patience && now - b->drawn >= between)
		draw(b, done, total, now);
	pthread_mutex_unlock(&b->lock);
}

void vv_bar_init(struct vv_bar *b, const char *what, bool quiet)
{
	const char *term = getenv("TERM");

	*b = (struct vv_bar){ .what = what, .start = vv_clock_s() };
	pthread_mutex_init(&b->lock, NULL);
	b->on = !quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
	b->progress = (struct vv_progress){ b->on ? step : NULL, b };
}

void vv_bar_clear(struct vv_bar *b)
{
	pthread_mutex_lock(&b->lock);
	if (b->visible) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	b->visible = false;
	vv_interrupt_line(false);
	pthread_mutex_unlock(&b->lock);
}

void vv_bar_fini(struct vv_bar *b)
{
	vv_bar_clear(b);
	pthread_mutex_destroy(&b->lock);
}
