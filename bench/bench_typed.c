/* typed.speed: numbers by recipes, one thread, block by block in memory: how fast there and back, in processor time, and how small; and how much of that
 * is predicting and splitting, without the coder. cpu.levels: the loops that are chosen by what the processor has, with each level of it. */
#include "base/cpu.h"
#include "codec/codec.h"
#include "codec/predict.h"
#include "codec/split.h"
#include "core/dedup/cdc.h"
#include "core/format/digest.h"
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { BLOCK = 1 << 20, SIDE = 128 };

struct thing {
	const char *name;
	void (*fill)(uint8_t *p, size_t n);
	struct vv_recipe how;
	double encode, decode; /* MB/s that are asked for; 0: none */
};

/* A few waves through a cube of SIDE^3: what a solver holds, with all bits of its numbers in use. */
static double wave(size_t i)
{
	double x = (double)(i % SIDE) / SIDE, y = (double)(i / SIDE % SIDE) / SIDE, z = (double)(i / SIDE / SIDE) / SIDE;

	return 2 + sin(5 * x + 3 * y) * cos(4 * z) + 0.3 * sin(11 * y - 7 * z + 2 * x) + 0.05 * cos(23 * x * z);
}

static void doubles(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n / 8; i++) {
		double d = wave(i);

		memcpy(p + 8 * i, &d, 8);
	}
}

static void floats(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n / 4; i++) {
		float f = (float)wave(i);

		memcpy(p + 4 * i, &f, 4);
	}
}

static void reversed(uint8_t *p, size_t n)
{
	doubles(p, n);
	for (size_t i = 0; i < n; i += 8) {
		uint64_t v;

		memcpy(&v, p + i, 8);
		v = __builtin_bswap64(v);
		memcpy(p + i, &v, 8);
	}
}

static void noise(uint8_t *p, size_t n)
{
	uint64_t state = 1;

	for (size_t i = 0; i < n; i += 8) {
		uint64_t v = bench_random(&state);

		memcpy(p + i, &v, 8);
	}
}

/* Identifiers that go up by a little. */
static void identifiers(uint8_t *p, size_t n)
{
	uint64_t state = 2;
	uint32_t id = 0;

	for (size_t i = 0; i < n; i += 4) {
		id += 1 + bench_random(&state) % 7;
		memcpy(p + i, &id, 4);
	}
}

/* Particles: three positions that wander, three speeds. */
static void particles(uint8_t *p, size_t n)
{
	uint64_t state = 3;
	double at[6] = { 0 };

	for (size_t i = 0; i < n; i += 8) {
		double *x = &at[i / 8 % 6];

		*x = i / 8 % 6 < 3 ? *x + (double)(bench_random(&state) % 1000) * 1e-6 : (double)(bench_random(&state) % 100000) * 1e-3;
		memcpy(p + i, x, 8);
	}
}

#define CUBE .n_strides = 3, .stride = { 1, SIDE, SIDE * SIDE }
#define ZSTD1 .coder = VV_CODEC_ZSTD, .level = 1

static const struct thing things[] = {
	{ "smooth doubles, lorenzo", doubles, { .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO, .real = true, CUBE, ZSTD1 }, 400, 700 },
	{ "smooth doubles, real", doubles, { .width = 8, .record = 1, .predictor = VV_PREDICT_REAL, .real = true, CUBE, ZSTD1 }, 0, 0 },
	{ "smooth doubles, planes", doubles, { .width = 8, .record = 1, ZSTD1 }, 0, 0 },
	{ "smooth doubles, big-endian", reversed,
	  { .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO, .real = true, .swapped = true, CUBE, ZSTD1 }, 0, 0 },
	{ "smooth doubles, lorenzo, lz4", doubles,
	  { .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO, .real = true, CUBE, .coder = VV_CODEC_LZ4 }, 0, 0 },
	{ "smooth floats, lorenzo", floats, { .width = 4, .record = 1, .predictor = VV_PREDICT_LORENZO, .real = true, CUBE, ZSTD1 }, 0, 0 },
	{ "smooth floats, real", floats, { .width = 4, .record = 1, .predictor = VV_PREDICT_REAL, .real = true, CUBE, ZSTD1 }, 0, 0 },
	{ "identifiers, delta", identifiers,
	  { .width = 4, .record = 1, .predictor = VV_PREDICT_LORENZO, .n_strides = 1, .stride = { 1 }, ZSTD1 }, 0, 0 },
	{ "particles, records", particles,
	  { .width = 8, .record = 6, .predictor = VV_PREDICT_LORENZO, .real = true, .n_strides = 1, .stride = { 6 }, ZSTD1 }, 0, 0 },
	{ "particles, long records", particles, { .width = 8, .record = 12, ZSTD1 }, 0, 0 },
	{ "noise, lorenzo", noise, { .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO, .real = true, CUBE, ZSTD1 }, 2000, 0 },
	{ "noise, real", noise, { .width = 8, .record = 1, .predictor = VV_PREDICT_REAL, .real = true, CUBE, ZSTD1 }, 2000, 0 },
	{ "noise, bytes", noise, { .width = 1, .record = 1, ZSTD1 }, 2000, 0 },
};

