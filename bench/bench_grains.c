/* dedup.restart: the last of 20 checkpoints in grains, back into memory, against memcpy on all cores, and on one. And against the least that there is to do: the same pieces,
 * each copied over what lies below it and all of it hashed, by the same threads, from memory in which they lie as in the layers, with tables that need not be
 * read. */
#include "base/clock.h"
#include "core/format/digest.h"
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GRAIN = 128, EPOCHS = 20 };

/* 1 % of the table, in pieces of so many grains, wherever they fall. */
static void change(uint8_t *p, size_t n, size_t piece, uint64_t seed)
{
	size_t places = n / piece;

	for (size_t i = 0; i < places / 100; i++) {
		uint64_t *at = (uint64_t *)(void *)(p + bench_random(&seed) % places * piece);

		for (size_t k = 0; k < piece / sizeof(*at); k += GRAIN / sizeof(*at))
			at[k] = bench_random(&seed);
	}
}

struct copying {
	const uint8_t *from;
	uint8_t *to;
	size_t n;
};

static void copy_step(void *arg, size_t i)
{
	struct copying *c = arg;
	size_t at = i * BENCH_STEP, n = c->n - at < BENCH_STEP ? c->n - at : BENCH_STEP;

	memcpy(c->to + at, c->from + at, n);
}

static double copy_alone(const uint8_t *from, uint8_t *to, size_t n)
{
	double start = vv_clock_s();

	memcpy(to, from, n);
	return vv_clock_s() - start;
}

static double copy(struct bench *b, const uint8_t *from, uint8_t *to, size_t n)
{
	struct copying c = { from, to, n };
	double start = vv_clock_s();

	vv_pool_each(b->pool, (n + BENCH_STEP - 1) / BENCH_STEP, copy_step, &c);
	return vv_clock_s() - start;
}

/* ---- restarts -------------------------------------------------------------------------------------------------------------- */

static varve *open_table(const char *store, uint8_t *to, size_t n)
{
	varve *v = NULL;

	bench_check(varve_open(store, "table", "grain=128 codec=none", &v), "varve_open");
	if (to)
		bench_check(varve_protect(v, "p", to, n), "varve_protect");
	return v;
}

static void check_bytes(const uint8_t *to, const uint8_t *p, size_t n)
{
	if (memcmp(to, p, n) != 0)
		bench_die("dedup.restart: the restart gave other bytes");
}

/* Any call that looks at what the session knows waits until all is known; this one does nothing else. */
static void wait_until_known(varve *v)
{
	struct varve_stats st;

	varve_stats(v, &st);
}

/* To the return, and *known: until the grains are hashed, which the program need not wait for. */
static double restart(const char *store, uint8_t *to, const uint8_t *p, size_t n, double *known)
{
	double start, took;
	varve *v;

	memset(to, 1, n);
	v = open_table(store, to, n);
	start = vv_clock_s();
	bench_check(varve_restart(v, EPOCHS), "varve_restart");
	took = vv_clock_s() - start;
	wait_until_known(v);
	*known = vv_clock_s() - start;
	bench_check(varve_close(v), "varve_close");
	check_bytes(to, p, n);
	return took;
}

/* Without a session that goes on from it. */
static double read_only(const char *store, uint8_t *to, const uint8_t *p, size_t n)
{
	double start, took;
	varve *v;

	memset(to, 1, n);
	v = open_table(store, NULL, 0);
	start = vv_clock_s();
	bench_check(varve_restart_region(v, EPOCHS, "p", to, n), "varve_restart_region");
	took = vv_clock_s() - start;
	bench_check(varve_close(v), "varve_close");
	check_bytes(to, p, n);
	return took;
}

struct first { /* checkpoint after a restart */
	double writing, seconds;
	uint64_t stored; /* bytes */
};

/* The program writes, and asks for a checkpoint: when all is known, or at once. */
static struct first first_checkpoint(const char *store, uint8_t *to, size_t n, size_t piece, bool at_once)
{
	static uint64_t round; /* so that each time other content is written */
	struct varve_stats st;
	struct first f;
	double start;
	varve *v;

