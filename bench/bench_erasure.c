/* redundancy.code: the arithmetic of parity at 6 + 2, one thread, per second of processor time. A rate is of data bytes. */
#include "core/ranks/erasure_code.h"
#include "support.h"
#include "vv_config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { K = 6, M = 2, BLOCK = 64 << 10, BLOCK_MOST = 1 << 20 };

typedef void (*sum_fn)(const uint8_t *factor, unsigned n, unsigned rows, size_t len, const uint8_t *const *in, uint8_t *const *out);

struct stripe {
	size_t n; /* of each block */
	const uint8_t *in[K];
	uint8_t *out[M], *whole;
	uint8_t factor[K * M];
};

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void stripe_new(struct bench *b, size_t n, struct stripe *s)
{
	const struct vv_erasure_code code = { K, M };

	*s = (struct stripe){ .n = n, .whole = bench_memory((K + M) * n) };
	bench_fill(b, s->whole, K * n, 7);
	for (unsigned i = 0; i < K; i++)
		s->in[i] = s->whole + i * n;
	for (unsigned i = 0; i < M; i++)
		s->out[i] = s->whole + (K + i) * n;
	for (unsigned r = 0; r < M; r++)
		for (unsigned i = 0; i < K; i++)
			s->factor[r * K + i] = vv_erasure_code_factor(&code, r, i);
}

static void copy(const uint8_t *factor, unsigned n, unsigned rows, size_t len, const uint8_t *const *in, uint8_t *const *out)
{
	(void)factor;
	for (unsigned i = 0; i < n; i++)
		memcpy(out[i % rows], in[i], len);
	__asm__ volatile("" : : "r"(out[0]) : "memory"); /* the result is wanted */
}

/* GB of data per second of the best of several rounds, in blocks that follow each other. */
static double rate(const struct bench *b, const struct stripe *s, size_t block, sum_fn fn)
{
	double best = 0;

	for (int round = -1; round < b->rounds * 3; round++) {
		double start = cpu_s(), took;

		for (size_t at = 0; at < s->n; at += block) {
			const uint8_t *in[K];
			uint8_t *out[M];

			for (unsigned i = 0; i < K; i++)
				in[i] = s->in[i] + at;
			for (unsigned i = 0; i < M; i++)
				out[i] = s->out[i] + at;
			fn(s->factor, K, M, block, in, out);
		}
		took = cpu_s() - start;
		if (round >= 0 && (double)(K * s->n) / took > best)
			best = (double)(K * s->n) / took;
	}
	return best / 1e9;
}

/* Lost blocks 0 and 5 are made again from the others. */
static void verify(struct stripe *s, sum_fn fn)
{
	const struct vv_erasure_code code = { K, M };
	const uint8_t from[K] = { 1, 2, 3, 4, 6, 7 }, *in[K] = { s->in[1], s->in[2], s->in[3], s->in[4], s->out[0], s->out[1] };
	uint8_t *made = bench_memory(2 * BLOCK), *out[M] = { made, made + BLOCK }, factor[K * M];

	fn(s->factor, K, M, s->n, s->in, s->out);
	if (!vv_erasure_code_solve(&code, K, from, 0, factor) || !vv_erasure_code_solve(&code, K, from, 5, factor + K))
		bench_die("redundancy.code: a stripe that cannot be solved");
	fn(factor, K, M, BLOCK, in, out);
	if (memcmp(out[0], s->in[0], BLOCK) != 0 || memcmp(out[1], s->in[5], BLOCK) != 0)
		bench_die("redundancy.code: other bytes than those that were lost");
	munmap(made, 2 * BLOCK);
}

static void measure(const struct bench *b, struct stripe *s, const char *where)
{
	static const size_t blocks[] = { BLOCK, BLOCK_MOST };
#if defined(__x86_64__)
	const double least = 5;
#else
	const double least = 2;
#endif
	char kase[64];

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		if (blocks[i] > s->n)
			continue;
		snprintf(kase, sizeof(kase), "6 + 2, blocks of %zu KiB, %s", blocks[i] >> 10, where);
		if (VV_HAVE_ISAL)
			bench_at_least("redundancy.code", kase, "isal", rate(b, s, blocks[i], vv_erasure_code_sum), "GB/s", least);
		bench_line("redundancy.code", kase, "plain", rate(b, s, blocks[i], vv_erasure_code_sum_plain), "GB/s");
		bench_baseline("redundancy.code", kase, "memcpy", rate(b, s, blocks[i], copy), "GB/s");
	}
}

static void run(struct bench *b, size_t n, const char *where)
{
	struct stripe s;

	stripe_new(b, n, &s);
	verify(&s, vv_erasure_code_sum);
	verify(&s, vv_erasure_code_sum_plain);
	measure(b, &s, where);
	munmap(s.whole, (K + M) * n);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, argc, argv);
	if (bench_wants(&b, "redundancy.code")) {
		run(&b, BLOCK, "in the cache");
		run(&b, bench_size(&b, 32ul << 20, 128ul << 20), "from memory");
	}
	return bench_close(&b);
}