struct coded {
	const struct vv_codec *codec;
	const struct vv_recipe *how;
	const uint8_t *raw;
	uint8_t *coded, *back;
	size_t n, *len; /* of each block; 0: stored as it is */
	size_t room;    /* for each */
};

/* Of this thread: others may have the core for a while. */
static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double encode(struct coded *c)
{
	double start = cpu_s();

	for (size_t i = 0; i < c->n / BLOCK; i++)
		bench_check(c->codec->encode(c->raw + i * BLOCK, BLOCK, c->how, c->coded + i * c->room, c->room, 1, &c->len[i]), "encode");
	return cpu_s() - start;
}

static double decode(struct coded *c)
{
	double start = cpu_s();

	for (size_t i = 0; i < c->n / BLOCK; i++) {
		if (c->len[i])
			bench_check(c->codec->decode(c->coded + i * c->room, c->len[i], c->back + i * BLOCK, BLOCK), "decode");
		else
			memcpy(c->back + i * BLOCK, c->raw + i * BLOCK, BLOCK);
	}
	return cpu_s() - start;
}

/* ---- without the coder, as codec/typed.c has it ---- */

static size_t next_tile(const struct coded *c, size_t at, size_t m)
{
	size_t most = VV_PREDICT_TILE / (c->how->width * c->how->record);

	return m - at < most ? m - at : most;
}

static double spread(struct coded *c, uint8_t *room)
{
	unsigned bytes = c->how->width * c->how->record;
	size_t m = BLOCK / bytes;
	double start = cpu_s();

	for (size_t i = 0; i < c->n / BLOCK; i++) {
		const uint8_t *from = c->raw + i * BLOCK;
		uint8_t residual[VV_PREDICT_TILE];
		struct vv_predict p;

		if (!vv_predict_changes(c->how)) {
			vv_split_apart(from, m, bytes, c->coded + i * c->room, m);
			continue;
		}
		vv_predict_init(&p, c->how, from, room);
		for (size_t at = 0, some; at < m; at += some) {
			some = next_tile(c, at, m);
			vv_predict_next(&p, at * c->how->record, some * c->how->record, residual);
			vv_split_apart(residual, some, bytes, c->coded + i * c->room + at, m);
		}
	}
	return cpu_s() - start;
}

static double collect(struct coded *c)
{
	unsigned bytes = c->how->width * c->how->record;
	size_t m = BLOCK / bytes;
	double start = cpu_s();

	for (size_t i = 0; i < c->n / BLOCK; i++) {
		const uint8_t *plane[VV_RECIPE_PLANES];
		struct vv_predict_back b;

		for (unsigned k = 0; k < bytes; k++)
			plane[k] = c->coded + i * c->room + k * m;
		if (!vv_predict_changes(c->how)) {
			vv_split_join(plane, 0, m, bytes, c->back + i * BLOCK);
			continue;
		}
		vv_predict_back_init(&b, c->how, c->back + i * BLOCK, m * c->how->record);
		for (size_t at = 0, some; at < m; at += some) {
			some = next_tile(c, at, m);
			vv_split_join(plane, at, some, bytes, c->back + i * BLOCK + at * bytes);
			vv_predict_back_to(&b, (at + some) * c->how->record);
		}
	}
	return cpu_s() - start;
}

static void measure_steps(const struct bench *b, const char *bench, const char *kase, const struct thing *t, struct coded *c)
{
	double there[BENCH_ROUNDS_MAX], back[BENCH_ROUNDS_MAX], mb = (double)c->n / 1e6;
	size_t whole = BLOCK - BLOCK % (t->how.width * t->how.record);
	uint8_t *room = bench_memory(BLOCK);

	for (int i = 0; i < b->rounds; i++) {
		there[i] = spread(c, room);
		back[i] = collect(c);
	}
	for (size_t i = 0; i < c->n; i += BLOCK)
		if (memcmp(c->raw + i, c->back + i, whole) != 0)
			bench_die("%s: other numbers come back", t->name);
	munmap(room, BLOCK);
	bench_line(bench, kase, "split", mb / bench_median(there, b->rounds), "MB/s");
	bench_line(bench, kase, "join", mb / bench_median(back, b->rounds), "MB/s");
}

/* ---- all of it ---- */

static void report(const struct thing *t, const char *metric, double value, double least)
{
	if (least > 0)
		bench_at_least("typed.speed", t->name, metric, value, "MB/s", least);
	else
		bench_line("typed.speed", t->name, metric, value, "MB/s");
}

static void measure(const struct bench *b, const struct thing *t, struct coded *c, uint8_t *raw)
{
	double there[BENCH_ROUNDS_MAX], back[BENCH_ROUNDS_MAX], mb = (double)c->n / 1e6;
	size_t stored = 0;

	t->fill(raw, c->n);
	c->how = &t->how;
	encode(c);
	for (int i = 0; i < b->rounds; i++) {
		there[i] = encode(c);
		back[i] = decode(c);
	}
	if (memcmp(c->raw, c->back, c->n) != 0)
		bench_die("%s: other bytes come back", t->name);
	for (size_t i = 0; i < c->n / BLOCK; i++)
		stored += c->len[i] ? c->len[i] : BLOCK;
	report(t, "encode", mb / bench_median(there, b->rounds), t->encode);
	if (stored < c->n)
		report(t, "decode", mb / bench_median(back, b->rounds), t->decode);
	bench_line("typed.speed", t->name, "ratio", (double)c->n / (double)stored, "x");
	measure_steps(b, "typed.speed", t->name, t, c);
}