	memset(to, 1, n);
	v = open_table(store, to, n);
	bench_check(varve_restart(v, EPOCHS), "varve_restart");
	if (!at_once)
		wait_until_known(v);
	start = vv_clock_s();
	change(to, n, piece, EPOCHS + round++);
	f.writing = vv_clock_s() - start;
	start = vv_clock_s();
	bench_check(varve_checkpoint(v), "varve_checkpoint");
	f.seconds = vv_clock_s() - start;
	bench_check(varve_stats(v, &st), "varve_stats");
	f.stored = st.bytes_layer;
	bench_check(varve_close(v), "varve_close");
	return f;
}

static void tell_first(struct bench *b, const char *kase, const char *store, uint8_t *to, size_t n, size_t piece, bool at_once)
{
	double seconds[BENCH_ROUNDS_MAX], writing[BENCH_ROUNDS_MAX];
	const char *when = at_once ? "at_once" : "later";
	struct first f = { 0 };
	char metric[64];

	for (int i = 0; i < b->rounds; i++) {
		f = first_checkpoint(store, to, n, piece, at_once);
		seconds[i] = f.seconds;
		writing[i] = f.writing;
	}
	snprintf(metric, sizeof(metric), "writing_%s", when);
	bench_line("dedup.restart", kase, metric, 1e3 * bench_median(writing, b->rounds), "ms");
	snprintf(metric, sizeof(metric), "first_checkpoint_%s", when);
	bench_line("dedup.restart", kase, metric, 1e3 * bench_median(seconds, b->rounds), "ms");
	snprintf(metric, sizeof(metric), "first_layer_%s", when);
	bench_line("dedup.restart", kase, metric, (double)f.stored / 1e6, "MB");
}

static void make_table(struct bench *b, const char *store, uint8_t *p, size_t n, size_t piece)
{
	varve *v;

	bench_fill(b, p, n, 1);
	v = open_table(store, p, n);
	for (int i = 0; i < EPOCHS; i++) {
		if (i)
			change(p, n, piece, (uint64_t)i);
		bench_check(varve_checkpoint(v), "varve_checkpoint");
	}
	bench_check(varve_close(v), "varve_close");
}

/* ---- the least that there is to do ---------------------------------------------------------------------------------------- */

enum { WINDOW = 1 << 20 };

struct later { /* a layer after the first */
	uint8_t *bytes;  /* of its pieces, one after the other */
	uint32_t *place; /* of each, counted in pieces, ascending */
	size_t *first;   /* of each window of the table, and where the last one ends */
	size_t n;
};

struct bare {
	const uint8_t *below;
	uint8_t *to;
	size_t n, piece;
	struct later later[EPOCHS - 1];
};

