/* Differences of integers are exact. Predictions in floating point must be equal to the last bit on
 * every machine. The order of operations is therefore fixed here (and in docs/format.md), and
 * nothing may fuse or reorder them. This file is compiled with -ffp-contract=off, never with
 * fast-math. The program's own settings of arithmetic (rounding, flushing to zero, traps) are
 * suspended during the work. The loops are compiled once for each level of the processor's vector
 * units (base/cpu.h). */
#include "codec/predict.h"
#include "base/cpu.h"
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__FAST_MATH__) || FLT_EVAL_METHOD != 0
#error "predictions must be exact: no fast-math, no excess precision"
#endif

enum { TILE = VV_PREDICT_TILE, FEW = 16, RUN = 512 };

/* Unaligned numbers. */
typedef uint8_t u1;
typedef uint16_t __attribute__((aligned(1), may_alias)) u2;
typedef uint32_t __attribute__((aligned(1), may_alias)) u4;
typedef uint64_t __attribute__((aligned(1), may_alias)) u8;
typedef float __attribute__((aligned(1), may_alias)) f4;
typedef double __attribute__((aligned(1), may_alias)) f8;

#define SWAP1(v) (v)
#define SWAP2(v) __builtin_bswap16(v)
#define SWAP4(v) __builtin_bswap32(v)
#define SWAP8(v) __builtin_bswap64(v)

/* Integers of W bytes. q[mask] points to the numbers that lie before by the strides of the mask's
 * bits; q[0] are the numbers themselves. */