/* ---- levels ---- */

enum { IN_CACHE = 128 << 10, GRAIN = 128, PAGE = 4096 };

static struct vv_cdc cdc;

static void hash(const struct coded *c, size_t at, size_t n)
{
	vv_digest_check(c->raw + at, n);
}

static void hash_copy(const struct coded *c, size_t at, size_t n)
{
	vv_digest_check_copy(c->back + at, c->raw + at, n);
}

static void hash_pages(const struct coded *c, size_t at, size_t n)
{
	struct vv_digest d;

	for (size_t i = at; i < at + n; i += PAGE)
		vv_digest_xxh3(c->raw + i, PAGE, &d);
}

static void hash_grains(const struct coded *c, size_t at, size_t n)
{
	struct vv_digest d[IN_CACHE / GRAIN];

	vv_digest_grains(VV_DIGEST_XXH3, c->raw + at, GRAIN, n / GRAIN, d);
}

static void cut(const struct coded *c, size_t at, size_t n)
{
	for (size_t end = at + n; at < end;)
		at += vv_cdc_next(&cdc, c->raw + at, end - at, true);
}

static const struct loop {
	const char *name;
	void (*run)(const struct coded *c, size_t at, size_t n);
	bool far; /* in all of the memory, one part after the other, not in one part that is in the cache */
} loops[] = {
	{ "hash", hash, false },
	{ "hash_from_memory", hash, true },
	{ "hash_pages", hash_pages, false },
	{ "hash_and_copy", hash_copy, false },
	{ "hash_and_copy_from_memory", hash_copy, true },
	{ "hash_grains_128", hash_grains, false },
	{ "cut", cut, false },
};

static void measure_loop(const struct bench *b, const char *level, const struct loop *l, struct coded *c)
{
	double took[BENCH_ROUNDS_MAX];

	for (int i = -1; i < b->rounds; i++) { /* once for nothing */
		double start = cpu_s();

		for (size_t at = 0; at < c->n; at += IN_CACHE)
			l->run(c, l->far ? at : 0, IN_CACHE);
		if (i >= 0)
			took[i] = cpu_s() - start;
	}
	bench_line("cpu.levels", level, l->name, (double)c->n / 1e6 / bench_median(took, b->rounds), "MB/s");
}

static void measure_level(const struct bench *b, enum vv_cpu_level level, struct coded *c, uint8_t *raw)
{
	const char *name = vv_cpu_name(vv_cpu_hold(level));

	noise(raw, c->n);
	for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
		measure_loop(b, name, &loops[i], c);
	for (size_t i = 0; i < 3; i++) {
		char kase[64];

		snprintf(kase, sizeof(kase), "%s, %s", name, things[i].name);
		things[i].fill(raw, c->n);
		c->how = &things[i].how;
		measure_steps(b, "cpu.levels", kase, &things[i], c);
	}
}

static void measure_levels(const struct bench *b, struct coded *c, uint8_t *raw)
{
	enum vv_cpu_level used = vv_cpu_level(), most = vv_cpu_most();

	bench_check(vv_cdc_init(&cdc, VV_CDC_MIN, VV_CDC_AVG, VV_CDC_MAX), "vv_cdc_init");
	for (int level = VV_CPU_BASELINE; level <= (int)most; level++)
		measure_level(b, (enum vv_cpu_level)level, c, raw);
	vv_cpu_hold(used);
}

int main(int argc, char **argv)
{
	struct coded c = { .codec = vv_codec_numbered(VV_CODEC_TYPED) };
	uint8_t *raw;
	struct bench b;

	bench_open(&b, argc, argv);
	c.n = bench_size(&b, 16 << 20, 256 << 20) / BLOCK * BLOCK;
	c.room = c.codec->bound(BLOCK);
	raw = bench_memory(c.n);
	c.raw = raw;
	c.back = bench_memory(c.n);
	c.coded = bench_memory(c.n / BLOCK * c.room);
	c.len = bench_memory(c.n / BLOCK * sizeof(*c.len));
	for (size_t i = 0; i < sizeof(things) / sizeof(things[0]) && bench_wants(&b, "typed.speed"); i++)
		if (things[i].how.coder != VV_CODEC_LZ4 || vv_codec_numbered(VV_CODEC_LZ4))
			measure(&b, &things[i], &c, raw);
	if (bench_wants(&b, "cpu.levels"))
		measure_levels(&b, &c, raw);
	munmap(raw, c.n);
	munmap(c.back, c.n);
	munmap(c.coded, c.n / BLOCK * c.room);
	munmap(c.len, c.n / BLOCK * sizeof(*c.len));
	return bench_close(&b);
}
