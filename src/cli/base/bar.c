#include "cli/base/bar.h"
#include "base/clock.h"
#include "cli/base/interrupt.h"
#include "cli/base/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH = 30, LEAST = 5, COLUMNS = 80, LINE = 160 };

static const double patience = 1.0, between = 0.1; /* seconds */

static int columns(void)
{
	struct winsize w;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : COLUMNS;
}

/* As " 42 %, 1.2 GiB of 3.0 GiB, 350 MiB/s, 5.1 s left". */
static int describe(char out[LINE], double share, uint64_t done, uint64_t total, double elapsed)
{
	int n = snprintf(out, LINE, "%3d %%, %s of %s", (int)(share * 100), vv_text_size(done).s, vv_text_size(total).s);

	if (share > 0 && elapsed > 0)
		n += snprintf(out + n, (size_t)(LINE - n), ", %s/s", vv_text_size((uint64_t)((double)done / elapsed)).s);
	if (share > 0 && share < 1)
		n += snprintf(out + n, (size_t)(LINE - n), ", %s left", vv_text_duration(ceil(elapsed * (1 - share) / share)).s);
	return n;
}

/* The line fits into the window: the bar gets the room that the figures leave. */
static void draw(struct vv_bar *b, uint64_t done, uint64_t total, double now)
{
	double share = total ? (double)done / (double)total : 0;
	char text[LINE];
	int width, full;

	share = share > 1 ? 1 : share;
	width = columns() - describe(text, share, done, total, now - b->start) - (int)strlen(b->what) - (int)sizeof(" [] ");
	width = width > WIDTH ? WIDTH : width;
	full = (int)(share * width);
	fprintf(stderr, "\r\033[K%s ", b->what);
	if (width >= LEAST)
		fprintf(stderr, "[%.*s%*s] ", full, "##############################", width - full, "");
	fprintf(stderr, "%.*s", columns() - (int)strlen(b->what) - 2, text);
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
	b->progress = (struct vv_progress){ .step = b->on ? step : NULL, .arg = b };
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