static int by_place(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The places that `change` finds. */
static void lay(struct later *l, size_t n, size_t piece, uint64_t seed)
{
	size_t places = n / piece, windows = n / WINDOW, most = places / 100;

	l->bytes = bench_memory(most * piece + BENCH_PAGE);
	l->place = bench_memory(most * sizeof(*l->place));
	l->first = bench_memory((windows + 1) * sizeof(*l->first));
	for (size_t i = 0; i < most; i++) {
		l->place[i] = (uint32_t)(bench_random(&seed) % places);
		for (size_t k = 0; k < piece; k += GRAIN)
			bench_random(&seed);
	}
	qsort(l->place, most, sizeof(*l->place), by_place);
	l->n = 0;
	for (size_t i = 0; i < most; i++)
		if (l->n == 0 || l->place[l->n - 1] != l->place[i])
			l->place[l->n++] = l->place[i];
	for (size_t w = 0, i = 0; w <= windows; w++) {
		while (i < l->n && l->place[i] * piece < w * WINDOW)
			i++;
		l->first[w] = i;
	}
}

/* A page of a layer is hashed when the first of its pieces is met. */
static void copy_pieces(const struct bare *s, const struct later *l, size_t window)
{
	static const struct vv_digest any;
	size_t hashed = l->first[window] * s->piece / BENCH_PAGE;

	for (size_t i = l->first[window]; i < l->first[window + 1]; i++) {
		size_t at = i * s->piece;

		if (at / BENCH_PAGE >= hashed) {
			hashed = at / BENCH_PAGE + 1;
			vv_digest_fits(l->bytes + (hashed - 1) * BENCH_PAGE, BENCH_PAGE, &any);
		}
		memcpy(s->to + l->place[i] * s->piece, l->bytes + at, s->piece);
	}
}

static void copy_window(void *arg, size_t i)
{
	const struct bare *s = arg;

	vv_digest_check_copy(s->to + i * WINDOW, s->below + i * WINDOW, WINDOW);
	for (int k = 0; k < EPOCHS - 1; k++)
		copy_pieces(s, &s->later[k], i);
}

static double bare_copy(struct bench *b, struct bare *s)
{
	double start = vv_clock_s();

	vv_pool_each(b->pool, s->n / WINDOW, copy_window, s);
	return vv_clock_s() - start;
}

static void bare_new(struct bare *s, const uint8_t *below, uint8_t *to, size_t n, size_t piece)
{
	*s = (struct bare){ .below = below, .to = to, .n = n / WINDOW * WINDOW, .piece = piece };
	for (int i = 0; i < EPOCHS - 1; i++)
		lay(&s->later[i], s->n, piece, (uint64_t)i + 1);
}

static void bare_free(struct bare *s)
{
	for (int i = 0; i < EPOCHS - 1; i++) {
		size_t most = s->n / s->piece / 100;

		munmap(s->later[i].bytes, most * s->piece + BENCH_PAGE);
		munmap(s->later[i].place, most * sizeof(*s->later[i].place));
		munmap(s->later[i].first, (s->n / WINDOW + 1) * sizeof(*s->later[i].first));
	}
}

/* ---- all of it --------------------------------------------------------------------------------------------------------------- */

static void restart_from(struct bench *b, size_t n, size_t piece)
{
	uint8_t *p = bench_memory(n), *to = bench_memory(n);
	double ours[BENCH_ROUNDS_MAX], known[BENCH_ROUNDS_MAX], read[BENCH_ROUNDS_MAX], plain[BENCH_ROUNDS_MAX];
	double least[BENCH_ROUNDS_MAX], alone[BENCH_ROUNDS_MAX], o, r, c;
	struct bare bare;
	char store[3200], kase[64];

	snprintf(store, sizeof(store), "%s/restart", b->dir);
	snprintf(kase, sizeof(kase), "%d checkpoints, pieces of %zu B", EPOCHS, piece);
	make_table(b, store, p, n, piece);
	bare_new(&bare, p, to, n, piece);
	bench_settle(b, 0);
	bench_load(store);
	restart(store, to, p, n, known); /* for nothing */
	for (int i = 0; i < b->rounds; i++) {
		plain[i] = copy(b, p, to, n);
		least[i] = bare_copy(b, &bare);
		alone[i] = copy_alone(p, to, n);
		ours[i] = restart(store, to, p, n, &known[i]);
		read[i] = read_only(store, to, p, n);
	}
	o = bench_median(ours, b->rounds);
	r = bench_median(read, b->rounds);
	c = bench_median(plain, b->rounds);
	bench_baseline("dedup.restart", kase, "memcpy_rate", (double)n / c / 1e9, "GB/s");
	bench_baseline("dedup.restart", kase, "bare_copy_rate_vs_memcpy", c / bench_median(least, b->rounds), "x");
	bench_line("dedup.restart", kase, "rate", (double)n / o / 1e9, "GB/s");
	bench_line("dedup.restart", kase, "read_rate", (double)n / r / 1e9, "GB/s");
	bench_line("dedup.restart", kase, "until_return", 1e3 * o, "ms");
	bench_line("dedup.restart", kase, "until_known", 1e3 * bench_median(known, b->rounds), "ms");
	bench_at_least("dedup.restart", kase, "rate_vs_memcpy_of_one_thread", bench_median(alone, b->rounds) / o, "x", 0.5);
	bench_at_least("dedup.restart", kase, "rate_vs_memcpy", c / o, "x", 0.5);
	bench_at_least("dedup.restart", kase, "read_rate_vs_memcpy", c / r, "x", 0.5);
	tell_first(b, kase, store, to, n, piece, false);
	tell_first(b, kase, store, to, n, piece, true);
	bench_remove(store);
	bare_free(&bare);
	munmap(p, n);
	munmap(to, n);
}

static void dedup_restart(struct bench *b)
{
	size_t n = bench_size(b, 1ul << 30, 1ul << 30);

	restart_from(b, n, GRAIN);
	restart_from(b, n, 8 * GRAIN);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, argc, argv);
	dedup_restart(&b);
	return bench_close(&b);
}
