/* gpu.dedup: dedup of small grains in device memory, against reading it, and against bringing all of it, or the difference alone, to the
 * host. */
#include "base/clock.h"
#include "base/err.h"
#include "gpu/gpu_sieve.h"
#include "gpu_work.h"
#include "space/learn.h"
#include "support.h"
#include <stdio.h>
#include <string.h>

enum { ROOM = 8 << 20, ROOMS = 32 }; /* as large as the engine has them */

struct limits { /* bytes per second */
	double read, copy, to_host;
};

struct board { /* one size */
	struct bench *b;
	size_t size;
	uint8_t *p, *before, *after;
	uint8_t *room; /* of the host, ROOMS of them */
	struct limits limit;
};

static double gb(double bytes_per_s)
{
	return bytes_per_s / 1e9;
}

/* ---- a sink that keeps nothing ----------------------------------------------------------------------------------------- */

struct keep {
	uint8_t *room;
	unsigned turn;
	uint64_t data, pieces;
};

static uint8_t *take_room(void *arg, size_t want, size_t *got)
{
	struct keep *k = arg;

	*got = want < ROOM ? want : ROOM;
	return k->room + (size_t)(k->turn++ % ROOMS) * ROOM;
}

static int take_data(void *arg, const uint8_t *p, size_t len)
{
	(void)p;
	((struct keep *)arg)->data += len;
	return 0;
}

static int take_pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	(void)piece;
	((struct keep *)arg)->pieces += n;
	return 0;
}

/* ---- passes -------------------------------------------------------------------------------------------------------------- */

struct run { /* a sieve over the board */
	const struct board *on;
	struct vv_sieve *sieve;
	uint32_t ordinal;
};

static const struct vv_space *space(void)
{
	return vv_space_cuda();
}

static struct run open_run(const struct board *on, enum vv_method method, uint32_t chunk)
{
	/* as much as ever helps: the limit is another matter */
	struct vv_sieve_options opt = { .method = method, .chunk = chunk, .digest_kind = VV_DIGEST_XXH3, .memory = on->size * 4, .states = 4 };
	struct run r = { .on = on };

	bench_check(space()->open(&opt, on->b->pool, &r.sieve), "open");
	return r;
}

static struct vv_span span_of(const struct board *on)
{
	return (struct vv_span){ .id = 1, .p = on->p, .len = on->size };
}

/* Seconds. */
static double pass(struct run *r, struct keep *out)
{
	struct keep k = { .room = r->on->room };
	struct vv_sink sink = { &k, take_room, take_data, take_pieces };
	struct vv_span span = span_of(r->on);
	double begin = vv_clock_s();

	bench_check(space()->pass(r->sieve, &span, 1, ++r->ordinal, &sink), "pass");
	begin = vv_clock_s() - begin;
	if (out)
		*out = k;
	return begin;
}

/* The board holds the state before, and the sieve knows all of it. */
static void reset(struct run *r)
{
	struct vv_number_range all = { 0, UINT32_MAX };
	struct vv_span span = span_of(r->on);

	gpu_work_copy(r->on->p, r->on->before, r->on->size);
	bench_check(vv_learn_regions(r->sieve, &span, 1), "learn");
	bench_check(space()->adopt(r->sieve, ++r->ordinal, &all, 1), "adopt");
}

static double median_pass(struct run *r, struct keep *k)
{
	double t[BENCH_ROUNDS_MAX];

	for (int i = 0; i < r->on->b->rounds; i++) {
		reset(r);
		gpu_work_copy(r->on->p, r->on->after, r->on->size);
		t[i] = pass(r, k);
	}
	return bench_median(t, r->on->b->rounds);
}

/* ---- results ------------------------------------------------------------------------------------------------------------- */

static void label(char *out, size_t n, const struct board *on, uint32_t chunk, const char *what)
{
	snprintf(out, n, "%zu GiB, %u B, %s", on->size >> 30, chunk, what);
}

/* The targets are set for this. */
static bool is_reference(const struct board *on, uint32_t chunk)
{
	return on->size == 8ul << 30 && chunk == 128;
}

static void judge(const char *kase, const char *metric, double value, const char *unit, double limit, bool least, bool judged)
{
	if (!judged)
		bench_line("gpu.dedup", kase, metric, value, unit);
	else if (least)
		bench_at_least("gpu.dedup", kase, metric, value, unit, limit);
	else
		bench_at_most("gpu.dedup", kase, metric, value, unit, limit);
}

static void say_limits(const struct board *on)
{
	char kase[64];

	snprintf(kase, sizeof(kase), "%zu GiB", on->size >> 30);
	bench_baseline("gpu.dedup", kase, "copy", gb(on->limit.copy), "GB/s");
	bench_baseline("gpu.dedup", kase, "read", gb(on->limit.read), "GB/s");
	bench_baseline("gpu.dedup", kase, "to_host", gb(on->limit.to_host), "GB/s");
}

/* The fused pass alone, all slices one after the other, after so much has changed. */
static double fused(struct run *r)
{
	struct vv_gpu_sieve *s = (struct vv_gpu_sieve *)r->sieve;
	const struct vv_gpu_numbers *g = &s->numbers.of;
	double begin;

	bench_check(vv_numbers_publish(&s->numbers, s->stream), "publish");
	begin = vv_clock_s();
	bench_check(vv_fused_run(g, 0, s->numbers.end / VV_GRAIN_TILE, true, s->stream), "fused pass");
	bench_check(space()->sync(0, s->stream), "fused pass");
	return vv_clock_s() - begin;
}

