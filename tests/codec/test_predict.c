/* Predictions against the same thing written slowly: every width, every stride, any bits, any cut; and whatever a program has set for its own
 * arithmetic. With each level of vector units that this machine has. */
#include "base/cpu.h"
#include "codec/predict.h"
#include "support/gen.h"
#include "support/numbers.h"
#include "vv_test.h"
#include <fenv.h>

enum { MOST = 9000 };

/* ---- as docs/format.md has it ---- */

static uint64_t get(const uint8_t *p, unsigned width, bool swapped)
{
	uint64_t v = 0;

	for (unsigned k = 0; k < width; k++)
		v |= (uint64_t)p[swapped ? width - 1 - k : k] << 8 * k;
	return v;
}

static uint64_t below(unsigned width)
{
	return width == 8 ? UINT64_MAX : (1ull << 8 * width) - 1;
}

static uint64_t ordered(uint64_t v, unsigned width)
{
	uint64_t top = 1ull << (8 * width - 1);

	return v & top ? ~v & below(width) : v | top;
}

static uint64_t zigzag(uint64_t v, unsigned width)
{
	return (v & 1ull << (8 * width - 1) ? ~(v << 1) : v << 1) & below(width);
}

static double before(const uint64_t *v, size_t i, uint64_t distance, unsigned width)
{
	uint32_t u;
	double d;
	float f;

	if (i < distance)
		return 0;
	u = (uint32_t)v[i - distance];
	memcpy(&d, &v[i - distance], 8);
	memcpy(&f, &u, 4);
	return width == 8 ? d : (double)f;
}

/* In double or in float: a sum of two floats in double, then rounded, is the sum in float. */
static double add(double a, double b, unsigned width)
{
	return width == 8 ? a + b : (double)(float)(a + b);
}

static uint64_t predicted(const uint64_t *v, size_t i, const struct vv_recipe *how)
{
	uint64_t s = how->stride[0], t = how->stride[1], u = how->stride[2], bits = 0;
	unsigned w = how->width;
	double p, face, edge;
	float f;

	p = before(v, i, s, w);
	face = how->n_strides > 1 ? add(before(v, i, t, w), -before(v, i, s + t, w), w) : 0;
	if (how->n_strides > 2) {
		edge = add(add(before(v, i, u, w), -before(v, i, s + u, w), w), -add(before(v, i, t + u, w), -before(v, i, s + t + u, w), w), w);
		face = add(face, edge, w);
	}
	if (how->n_strides > 1)
		p = add(p, face, w);
	if (p != p)
		p = 0;
	f = (float)p;
	memcpy(&bits, w == 8 ? (void *)&p : (void *)&f, w);
	return bits;
}

static void refer(const struct vv_recipe *how, const uint8_t *from, size_t n, uint8_t *out)
{
	static uint64_t v[MOST], r[MOST];
	unsigned w = how->width;

	for (size_t i = 0; i < n; i++) {
		v[i] = get(from + i * w, w, how->swapped);
		r[i] = how->real ? ordered(v[i], w) : v[i];
	}
	for (size_t i = 0; how->predictor == VV_PREDICT_REAL && i < n; i++)
		r[i] -= ordered(predicted(v, i, how), w);
	for (unsigned k = 0; how->predictor == VV_PREDICT_LORENZO && k < how->n_strides; k++)
		for (size_t i = n; i-- > how->stride[k];)
			r[i] -= r[i - how->stride[k]];
	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; k < w; k++)
			out[i * w + k] = (uint8_t)(zigzag(r[i] & below(w), w) >> 8 * k);
}

/* ---- ours ---- */

static void forth(const struct vv_recipe *how, uint64_t *state, const uint8_t *from, size_t n, uint8_t *out)
{
	static uint8_t room[MOST * 8 + 1];
	struct vv_predict p;

	vv_predict_init(&p, how, from, room + gen_below(state, 2));
	for (size_t at = 0, some; at < n; at += some) {
		some = 1 + gen_below(state, gen_below(state, 4) ? n - at : 9);
		some = some < n - at ? some : n - at;
		vv_predict_next(&p, at, some, out + at * how->width);
	}
}

/* Residuals that are not there yet are other bytes. */
static void back(const struct vv_recipe *how, uint64_t *state, const uint8_t *residual, size_t n, uint8_t *x)
{
	struct vv_predict_back b;

	vv_predict_back_init(&b, how, x, n);
	for (size_t at = 0, some; at < n; at += some) {
		some = 1 + gen_below(state, gen_below(state, 4) ? n - at : 9);
		some = some < n - at ? some : n - at;
		memcpy(x + at * how->width, residual + at * how->width, some * how->width);
		vv_predict_back_to(&b, at + some);
	}
}

static uint8_t x[MOST * 8 + 8], mine[MOST * 8 + 8], theirs[MOST * 8 + 8], again[MOST * 8 + 8];

static void check(const struct vv_recipe *how, uint64_t *state, size_t n)
{
	size_t off = gen_below(state, 8), bytes = n * how->width;

	memset(mine, 0x5a, sizeof(mine));
	memset(again, 0x5a, sizeof(again));
	forth(how, state, x + off, n, mine + off);
	refer(how, x + off, n, theirs);
	CHECK(memcmp(mine + off, theirs, bytes) == 0);
	back(how, state, mine + off, n, again + off);
	CHECK(memcmp(again + off, x + off, bytes) == 0);
	for (size_t i = 0; i < sizeof(mine); i++)
		CHECK((i >= off && i < off + bytes) || (mine[i] == 0x5a && again[i] == 0x5a));
}

