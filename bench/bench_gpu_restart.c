/* gpu.restart: a restart into device memory, from one layer and from the last of 20, against copying as many bytes from pinned memory; and
 * the time that a checkpoint of it holds the program up, against the dedup alone.
 *
 * [--fillers=N,N,...] [--stripes=KIB,KIB,...] [--rooms=PERCENT,...] [--spare=N,N,...]: instead, restarts in all these ways (engine/read/device_buffers.h), and what their stages take. */
#include "base/clock.h"
#include "base/err.h"
#include "engine/read/device_load.h"
#include "gpu_work.h"
#include "space/learn.h"
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAIN = 128, LAYERS = 20, PERMILLE = 10, PIECE = 64 << 20, ROOMS = 16, TRIES = 16 };

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
	struct vv_sieve_options opt = { .method = VV_METHOD_RUN, .chunk = GRAIN, .digest_kind = VV_DIGEST_XXH3, .memory = n / 100 * 15, .states = 4 };
	struct vv_sink sink = { pinned, take_room, take_data, take_pieces };
	struct vv_span span = { .id = 1, .p = p, .len = n };
	struct vv_number_range all = { 0, UINT32_MAX };
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

	bench_load(store);
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

/* ---- other ways ------------------------------------------------------------------------------------------------------------------- */

struct list { /* of an option; none: the usual */
	unsigned v[TRIES];
	size_t n;
};

struct sweep {
	struct list fillers, stripes, rooms, spare;
};

/* Is it the option of that name? */
static bool take_list(const char *arg, const char *name, struct list *out)
{
	size_t n = strlen(name);
	char *end;

	if (strncmp(arg, name, n) != 0 || arg[n] != '=')
		return false;
	for (arg += n + 1; *arg; arg = *end ? end + 1 : end) {
		unsigned long v = strtoul(arg, &end, 10);

		if (end == arg || (*end && *end != ',') || v == 0 || v > 1 << 20 || out->n == TRIES)
			bench_die("%s wants up to %d numbers", name, TRIES);
		out->v[out->n++] = (unsigned)v;
	}
	return true;
}

/* Takes the options that are not everybody's out of the arguments. */
static int take_options(int argc, char **argv, struct sweep *s)
{
	int n = 1;

	for (int i = 1; i < argc; i++)
		if (!take_list(argv[i], "--fillers", &s->fillers) && !take_list(argv[i], "--stripes", &s->stripes) &&
		    !take_list(argv[i], "--rooms", &s->rooms) && !take_list(argv[i], "--spare", &s->spare))
			argv[n++] = argv[i];
	argv[n] = NULL;
	return n;
}

static void settle_list(struct list *l, unsigned usual)
{
	if (l->n == 0)
		l->v[l->n++] = usual;
}

struct stages {
	double alone, beside, bytes; /* the table with nothing beside it, and while rooms are pinned; the bytes */
};

/* A restart of the region, stage by stage. */
static struct stages time_stages(struct bench *b, const char *store, const char *name, uint64_t epoch, uint8_t *p, size_t n)
{
	struct vv_store_options opt = { 0 };
	struct vv_lineage lineage = { 0 };
	struct vv_run_table table = { 0 };
	struct vv_device_buffers buffers = { 0 };
	struct vv_extents left = { 0 };
	struct vv_store *s = NULL;
	struct stages t;

	bench_check(vv_store_open(store, &opt, &s), "store");
	bench_check(vv_catalog_open(s, name, false, &lineage), "lineage");
	t.alone = vv_clock_s();
	bench_check(vv_run_table_load(&lineage, epoch, 0, &(struct vv_run_table_how){ .pool = b->pool, .runs = VV_RUN_TABLE_BEGUN }, &table), "table");
	t.alone = vv_clock_s() - t.alone;
	vv_run_table_fini(&table);
	t.beside = vv_clock_s();
	vv_device_buffers_begin(&buffers, b->pool, space(), 0, n / 10, n);
	bench_check(vv_run_table_load(&lineage, epoch, 0, &(struct vv_run_table_how){ .pool = b->pool, .runs = VV_RUN_TABLE_BEGUN }, &table), "table");
	t.bytes = vv_clock_s();
	t.beside = t.bytes - t.beside;
	bench_check(vv_device_load_read(&lineage, b->pool, &buffers, &(struct vv_device_load_want){ &(struct vv_want){ &table.region[0].runs, 0, n, p, "p" }, table.region[0].unmerged, &left }, 1), "bytes");
	t.bytes = vv_clock_s() - t.bytes;
	if (left.n)
		fprintf(stderr, "bench: the host would have to read %zu stretches\n", left.n);
	vv_payload_extents_fini(&left);
	vv_device_buffers_finish_close(&buffers);
	vv_run_table_fini(&table);
	vv_store_close(s);
	return t;
}

