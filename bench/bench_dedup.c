/* cpu.dedup: dedup of small grains in the host's memory, against hashing them and nothing else. */
#include "base/clock.h"
#include "base/mem.h"
#include "core/dedup/known_grains.h"
#include "space/host_sieve.h"
#include "space/learn.h"
#include "support.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK = 2048, WORDS = BLOCK / 8, TASK = 1 << 20 };

static uint64_t mix(uint64_t x)
{
	return bench_random(&x);
}

/* ---- content: blocks of 2 KiB, 30 % of them zero, 10 % one of 64 that come again and again, the others met once. Of the state after it a part
 * of the groups of four blocks is other than before: half of that new, 30 % moved from elsewhere, 20 % zero. */

struct content {
	uint8_t *p;
	size_t blocks;
	unsigned permille; /* that is other than in the state before; 0: that state */
};

static uint64_t word_before(uint64_t block, uint32_t j)
{
	uint64_t r = mix(block ^ 0xa5a5);
	unsigned q = r % 100;

	return q < 30 ? 0 : q < 40 ? mix((r >> 32 & 63) * 1000003 + j + 7777777) : mix(block * 4096 + j);
}

static uint64_t word_after(const struct content *c, uint64_t block, uint32_t j)
{
	uint64_t group = block / 4, r = mix(group ^ 0xc0ffee), groups = c->blocks / 4;
	unsigned q = (r >> 20) % 100;

	if (r % 1000 >= c->permille)
		return word_before(block, j);
	return q < 50 ? mix(~(block * 4096 + j)) : q < 80 ? word_before(mix(group + 99) % groups * 4 + block % 4, j) : 0;
}

static void fill_task(void *arg, size_t task)
{
	const struct content *c = arg;
	size_t per_task = TASK / BLOCK;

	for (size_t b = task * per_task; b < (task + 1) * per_task && b < c->blocks; b++)
		for (uint32_t j = 0; j < WORDS; j++) {
			uint64_t w = word_after(c, b, j);

			memcpy(c->p + b * BLOCK + j * 8, &w, 8);
		}
}

static void fill(struct bench *b, uint8_t *p, size_t size, unsigned permille)
{
	struct content c = { p, size / BLOCK, permille };

	vv_pool_each(b->pool, (size + TASK - 1) / TASK, fill_task, &c);
}

/* ---- XXH3-128 alone ---------------------------------------------------------------------------------------------------- */

struct hashing {
	const uint8_t *p;
	size_t size;
	uint32_t chunk;
};

static void hash_task(void *arg, size_t task)
{
	const struct hashing *h = arg;
	size_t at = task * TASK, end = h->size - at < TASK ? h->size : at + TASK;
	struct vv_digest out[VV_GRAIN_TILE];
	size_t step = (size_t)h->chunk * VV_GRAIN_TILE;

	for (; at + step <= end; at += step)
		vv_digest_grains(VV_DIGEST_XXH3, h->p + at, h->chunk, VV_GRAIN_TILE, out);
}

static double hash_alone(struct bench *b, const uint8_t *p, size_t size, uint32_t chunk)
{
	struct hashing h = { p, size, chunk };
	double start = vv_clock_s();

	vv_pool_each(b->pool, (size + TASK - 1) / TASK, hash_task, &h);
	return vv_clock_s() - start;
}

/* ---- the pass ----------------------------------------------------------------------------------------------------------- */

struct sink {
	uint8_t *room;
	size_t len;
	uint64_t pieces, bytes;
};

static uint8_t *room(void *arg, size_t want, size_t *got)
{
	struct sink *s = arg;

	*got = want < s->len ? want : s->len;
	return s->room;
}

static int data(void *arg, const uint8_t *p, size_t len)
{
	struct sink *s = arg;

	(void)p;
	s->bytes += len;
	return 0;
}

static int pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	struct sink *s = arg;

	(void)piece;
	s->pieces += n;
	return 0;
}

struct dedup {
	uint8_t *before, *after;
	size_t size;
	uint8_t *room; /* that the data go through */
	struct vv_sieve *sieve;
};

enum { ROOM = 32 << 20 };

static double pass(struct dedup *d, uint8_t *p, uint32_t ordinal, struct sink *s)
{
	struct vv_span span = { .id = 1, .p = p, .len = d->size };
	double start = vv_clock_s();

	*s = (struct sink){ .room = d->room, .len = ROOM };
	bench_check(vv_space_host()->pass(d->sieve, &span, 1, ordinal, &(struct vv_sink){ s, room, data, pieces }), "pass");
	return vv_clock_s() - start;
}

static void adopt(struct dedup *d)
{
	struct vv_span span = { .id = 1, .p = d->before, .len = d->size };
	struct vv_number_range all = { 0, UINT32_MAX };

	bench_check(vv_learn_regions(d->sieve, &span, 1), "learn");
	bench_check(vv_space_host()->adopt(d->sieve, 1, &all, 1), "adopt");
}

static void open_sieve(struct bench *b, struct dedup *d, uint32_t chunk)
{
	struct vv_sieve_options opt = { .method = VV_METHOD_RUN, .chunk = chunk, .digest_kind = VV_DIGEST_XXH3, .memory = 2 * d->size, .states = 4 }; /* nothing is forgotten */

	bench_check(vv_space_host()->open(&opt, b->pool, &d->sieve), "open");
}

