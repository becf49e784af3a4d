/* gpu.restart: a restart into device memory, from one layer and from the last of 20, against copying as many bytes from pinned memory; and
 * the time that a checkpoint of it holds the program up, against the dedup alone. */
#include "base/clock.h"
#include "base/err.h"
#include "gpu_work.h"
#include "space/learn.h"
#include "support.h"
#include <stdio.h>

enum { GRAIN = 128, LAYERS = 20, PERMILLE = 10, PIECE = 64 << 20, ROOMS = 16 };

#define OPTIONS "grain=128 codec=none"

static const struct vv_space *space(void)
{
	return vv_space_cuda();
}

/* ---- what it is measured against ------------------------------------------------------------------------------------------------ */

/* Seconds for n bytes, from pinned memory. */
static double copy_in(uint8_t *p, size_t n, uint8_t *pinned)
{
	double begin = vv_clock_s();

	for (size_t at = 0, k = 0; at < n; at += PIECE, k++)
		bench_check(space()->copy_in(p + at, pinned + k % ROOMS * PIECE, n - at < PIECE ? n - at : PIECE), "copy");
	return vv_clock_s() - begin;
}

static uint8_t *take_room(void *arg, size_t want, size_t *got)
{
	static unsigned turn;

	*got = want < PIECE ? want : PIECE;
	return (uint8_t *)arg + (size_t)(turn++ % ROOMS) * PIECE;
}

static int take_data(void *arg, const uint8_t *p, size_t len)
{
	(void)arg;
	(void)p;
	(void)len;
	return 0;
}

static int take_pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	(void)arg;
	(void)piece;
	(void)n;
	return 0;
}

/* Seconds of a pass after 1 % has changed. */
static double sieve(struct bench *b, uint8_t *p, size_t n, uint8_t *pinned)
{
	struct vv_sieve_options opt = { .method = VV_METHOD_RUN, .chunk = GRAIN, .digest_kind = VV_DIGEST_XXH3, .memory = n / 100 * 15 };
	struct vv_sink sink = { pinned, take_room, take_data, take_pieces };
	struct vv_span span = { .id = 1, .p = p, .len = n };
	struct vv_range all = { 0, UINT32_MAX };
	double t[BENCH_ROUNDS_MAX];
	struct vv_sieve *s;

	bench_check(space()->open(&opt, b->pool, &s), "open");
	bench_check(vv_learn_regions(s, &span, 1), "learn");
	bench_check(space()->adopt(s, 1, &all, 1), "adopt");
	for (int i = 0; i < b->rounds; i++) {
		gpu_work_change(p, n, PERMILLE, 5000 + (unsigned)i);
		t[i] = vv_clock_s();
		bench_check(space()->pass(s, &span, 1, 2 + (uint32_t)i, &sink), "pass");
		t[i] = vv_clock_s() - t[i];
	}
	space()->close(s);
	return bench_median(t, b->rounds);
}

/* ---- the lineages ---------------------------------------------------------------------------------------------------------------- */

/* Seconds in varve_checkpoint with 1 % changed; `first`: in the one that stores all. */
static double make(const char *store, const char *name, uint8_t *p, size_t n, int layers, double *first)
{
	double t[LAYERS] = { 0 }, sum;
	struct varve_stats st;
	varve *v = NULL;

	bench_check(varve_open(store, name, OPTIONS, &v), "varve_open");
	bench_check(varve_protect(v, "p", p, n), "varve_protect");
	gpu_work_fill(p, n, 0);
	for (int i = 0; i < layers; i++) {
		if (i)
			gpu_work_change(p, n, PERMILLE, (unsigned)i);
		bench_check(varve_checkpoint(v), "varve_checkpoint");
		bench_check(varve_stats(v, &st), "varve_stats");
		t[i] = st.seconds_blocked;
	}
	*first = t[0];
	sum = layers > 1 ? bench_median(t + 1, layers - 1) : 0;
	bench_check(varve_close(v), "varve_close");
	return sum;
}