static void time_ways(struct bench *b, const char *store, const char *name, uint64_t epoch, const struct vv_device_buffers_sizes *w, uint8_t *p, size_t n, double copy)
{
	double whole[BENCH_ROUNDS_MAX], alone[BENCH_ROUNDS_MAX], beside[BENCH_ROUNDS_MAX], bytes[BENCH_ROUNDS_MAX], ignored;
	char kase[100];

	snprintf(kase, sizeof(kase), "%s, %u fillers, %u KiB in %u %%, %u spare", name, w->fillers, (unsigned)(w->stripe >> 10), w->room, w->spare);
	vv_device_buffers_set_sizes(w);
	for (int i = 0; i < b->rounds; i++) {
		struct stages t = time_stages(b, store, name, epoch, p, n);

		alone[i] = t.alone;
		beside[i] = t.beside;
		bytes[i] = t.bytes;
		restart(store, name, p, n, &whole[i], &ignored);
	}
	vv_device_buffers_set_sizes(NULL);
	bench_line("gpu.restart", kase, "table_alone", bench_median(alone, b->rounds) * 1e3, "ms");
	bench_line("gpu.restart", kase, "table_beside_pinning", bench_median(beside, b->rounds) * 1e3, "ms");
	bench_line("gpu.restart", kase, "bytes", bench_median(bytes, b->rounds) * 1e3, "ms");
	bench_line("gpu.restart", kase, "restart", bench_median(whole, b->rounds) * 1e3, "ms");
	bench_line("gpu.restart", kase, "restart_vs_copy", bench_median(whole, b->rounds) / copy, "x");
}

static void sweep(struct bench *b, struct sweep *s, const char *store, uint8_t *p, size_t n, uint8_t *pinned)
{
	double copy;

	settle_list(&s->fillers, vv_device_buffers_default.fillers);
	settle_list(&s->stripes, (unsigned)(vv_device_buffers_default.stripe >> 10));
	settle_list(&s->spare, vv_device_buffers_default.spare);
	settle_list(&s->rooms, vv_device_buffers_default.room);
	copy_in(p, n, pinned);
	copy = copy_in(p, n, pinned);
	bench_baseline("gpu.restart", "sweep", "copy", copy * 1e3, "ms");
	for (size_t i = 0; i < s->stripes.n * s->rooms.n * s->fillers.n * s->spare.n; i++) {
		size_t k = i;
		struct vv_device_buffers_sizes w;

		w.spare = s->spare.v[k % s->spare.n];
		k /= s->spare.n;
		w.fillers = s->fillers.v[k % s->fillers.n];
		k /= s->fillers.n;
		w.room = s->rooms.v[k % s->rooms.n];
		w.stripe = (uint64_t)s->stripes.v[k / s->rooms.n] << 10;
		time_ways(b, store, "one", 1, &w, p, n, copy);
		time_ways(b, store, "twenty", LAYERS, &w, p, n, copy);
	}
}

static void time_rent(void)
{
	double begin = vv_clock_s();
	uint8_t *p = space()->rent(0, PIECE);

	bench_baseline("gpu.restart", "64 MiB", "pin", (vv_clock_s() - begin) * 1e3, "ms");
	space()->give_back(0, p, PIECE);
}

static void usual(struct bench *b, const char *store, uint8_t *p, size_t n, uint8_t *pinned)
{
	double alone, first, blocked;
	char kase[64];

	time_rent();
	alone = sieve(b, p, n, pinned);
	make(store, "one", p, n, 1, &first);
	blocked = make(store, "twenty", p, n, LAYERS, &first);
	snprintf(kase, sizeof(kase), "%.3g GiB, %d B", (double)n / (1 << 30), GRAIN);
	bench_line("gpu.restart", kase, "blocked_first", first * 1e3, "ms");
	bench_line("gpu.restart", kase, "blocked_1_percent", blocked * 1e3, "ms");
	bench_line("gpu.restart", kase, "sieve_1_percent", alone * 1e3, "ms");
	bench_line("gpu.restart", kase, "blocked_vs_sieve", blocked / alone, "x");
	time_restart(b, store, "one", "1 layer", p, n, pinned);
	time_restart(b, store, "twenty", "20 layers", p, n, pinned);
}

int main(int argc, char **argv)
{
	struct sweep ways = { 0 };
	uint8_t *p, *pinned;
	char store[3200];
	struct bench b;
	double ignored;
	size_t n;

	argc = take_options(argc, argv, &ways);
	bench_open(&b, argc, argv);
	if (space()->present())
		bench_skip(vv_err_last());
	n = bench_size(&b, 8ul << 30, 8ul << 30);
	p = gpu_work_new(n);
	pinned = space()->rent(0, (size_t)ROOMS * PIECE);
	if (!pinned)
		bench_die("no memory");
	snprintf(store, sizeof(store), "%s/restart", b.dir);
	gpu_work_fill(p, n, 0);
	if (ways.fillers.n || ways.stripes.n || ways.rooms.n || ways.spare.n) {
		make(store, "one", p, n, 1, &ignored);
		make(store, "twenty", p, n, LAYERS, &ignored);
		sweep(&b, &ways, store, p, n, pinned);
	} else {
		usual(&b, store, p, n, pinned);
	}
	space()->give_back(0, pinned, (size_t)ROOMS * PIECE);
	gpu_work_free(p);
	bench_remove(store);
	return bench_close(&b);
}