static void test_all(void)
{
	static const size_t counts[] = { 0, 1, 2, 5, 41, 333, 2048, 8192 + 77 };
	struct vv_recipe how;
	uint64_t state = 1;
	size_t tried = 0;

	for (size_t i = 0; numbers_recipe(i, &how); i++) {
		CHECK(vv_predict_can(&how));
		CHECK_EQ(vv_predict_changes(&how), how.predictor != VV_PREDICT_NONE);
		if (!how.predictor || how.record > 1)
			continue;
		for (unsigned kind = 0; kind < NUMBERS_KINDS; kind++) {
			size_t n = counts[tried++ % 8];

			numbers_fill(&state, kind, &how, x, sizeof(x));
			check(&how, &state, n);
		}
	}
	CHECK(tried > 500);
}

/* What it is for: a smooth field leaves small numbers. */
static void test_is_small(void)
{
	static const uint8_t predictors[] = { VV_PREDICT_LORENZO, VV_PREDICT_REAL };
	uint64_t state = 3;

	for (size_t k = 0; k < 2; k++) {
		struct vv_recipe how = { .width = 8, .record = 1, .predictor = predictors[k], .real = true, .n_strides = 3, .stride = { 1, 40, 1200 } };
		size_t small = 0;

		numbers_fill(&state, NUMBERS_SMOOTH, &how, x, MOST * 8);
		forth(&how, &state, x, MOST, mine);
		for (size_t i = 0; i < MOST; i++)
			small += mine[i * 8 + 6] == 0 && mine[i * 8 + 7] == 0;
		CHECK(small > MOST * 9 / 10);
	}
}

static void test_cannot(void)
{
	static const struct vv_recipe bad[] = {
		{ .width = 0, .record = 1 },
		{ .width = 3, .record = 1 },
		{ .width = 32, .record = 1 },
		{ .width = 8, .record = 1, .n_strides = 1, .stride = { 1 } },
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO },
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO, .n_strides = 1 },
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO, .n_strides = 2, .stride = { 4, 3 } },
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO, .n_strides = 4, .stride = { 1, 2, 3 } },
		{ .width = 16, .record = 1, .predictor = VV_PREDICT_LORENZO, .n_strides = 1, .stride = { 1 } },
		{ .width = 1, .record = 1, .predictor = VV_PREDICT_LORENZO, .real = true, .n_strides = 1, .stride = { 1 } },
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_REAL, .n_strides = 1, .stride = { 1 } },
		{ .width = 2, .record = 1, .predictor = VV_PREDICT_REAL, .real = true, .n_strides = 1, .stride = { 1 } },
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_FPC, .real = true, .n_strides = 1, .stride = { 1 } },
		{ .width = 8, .record = 1, .predictor = 255, .real = true, .n_strides = 1, .stride = { 1 } },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!vv_predict_can(&bad[i]));
}

/* Denormals become 0, as programs compiled with fast-math have it. */
static void flush_to_zero(bool on)
{
#if defined(__x86_64__)
	unsigned csr = __builtin_ia32_stmxcsr();

	__builtin_ia32_ldmxcsr(on ? csr | 0x8040 : csr & ~0x8040u);
#elif defined(__aarch64__)
	uint64_t fpcr;

	__asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
	fpcr = on ? fpcr | 1u << 24 : fpcr & ~(1ull << 24);
	__asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#else
	(void)on;
#endif
}

/* The thread that takes a checkpoint is the program's, and its arithmetic may be anything; and it gets it back as it was. */
static void test_other_arithmetic(void)
{
	static const int rounding[] = { FE_UPWARD, FE_TOWARDZERO, FE_DOWNWARD, FE_TONEAREST };
	uint64_t state = 5;

	for (unsigned kind = 0; kind < NUMBERS_KINDS; kind++)
		for (unsigned k = 0; k < 8; k++) {
			struct vv_recipe how = { .width = k % 2 ? 8 : 4, .record = 1, .predictor = VV_PREDICT_REAL, .real = true, .n_strides = 3,
						 .stride = { 1, 40, 1200 } };

			numbers_fill(&state, kind, &how, x, sizeof(x));
			refer(&how, x, MOST, theirs);
			fesetround(rounding[k / 2]);
			flush_to_zero(k / 2 == 3);
			feclearexcept(FE_ALL_EXCEPT);
			forth(&how, &state, x, MOST, mine);
			back(&how, &state, mine, MOST, again);
			CHECK_EQ(fegetround(), rounding[k / 2]);
			CHECK_EQ(fetestexcept(FE_ALL_EXCEPT), 0);
			flush_to_zero(false);
			fesetround(FE_TONEAREST);
			CHECK(memcmp(mine, theirs, MOST * how.width) == 0);
			CHECK(memcmp(again, x, MOST * how.width) == 0);
		}
}

int main(void)
{
	for (int level = VV_CPU_BASELINE; level <= (int)vv_cpu_most(); level++) {
		CHECK_EQ(vv_cpu_hold((enum vv_cpu_level)level), level);
		test_all();
		test_is_small();
		test_cannot();
		test_other_arithmetic();
	}
	return 0;
}