#define WHOLE(W)                                                                                                      \
	/* Floating-point bits in ascending order: negative numbers reversed, below the others. */                    \
	static inline u##W ordered##W(u##W v)                                                                         \
	{                                                                                                             \
		u##W top = (u##W)((u##W)1 << (8 * W - 1)), negative = (u##W)(0 - (v >> (8 * W - 1)));                 \
		return (u##W)(v ^ (negative | top));                                                                  \
	}                                                                                                             \
	static inline u##W unordered##W(u##W v)                                                                       \
	{                                                                                                             \
		u##W top = (u##W)((u##W)1 << (8 * W - 1)), negative = (u##W)~(0 - (v >> (8 * W - 1)));                \
		return (u##W)(v ^ (negative | top));                                                                  \
	}                                                                                                             \
	static inline u##W zigzag##W(u##W v)                                                                          \
	{                                                                                                             \
		return (u##W)((u##W)(v << 1) ^ (u##W)(0 - (v >> (8 * W - 1))));                                       \
	}                                                                                                             \
	static inline u##W unzigzag##W(u##W v)                                                                        \
	{                                                                                                             \
		return (u##W)((v >> 1) ^ (u##W)(0 - (v & 1)));                                                        \
	}                                                                                                             \
	static inline u##W value##W(u##W v, bool swapped, bool real)                                                  \
	{                                                                                                             \
		v = swapped ? SWAP##W(v) : v;                                                                         \
		return real ? ordered##W(v) : v;                                                                      \
	}                                                                                                             \
	static inline void step##W(const u##W *x, size_t n, size_t stride, bool swapped, bool real, u##W *restrict y) \
	{                                                                                                             \
		for (size_t i = 0; i < n && !stride; i++)                                                             \
			y[i] = value##W(x[i], swapped, real);                                                         \
		for (size_t i = 0; i < n && stride; i++)                                                              \
			y[i] = (u##W)(value##W(x[i], swapped, real) - value##W((x - stride)[i], swapped, real));      \
	}                                                                                                             \
	/* Differences over the first stride; 0: the numbers themselves. */                                          \
	static void first##W(const void *x, size_t n, size_t stride, bool swapped, bool real, void *restrict y)       \
	{                                                                                                             \
		if (swapped && real)                                                                                  \
			step##W(x, n, stride, true, true, y);                                                         \
		else if (swapped)                                                                                     \
			step##W(x, n, stride, true, false, y);                                                        \
		else                                                                                                  \
			step##W(x, n, stride, false, real, y);                                                        \
	}                                                                                                             \
	/* The inverse of value. */                                                                                   \
	static inline u##W plain##W(u##W v, bool swapped, bool real)                                                  \
	{                                                                                                             \
		v = real ? unordered##W(v) : v;                                                                       \
		return swapped ? SWAP##W(v) : v;                                                                      \
	}                                                                                                             \
	static inline void end_with##W(u##W *x, size_t n, bool swapped, bool real)                                    \
	{                                                                                                             \
		for (size_t i = 0; i < n; i++)                                                                        \
			x[i] = plain##W(x[i], swapped, real);                                                         \
	}                                                                                                             \
	static void end##W(void *x, size_t n, bool swapped, bool real)                                                \
	{                                                                                                             \
		if (swapped && real)                                                                                  \
			end_with##W(x, n, true, true);                                                                \
		else if (swapped)                                                                                     \
			end_with##W(x, n, true, false);                                                               \
		else if (real)                                                                                        \
			end_with##W(x, n, false, true);                                                               \
	}                                                                                                             \
	/* Differences over the other strides: q are differences over the first. */                                   \
	static void differ##W(const void *const *q, unsigned strides, size_t n, void *restrict out)                   \
	{                                                                                                             \
		const u##W *a = q[0], *b = q[2], *c = q[4], *bc = q[6];                                               \
		u##W *restrict r = out;                                                                               \
                                                                                                                      \
		for (size_t i = 0; strides == 1 && i < n; i++)                                                        \
			r[i] = zigzag##W(a[i]);                                                                       \
		for (size_t i = 0; strides == 2 && i < n; i++)                                                        \
			r[i] = zigzag##W((u##W)(a[i] - b[i]));                                                        \
		for (size_t i = 0; strides == 3 && i < n; i++)                                                        \
			r[i] = zigzag##W((u##W)(a[i] - b[i] - c[i] + bc[i]));                                         \
	}                                                                                                             \
	/* The inverse: residuals to differences over the first stride. Each step takes as many as                    \
	 * do not depend on each other. If one step takes all, the compiler's own check finds                         \
	 * dependencies. */                                                                                           \
	static void agree##W(const void *const *q, unsigned strides, size_t n, size_t row, void *at)                  \
	{                                                                                                             \
		const u##W *b = q[2], *c = q[4], *bc = q[6];                                                          \
		u##W *x = at;                                                                                         \
                                                                                                                      \
		for (size_t i = 0; strides == 1 && i < n; i++)                                                        \
			x[i] = unzigzag##W(x[i]);                                                                     \
		for (size_t some; strides > 1 && n; n -= some, x += some, b += some, c += some, bc += some) {         \
			some = n < row ? n : row;                                                                     \
			for (size_t i = 0; strides == 2 && i < some; i++)                                             \
				x[i] = (u##W)(unzigzag##W(x[i]) + b[i]);                                              \
			for (size_t i = 0; strides == 3 && i < some; i++)                                             \
				x[i] = (u##W)(unzigzag##W(x[i]) + b[i] + c[i] - bc[i]);                               \
		}                                                                                                     \
	}                                                                                                             \
	static inline void add##W(u##W *restrict x, const u##W *restrict before, size_t n)                            \
	{                                                                                                             \
		for (size_t i = 0; i < n; i++)                                                                        \
			x[i] = (u##W)(x[i] + before[i]);                                                              \
	}                                                                                                             \
	/* The last numbers are not loaded again after they were stored: with a constant stride                       \
	 * they are in registers. */                                                                                  \
	static inline size_t columns##W(u##W *x, size_t at, size_t end, const size_t stride)                          \
	{                                                                                                             \
		u##W last[FEW];                                                                                       \
                                                                                                                      \
		for (size_t k = 0; k < stride; k++)                                                                   \
			last[k] = x[at - stride + k];                                                                 \
		for (; end - at >= stride; at += stride)                                                              \
			for (size_t k = 0; k < stride; k++)                                                           \
				x[at + k] = last[k] = (u##W)(last[k] + x[at + k]);                                    \
		return at;                                                                                            \
	}                                                                                                             \
	/* Turns differences over a stride into their sums. */                                                        \
	static void sum##W(void *from, size_t at, size_t end, size_t stride)                                          \
	{                                                                                                             \
		u##W *x = from;                                                                                       \
                                                                                                                      \
		at = at < stride ? stride : at;                                                                       \
		if (at < end && stride == 2)                                                                          \
			at = columns##W(x, at, end, 2);                                                               \
		else if (at < end && stride == 3)                                                                     \
			at = columns##W(x, at, end, 3);                                                               \
		else if (at < end && stride == 6)                                                                     \
			at = columns##W(x, at, end, 6);                                                               \
		for (; stride < FEW && at < end; at++)                                                                \
			x[at] = (u##W)(x[at] + x[at - stride]);                                                       \
		for (size_t n; at < end; at += n) {                                                                   \
			n = end - at < stride ? end - at : stride;                                                    \
			add##W(x + at, x + at - stride, n);                                                           \
		}                                                                                                     \
	}

WHOLE(1)
WHOLE(2)
WHOLE(4)
WHOLE(8)

/* Turns differences from the preceding number into the numbers. Each waits for the one before it:
 * one addition, with the rest of the work apart. */
#define TOTAL(W)                                                                                                      \
	static uint64_t total##W(void *from, size_t n, uint64_t before, bool swapped, bool real)                      \
	{                                                                                                             \
		u##W *x = from, sum = (u##W)before;                                                                   \
                                                                                                                      \
		for (size_t some; n; n -= some, x += some) {                                                          \
			some = n < RUN ? n : RUN;                                                                     \
			for (size_t i = 0; i < some; i++) {                                                           \
				sum = (u##W)(sum + x[i]);                                                             \
				__asm__("" : "+r"(sum)); /* in a register of its own kind */                          \
				x[i] = sum;                                                                           \
			}                                                                                             \
			end##W(x, some, swapped, real);                                                               \
		}                                                                                                     \
		return sum;                                                                                           \
	}

TOTAL(1)
TOTAL(2)
TOTAL(8)

/* Numbers of 4 bytes, eight at a time; each eight wait for the eight before them. */
typedef uint32_t __attribute__((vector_size(16))) four;
typedef uint32_t __attribute__((vector_size(16), aligned(1), may_alias)) any_four;
#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (four){ __VA_ARGS__ })
#endif

static inline four sums_of(four x)
{
	const four none = { 0 };

	x += SHUFFLE(none, x, 3, 4, 5, 6);
	return x + SHUFFLE(none, x, 2, 3, 4, 5);
}

static inline four plain_four(four v, bool real)
{
	const four top = { 1u << 31, 1u << 31, 1u << 31, 1u << 31 };

	return real ? v ^ (~(0 - (v >> 31)) | top) : v;
}

static inline uint32_t total_with(u4 *x, size_t n, uint32_t sum, bool real)
{
	four last = { sum, sum, sum, sum };
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		any_four *at = (any_four *)(x + i);
		four v = sums_of(at[0]), w = sums_of(at[1]) + SHUFFLE(v, v, 3, 3, 3, 3), all = SHUFFLE(w, w, 3, 3, 3, 3);

		at[0] = plain_four(v + last, real);
		at[1] = plain_four(w + last, real);
		last += all;
	}
	for (sum = last[0]; i < n; i++) {
		sum += x[i];
		x[i] = plain4(sum, false, real);
	}
	return sum;
}

static uint64_t total4(void *from, size_t n, uint64_t before, bool swapped, bool real)
{
	uint32_t sum = real ? total_with(from, n, (uint32_t)before, true) : total_with(from, n, (uint32_t)before, false);

	end4(from, n, swapped, false);
	return sum;
}

/* Integer arithmetic in floating-point registers. Compilers use the integer registers, at three
 * cycles there and three back. */
#if defined(__aarch64__)
#define ADD4(v, x, y) __asm__("add %0.2s, %1.2s, %2.2s" : "=w"(v) : "w"(x), "w"(y))
#define ADD8(v, x, y) __asm__("add %d0, %d1, %d2" : "=w"(v) : "w"(x), "w"(y))
#define SUB4(v, x, y) __asm__("sub %0.2s, %1.2s, %2.2s" : "=w"(v) : "w"(x), "w"(y))
#define SUB8(v, x, y) __asm__("sub %d0, %d1, %d2" : "=w"(v) : "w"(x), "w"(y))
#elif defined(__AVX__)
#define ADD4(v, x, y) __asm__("vpaddd %2, %1, %0" : "=x"(v) : "x"(x), "x"(y))
#define ADD8(v, x, y) __asm__("vpaddq %2, %1, %0" : "=x"(v) : "x"(x), "x"(y))
#define SUB4(v, x, y) __asm__("vpsubd %2, %1, %0" : "=x"(v) : "x"(x), "x"(y))
#define SUB8(v, x, y) __asm__("vpsubq %2, %1, %0" : "=x"(v) : "x"(x), "x"(y))
#elif defined(__SSE2__)
#define ADD4(v, x, y) __asm__("paddd %2, %0" : "=x"(v) : "0"(x), "x"(y))
#define ADD8(v, x, y) __asm__("paddq %2, %0" : "=x"(v) : "0"(x), "x"(y))
#define SUB4(v, x, y) __asm__("psubd %2, %0" : "=x"(v) : "0"(x), "x"(y))
#define SUB8(v, x, y) __asm__("psubq %2, %0" : "=x"(v) : "0"(x), "x"(y))
#else
#define ADD4(v, x, y) ((v) = real4(bits4(x) + bits4(y)))
#define ADD8(v, x, y) ((v) = real8(bits8(x) + bits8(y)))
#define SUB4(v, x, y) ((v) = real4(bits4(x) - bits4(y)))
#define SUB8(v, x, y) ((v) = real8(bits8(x) - bits8(y)))
#endif

/* Real numbers of W bytes. The preceding number enters the prediction last, because the decoder
 * waits for it. */
#define REAL(W)                                                                                                       \
	static inline f##W sane##W(f##W p)                                                                            \
	{                                                                                                             \
		return p != p ? 0 : p;                                                                                \
	}                                                                                                             \
	static inline u##W bits##W(f##W p)                                                                            \
	{                                                                                                             \
		u##W v;                                                                                               \
		memcpy(&v, &p, W);                                                                                    \
		return v;                                                                                             \
	}                                                                                                             \
	static inline f##W real##W(u##W v)                                                                            \
	{                                                                                                             \
		f##W p;                                                                                               \
		memcpy(&p, &v, W);                                                                                    \
		return p;                                                                                             \
	}                                                                                                             \
	static inline u##W miss##W(f##W x, f##W p)                                                                    \
	{                                                                                                             \
		return zigzag##W(ordered##W(bits##W(x)) - ordered##W(bits##W(sane##W(p))));                           \
	}                                                                                                             \
	static __attribute__((noinline, cold)) f##W hit_far##W(u##W r, f##W p)                                        \
	{                                                                                                             \
		return real##W(unordered##W(ordered##W(bits##W(sane##W(p))) + unzigzag##W(r)));                       \
	}                                                                                                             \
	/* The next number waits for this one. Nearly always it has the sign of its prediction: the                   \
	 * residual is then added to the bits in floating-point registers, or subtracted. These                       \
	 * are two steps to wait for, not six. */                                                                     \
	static inline f##W hit##W(u##W r, f##W p)                                                                     \
	{                                                                                                             \
		u##W top = (u##W)1 << (8 * W - 1), sign = bits##W(p) & top;                                           \
		f##W v, u = real##W(unzigzag##W(r));                                                                  \
                                                                                                                      \
		if (sign)                                                                                             \
			SUB##W(v, p, u);                                                                              \
		else                                                                                                  \
			ADD##W(v, p, u);                                                                              \
		return (bits##W(p) & (top - 1)) <= bits##W((f##W)INFINITY) && (bits##W(v) & top) == sign ? v : hit_far##W(r, p); \
	}                                                                                                             \
	static void miss_all##W(const void *const *q, unsigned strides, size_t n, void *restrict out)                 \
	{                                                                                                             \
		const f##W *x = q[0], *a = q[1], *b = q[2], *ab = q[3], *c = q[4], *ac = q[5], *bc = q[6], *abc = q[7]; \
		u##W *restrict r = out;                                                                               \
                                                                                                                      \
		for (size_t i = 0; strides == 1 && i < n; i++)                                                        \
			r[i] = miss##W(x[i], a[i]);                                                                   \
		for (size_t i = 0; strides == 2 && i < n; i++)                                                        \
			r[i] = miss##W(x[i], a[i] + (b[i] - ab[i]));                                                  \
		for (size_t i = 0; strides == 3 && i < n; i++)                                                        \
			r[i] = miss##W(x[i], a[i] + ((b[i] - ab[i]) + ((c[i] - ac[i]) - (bc[i] - abc[i]))));          \
	}                                                                                                             \
	static void hit_all##W(const void *const *q, unsigned strides, size_t n, void *at)                            \
	{                                                                                                             \
		const f##W *a = q[1], *b = q[2], *ab = q[3], *c = q[4], *ac = q[5], *bc = q[6], *abc = q[7];          \
		f##W *x = at, last = a[0];                                                                            \
		const u##W *r = at;                                                                                   \
                                                                                                                      \
		if (a == x - 1)                                                                                       \
			HITS(W, last)                                                                                 \
		else                                                                                                  \
			HITS(W, a[i])                                                                                 \
	}

/* The preceding number is kept in a register, not loaded from memory where it was just stored. */
#define HITS(W, A)                                                                                                    \
	{                                                                                                             \
		for (size_t i = 0; strides == 1 && i < n; i++)                                                        \
			x[i] = last = hit##W(r[i], A);                                                                \
		for (size_t i = 0; strides == 2 && i < n; i++)                                                        \
			x[i] = last = hit##W(r[i], A + (b[i] - ab[i]));                                               \
		for (size_t i = 0; strides == 3 && i < n; i++)                                                        \
			x[i] = last = hit##W(r[i], A + ((b[i] - ab[i]) + ((c[i] - ac[i]) - (bc[i] - abc[i]))));       \
	}

REAL(4)
REAL(8)

struct predict_width {
	void (*first)(const void *x, size_t n, size_t stride, bool swapped, bool real, void *restrict y);
	void (*differ)(const void *const *q, unsigned strides, size_t n, void *restrict out);
	void (*agree)(const void *const *q, unsigned strides, size_t n, size_t row, void *at);
	uint64_t (*total)(void *x, size_t n, uint64_t sum, bool swapped, bool real);
	void (*sum)(void *x, size_t at, size_t end, size_t stride);
	void (*end)(void *x, size_t n, bool swapped, bool real);
	void (*miss)(const void *const *q, unsigned strides, size_t n, void *restrict out);
	void (*hit)(const void *const *q, unsigned strides, size_t n, void *at);
};

struct predict_loops {
	struct predict_width widths[9];
};

VV_CPU_TABLES(struct predict_loops, vv_predict_loops);

const struct predict_loops VV_CPU_NAME(vv_predict_loops) = { {
	[1] = { first1, differ1, agree1, total1, sum1, end1, NULL, NULL },
	[2] = { first2, differ2, agree2, total2, sum2, end2, NULL, NULL },
	[4] = { first4, differ4, agree4, total4, sum4, end4, miss_all4, hit_all4 },
	[8] = { first8, differ8, agree8, total8, sum8, end8, miss_all8, hit_all8 },
} };

#ifndef VV_CPU_LEVEL /* ---- all else, once ---- */

/* The numbers before the beginning; never written. */
static uint8_t zeros[TILE];

static inline const struct predict_width *loops(unsigned width)
{
	return &VV_CPU_UP_TO_AVX2(vv_predict_loops)->widths[width];
}

bool vv_predict_can(const struct vv_recipe *how)
{
	unsigned w = how->width;
	bool can = w == 1 || w == 2 || w == 4 || w == 8;

	if (how->predictor == VV_PREDICT_NONE)
		return (can || w == 16) && how->n_strides == 0;
	can = can && how->n_strides >= 1 && how->n_strides <= VV_RECIPE_STRIDES && how->stride[0] >= 1 && (!how->real || w > 1);
	for (unsigned i = 1; can && i < how->n_strides; i++)
		can = how->stride[i] >= how->stride[i - 1];
	return can && (how->predictor == VV_PREDICT_LORENZO || (how->predictor == VV_PREDICT_REAL && how->real && loops(w)->miss));
}

bool vv_predict_changes(const struct vv_recipe *how)
{
	return how->predictor != VV_PREDICT_NONE;
}

static void measure(const struct vv_recipe *how, size_t off[1 << VV_RECIPE_STRIDES])
{
	for (unsigned mask = 0; mask < 1u << VV_RECIPE_STRIDES; mask++) {
		off[mask] = 0;
		for (unsigned k = 0; k < how->n_strides; k++)
			off[mask] += mask >> k & 1 ? how->stride[k] : 0;
	}
}

/* Finds the neighbours of numbers at .. at + n - 1. Returns how many of these have the same
 * neighbours before the beginning. */
static size_t neighbours(const uint8_t *x, unsigned width, const size_t off[1 << VV_RECIPE_STRIDES], size_t at, size_t n,
			 const void *q[1 << VV_RECIPE_STRIDES])
{
	n = n < TILE / width ? n : TILE / width;
	for (unsigned mask = 0; mask < 1u << VV_RECIPE_STRIDES; mask++) {
		q[mask] = at < off[mask] ? zeros : x + (at - off[mask]) * width;
		if (at < off[mask] && n > off[mask] - at)
			n = off[mask] - at;
	}
	return n;
}

/* ---- forth ---- */

void vv_predict_init(struct vv_predict *p, const struct vv_recipe *how, const void *from, void *room)
{
	*p = (struct vv_predict){ .how = how, .from = from, .room = room };
	measure(how, p->off);
}

/* The source of neighbours: the differences over the first stride, or the numbers in this machine's
 * byte order if floating-point numbers are subtracted. */
static const uint8_t *prepare(struct vv_predict *p, size_t at, size_t n)
{
	const struct vv_recipe *how = p->how;
	bool whole = how->predictor == VV_PREDICT_LORENZO;
	size_t stride = whole ? how->stride[0] : 0, alone = at < stride ? stride - at : 0;

	if (!whole && !how->swapped)
		return p->from;
	alone = stride ? alone < n ? alone : n : n;
	loops(how->width)->first(p->from + at * how->width, alone, 0, how->swapped, how->real && whole, p->room + at * how->width);
	at += alone;
	loops(how->width)->first(p->from + at * how->width, n - alone, stride, how->swapped, how->real, p->room + at * how->width);
	return p->room;
}

static void forth(struct vv_predict *p, size_t at, size_t n, uint8_t *out)
{
	const struct predict_width *w = loops(p->how->width);
	const uint8_t *x = prepare(p, at, n);
	const void *q[1 << VV_RECIPE_STRIDES];

	for (size_t some; n; at += some, n -= some, out += some * p->how->width) {
		some = neighbours(x, p->how->width, p->off, at, n, q);
		(p->how->predictor == VV_PREDICT_REAL ? w->miss : w->differ)(q, p->how->n_strides, some, out);
	}
}

void vv_predict_next(struct vv_predict *p, size_t at, size_t n, void *out)
{
	fenv_t env;

	if (p->how->predictor == VV_PREDICT_REAL) {
		feholdexcept(&env);
		fesetenv(FE_DFL_ENV);
	}
	forth(p, at, n, out);
	if (p->how->predictor == VV_PREDICT_REAL)
		fesetenv(&env);
}

/* ---- back ---- */

void vv_predict_back_init(struct vv_predict_back *b, const struct vv_recipe *how, void *x, size_t count)
{
	*b = (struct vv_predict_back){ .how = how, .x = x, .count = count };
	measure(how, b->off);
}

/* A pass may overwrite numbers that the pass before it no longer reads. */
static size_t behind(const struct vv_predict_back *b, size_t end, size_t stride)
{
	return end == b->count ? end : end > stride ? end - stride : 0;
}

/* Turns residuals into differences over the first stride, from those in the row and the plane
 * before. */
static void agree(struct vv_predict_back *b, size_t have)
{
	const struct predict_width *w = loops(b->how->width);
	const void *q[1 << VV_RECIPE_STRIDES];
	size_t row = b->how->n_strides > 1 && b->how->stride[1] >= FEW ? b->how->stride[1] : SIZE_MAX;

	for (size_t some; b->done[0] < have; b->done[0] += some) {
		some = neighbours(b->x, b->how->width, b->off, b->done[0], have - b->done[0], q);
		w->agree(q, b->how->n_strides, some, row, b->x + b->done[0] * b->how->width);
	}
}

/* The next pass, with its beginning and end. */
static uint8_t *pass(struct vv_predict_back *b, unsigned k, size_t end, size_t *n)
{
	uint8_t *x = b->x + b->done[k] * b->how->width;

	*n = end > b->done[k] ? end - b->done[k] : 0;
	b->done[k] += *n;
	return x;
}

static void sum_up(struct vv_predict_back *b, size_t have)
{
	const struct predict_width *w = loops(b->how->width);
	const struct vv_recipe *how = b->how;
	size_t at = b->done[1], n;
	uint8_t *x;

	agree(b, have);
	have = behind(b, have, b->off[6]);
	x = pass(b, 1, have, &n);
	if (how->stride[0] == 1) {
		b->sum = w->total(x, n, b->sum, how->swapped, how->real);
		return;
	}
	w->sum(b->x, at, at + n, how->stride[0]);
	x = pass(b, 2, behind(b, have, how->stride[0]), &n);
	w->end(x, n, how->swapped, how->real);
}

static void hit_them(struct vv_predict_back *b, size_t have)
{
	const struct predict_width *w = loops(b->how->width);
	const void *q[1 << VV_RECIPE_STRIDES];
	uint8_t *x;
	fenv_t env;
	size_t n;

	feholdexcept(&env);
	fesetenv(FE_DFL_ENV);
	for (size_t some; b->done[0] < have; b->done[0] += some) {
		some = neighbours(b->x, b->how->width, b->off, b->done[0], have - b->done[0], q);
		w->hit(q, b->how->n_strides, some, b->x + b->done[0] * b->how->width);
	}
	fesetenv(&env);
	x = pass(b, 1, behind(b, have, b->off[(1u << b->how->n_strides) - 1]), &n);
	w->end(x, n, b->how->swapped, false);
}

void vv_predict_back_to(struct vv_predict_back *b, size_t have)
{
	if (b->how->predictor == VV_PREDICT_LORENZO)
		sum_up(b, have);
	else if (b->how->predictor == VV_PREDICT_REAL)
		hit_them(b, have);
}

#endif