static void restart(const char *store, const char *name, uint8_t *p, size_t n, double *whole, double *region)
{
	varve *v = NULL;

	bench_check(varve_open(store, name, OPTIONS, &v), "varve_open");
	*region = vv_clock_s();
	bench_check(varve_restart_region(v, VARVE_LATEST, "p", p, n), "varve_restart_region");
	*region = vv_clock_s() - *region;
	bench_check(varve_close(v), "varve_close");

	gpu_work_change(p, n, 1000, 1);
	bench_check(varve_open(store, name, OPTIONS, &v), "varve_open");
	bench_check(varve_protect(v, "p", p, n), "varve_protect");
	*whole = vv_clock_s();
	bench_check(varve_restart(v, VARVE_LATEST), "varve_restart");
	*whole = vv_clock_s() - *whole;
	bench_check(varve_close(v), "varve_close");
}

static void time_restart(struct bench *b, const char *store, const char *name, const char *kase, uint8_t *p, size_t n, uint8_t *pinned)
{
	double whole[BENCH_ROUNDS_MAX], region[BENCH_ROUNDS_MAX], plain[BENCH_ROUNDS_MAX], w, g, h;

	restart(store, name, p, n, &whole[0], &region[0]);
	copy_in(p, n, pinned);
	for (int i = 0; i < b->rounds; i++) {
		restart(store, name, p, n, &whole[i], &region[i]);
		plain[i] = copy_in(p, n, pinned);
	}
	w = bench_median(whole, b->rounds);
	g = bench_median(region, b->rounds);
	h = bench_median(plain, b->rounds);
	bench_baseline("gpu.restart", kase, "copy", (double)n / h / 1e9, "GB/s");
	bench_line("gpu.restart", kase, "restart_region", g * 1e3, "ms");
	bench_line("gpu.restart", kase, "restart", w * 1e3, "ms");
	bench_line("gpu.restart", kase, "region_vs_copy", g / h, "x");
	bench_at_most("gpu.restart", kase, "restart_vs_copy", w / h, "x", 1.15);
}

static void time_rent(void)
{
	double begin = vv_clock_s();
	uint8_t *p = space()->rent(PIECE);

	bench_baseline("gpu.restart", "64 MiB", "pin", (vv_clock_s() - begin) * 1e3, "ms");
	space()->give_back(p, PIECE);
}

int main(int argc, char **argv)
{
	double alone, first, blocked;
	char store[3200], kase[64];
	uint8_t *p, *pinned;
	struct bench b;
	size_t n;

	bench_open(&b, argc, argv);
	if (space()->present())
		bench_skip(vv_err_last());
	n = bench_size(&b, 8ul << 30, 8ul << 30);
	p = gpu_work_new(n);
	pinned = space()->rent((size_t)ROOMS * PIECE);
	if (!pinned)
		bench_die("no memory");
	snprintf(store, sizeof(store), "%s/restart", b.dir);
	gpu_work_fill(p, n, 0);
	time_rent();
	alone = sieve(&b, p, n, pinned);
	make(store, "one", p, n, 1, &first);
	blocked = make(store, "twenty", p, n, LAYERS, &first);
	snprintf(kase, sizeof(kase), "%.3g GiB, %d B", (double)n / (1 << 30), GRAIN);
	bench_line("gpu.restart", kase, "blocked_first", first * 1e3, "ms");
	bench_line("gpu.restart", kase, "blocked_1_percent", blocked * 1e3, "ms");
	bench_line("gpu.restart", kase, "sieve_1_percent", alone * 1e3, "ms");
	bench_line("gpu.restart", kase, "blocked_vs_sieve", blocked / alone, "x");
	time_restart(&b, store, "one", "1 layer", p, n, pinned);
	time_restart(&b, store, "twenty", "20 layers", p, n, pinned);
	space()->give_back(pinned, (size_t)ROOMS * PIECE);
	gpu_work_free(p);
	bench_remove(store);
	return bench_close(&b);
}