static void time_fused(const struct board *on, uint32_t chunk)
{
	struct run r = open_run(on, VV_METHOD_BASIC, chunk);
	double t[BENCH_ROUNDS_MAX];
	char kase[64];

	reset(&r);
	fused(&r);
	for (int i = 0; i < on->b->rounds; i++)
		t[i] = fused(&r);
	label(kase, sizeof(kase), on, chunk, "unchanged");
	judge(kase, "fused_vs_read", (double)on->size / bench_median(t, on->b->rounds) / on->limit.read, "x", 0.8, true, is_reference(on, chunk));
	bench_line("gpu.dedup", kase, "fused", gb((double)on->size / bench_median(t, on->b->rounds)), "GB/s");
	space()->close(r.sieve);
}

static void time_first(const struct board *on, uint32_t chunk)
{
	struct run r = open_run(on, VV_METHOD_RUN, chunk);
	double t[BENCH_ROUNDS_MAX], took, alone;
	struct keep k;
	char kase[64];

	gpu_work_copy(on->p, on->before, on->size);
	pass(&r, &k);
	for (int i = 0; i < on->b->rounds; i++) { /* each as if there had been none before */
		bench_check(space()->adopt(r.sieve, ++r.ordinal, NULL, 0), "adopt");
		space()->forget(r.sieve, r.ordinal);
		t[i] = pass(&r, &k);
	}
	space()->close(r.sieve);
	took = bench_median(t, on->b->rounds);
	alone = (double)(k.data + k.pieces * sizeof(struct vv_piece)) / on->limit.to_host;
	label(kase, sizeof(kase), on, chunk, "first");
	bench_line("gpu.dedup", kase, "time", took * 1e3, "ms");
	judge(kase, "time_vs_to_host", took / alone, "x", 1.1, false, is_reference(on, chunk));
}

static void time_changed(const struct board *on, struct run *r, enum vv_method method, uint32_t chunk, unsigned permille)
{
	bool judged = is_reference(on, chunk) && method == VV_METHOD_RUN;
	double took, alone, rate;
	struct keep k = { 0 };
	char kase[64], what[32];

	took = median_pass(r, &k);
	alone = (double)(k.data + k.pieces * sizeof(struct vv_piece)) / on->limit.to_host;
	rate = (double)on->size / took;
	snprintf(what, sizeof(what), "%g %%, %s", permille / 10.0, vv_grain_method_name(method));
	label(kase, sizeof(kase), on, chunk, what);
	bench_line("gpu.dedup", kase, "time", took * 1e3, "ms");
	judge(kase, "rate", gb(rate), "GB/s", 2900, true, judged && permille == 10);
	judge(kase, "rate_vs_to_host", rate / on->limit.to_host, "x", 55, true, judged && permille == 10);
	if (k.data)
		judge(kase, "time_vs_difference_to_host", took / alone, "x", 1.1, false, judged && permille == 500);
	bench_line("gpu.dedup", kase, "data", (double)k.data / 1e6, "MB");
	bench_line("gpu.dedup", kase, "pieces", (double)k.pieces, "");
}

static void time_methods(const struct board *on, uint32_t chunk)
{
	static const unsigned permille[] = { 0, 10, 100, 500 };

	for (int i = 0; i < 4; i++) {
		gpu_work_fill(on->after, on->size, permille[i]);
		for (int method = VV_METHOD_RUN; method >= VV_METHOD_FULL; method--) {
			struct run r = open_run(on, (enum vv_method)method, chunk);

			if (method == VV_METHOD_RUN || permille[i] == 10)
				time_changed(on, &r, (enum vv_method)method, chunk, permille[i]);
			space()->close(r.sieve);
		}
	}
}

static void do_size(struct bench *b, size_t size, const uint32_t *chunk, size_t n_chunks)
{
	struct board on = { .b = b, .size = size };

	on.p = gpu_work_new(size);
	on.before = gpu_work_new(size);
	on.after = gpu_work_new(size);
	on.room = space()->rent(0, (size_t)ROOMS * ROOM);
	if (!on.room)
		bench_die("no memory");
	memset(on.room, 1, (size_t)ROOMS * ROOM);
	gpu_work_fill(on.before, size, 0);
	gpu_work_read(on.before, size);
	on.limit.read = (double)size / gpu_work_read(on.before, size);
	on.limit.copy = 2 * (double)size / gpu_work_copy(on.p, on.before, size);
	gpu_work_to_host(on.room, on.p, (size_t)ROOMS * ROOM);
	on.limit.to_host = (double)ROOMS * ROOM / gpu_work_to_host(on.room, on.p, (size_t)ROOMS * ROOM);
	say_limits(&on);
	for (size_t i = 0; i < n_chunks; i++) {
		time_fused(&on, chunk[i]);
		time_first(&on, chunk[i]);
		time_methods(&on, chunk[i]);
	}
	space()->give_back(0, on.room, (size_t)ROOMS * ROOM);
	gpu_work_free(on.p);
	gpu_work_free(on.before);
	gpu_work_free(on.after);
}

int main(int argc, char **argv)
{
	static const uint32_t all[] = { 128, 64, 256 };
	struct bench b;

	bench_open(&b, argc, argv);
	if (space()->present())
		bench_skip(vv_err_last());
	if (b.asked) {
		do_size(&b, b.asked, all, 3);
	} else {
		do_size(&b, 8ul << 30, all, b.full ? 3 : 1);
		do_size(&b, 1ul << 30, all, b.full ? 3 : 1);
		if (b.full)
			do_size(&b, 4ul << 30, all, 3);
	}
	return bench_close(&b);
}