static void changed(struct bench *b, struct dedup *d, uint32_t chunk, unsigned percent)
{
	double hash[BENCH_ROUNDS_MAX], ours[BENCH_ROUNDS_MAX], gb = (double)d->size / 1e9, h, o;
	struct sink s;
	char name[32];

	snprintf(name, sizeof(name), "%u B, %u%%", chunk, percent);
	for (int i = 0; i < b->rounds; i++) {
		adopt(d);
		hash[i] = hash_alone(b, d->after, d->size, chunk);
		ours[i] = pass(d, d->after, 2, &s);
	}
	h = bench_median(hash, b->rounds);
	o = bench_median(ours, b->rounds);
	bench_baseline("cpu.dedup", name, "hash", gb / h, "GB/s");
	bench_line("cpu.dedup", name, "pass", gb / o, "GB/s");
	bench_line("cpu.dedup", name, "new", (double)s.bytes / 1e6, "MB");
	bench_line("cpu.dedup", name, "pieces", (double)s.pieces, "");
	if (percent == 1)
		bench_at_least("cpu.dedup", name, "pass_vs_hash", h / o, "x", 0.7);
	else
		bench_line("cpu.dedup", name, "pass_vs_hash", h / o, "x");
}

/* All is new. Each time to a sieve that has seen nothing. */
static void first(struct bench *b, struct dedup *d, uint32_t chunk)
{
	double ours[BENCH_ROUNDS_MAX];
	struct sink s;
	char name[32];

	snprintf(name, sizeof(name), "%u B, first", chunk);
	for (int i = 0; i < b->rounds; i++) {
		if (i)
			vv_space_host()->close(d->sieve);
		open_sieve(b, d, chunk);
		ours[i] = pass(d, d->before, 1, &s);
	}
	bench_line("cpu.dedup", name, "pass", (double)d->size / 1e9 / bench_median(ours, b->rounds), "GB/s");
	bench_line("cpu.dedup", name, "memory", 100 * (double)vv_host_sieve_bytes(d->sieve) / (double)d->size, "%");
	vv_space_host()->close(d->sieve);
}

/* The map alone, by digests that it does not have and by digests that it has. */
static void map(struct bench *b)
{
	enum { N = 1 << 21, AHEAD = 16 };
	struct vv_digest *d = bench_memory(N * sizeof(*d));
	double enter[BENCH_ROUNDS_MAX], find[BENCH_ROUNDS_MAX];
	size_t take;

	bench_fill(b, d, N * sizeof(*d), 7);
	for (int i = 0; i < b->rounds; i++) {
		struct vv_known_grains k = { 0 };

		bench_check(vv_known_grains_limit(&k, (size_t)N * 4), "vv_known_grains_limit");
		for (int again = 0; again < 2; again++) {
			double start = vv_clock_s();

			bench_check(vv_known_grains_begin(&k, N, &take), "vv_known_grains_begin");
			for (size_t n = 0; n < N; n++) {
				uint64_t place = n;

				if (n + AHEAD < N)
					vv_known_grains_prefetch(&k, &d[n + AHEAD]);
				vv_known_grains_enter(&k, &d[n], &place);
			}
			*(again ? &find[i] : &enter[i]) = vv_clock_s() - start;
		}
		vv_known_grains_fini(&k);
	}
	bench_line("cpu.dedup", "map", "enter", N / 1e6 / bench_median(enter, b->rounds), "M/s");
	bench_line("cpu.dedup", "map", "find", N / 1e6 / bench_median(find, b->rounds), "M/s");
	munmap(d, N * sizeof(*d));
}

/* Two states, what is remembered of them, and the rest of the machine. */
static size_t affordable(size_t want)
{
	size_t pages = (size_t)sysconf(_SC_AVPHYS_PAGES), free_bytes = pages * (size_t)sysconf(_SC_PAGESIZE);

	while (want > (64 << 20) && want * 4 > free_bytes)
		want /= 2;
	return want;
}

static void cpu_dedup(struct bench *b)
{
	static const unsigned percent[] = { 0, 1, 10, 50 };
	struct dedup d = { .size = affordable(bench_size(b, (size_t)256 << 20, (size_t)1 << 30)) / TASK * TASK };

	d.before = bench_memory(d.size);
	d.after = bench_memory(d.size);
	d.room = bench_memory(ROOM);
	fill(b, d.before, d.size, 0);
	map(b);
	for (uint32_t chunk = 64; chunk <= 256; chunk *= 2)
		first(b, &d, chunk);
	for (size_t i = 0; i < sizeof(percent) / sizeof(percent[0]); i++) {
		fill(b, d.after, d.size, percent[i] * 10);
		for (uint32_t chunk = 64; chunk <= 256; chunk *= 2) {
			open_sieve(b, &d, chunk);
			changed(b, &d, chunk, percent[i]);
			vv_space_host()->close(d.sieve);
		}
	}
	munmap(d.before, d.size);
	munmap(d.after, d.size);
	munmap(d.room, ROOM);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, argc, argv);
	if (bench_wants(&b, "cpu.dedup"))
		cpu_dedup(&b);
	return bench_close(&b);
}
