/* The loops are compiled once for each level of the processor's vector units (base/cpu.h). */
#include "codec/split.h"
#include "base/cpu.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/context_pool.h"
#include "codec/plane_frame.h"
#include <string.h>

enum {
	/* so many bytes are counted, in words, of a plane of at least this length; */
	COUNTED = 1 << 10,
	WORD = 4,
	SAMPLED = 32 << 10, /* and a plane of at least this length is tried first */
	SAMPLE = 4 << 10,
	QUICK = 3,          /* the level of that trial, at most */
	TINY = 32,          /* a frame has ten bytes of overhead: no shorter plane is worth one */
	VARINT = 4,         /* bytes of a length, at most: a block is not longer than 64 MiB */
	COLUMN = 256,       /* items of a record that are processed together */
};

/* ---- apart and together ---- */

/* Width and steps are constants, so that a compiler makes vector code of them. */
#define WIDTH(W)                                                                                              \
	static void split##W(const uint8_t *restrict x, size_t n, uint8_t *restrict plane, size_t step)       \
	{                                                                                                     \
		uint8_t part[W][COLUMN];                                                                      \
                                                                                                              \
		for (size_t some; n; n -= some, x += W * some, plane += some) {                               \
			some = n < COLUMN ? n : COLUMN;                                                       \
			for (size_t i = 0; i < some; i++)                                                     \
				for (size_t k = 0; k < W; k++)                                                \
					part[k][i] = x[i * W + k];                                            \
			for (size_t k = 0; k < W; k++)                                                        \
				memcpy(plane + k * step, part[k], some);                                      \
		}                                                                                             \
	}                                                                                                     \
	static void join##W(const uint8_t *const *plane, size_t at, size_t n, uint8_t *restrict x)            \
	{                                                                                                     \
		const uint8_t *p[W];                                                                          \
                                                                                                              \
		for (size_t k = 0; k < W; k++)                                                                \
			p[k] = plane[k] + at;                                                                 \
		for (size_t i = 0; i < n; i++)                                                                \
			for (size_t k = 0; k < W; k++)                                                        \
				x[i * W + k] = p[k][i];                                                       \
	}                                                                                                     \
	static void gather##W(const uint8_t *restrict x, size_t n, size_t width, uint8_t *restrict column)    \
	{                                                                                                     \
		for (size_t i = 0; i < n; i++)                                                                \
			memcpy(column + i * W, x + i * width, W);                                             \
	}                                                                                                     \
	static void scatter##W(const uint8_t *restrict column, size_t n, size_t width, uint8_t *restrict x)   \
	{                                                                                                     \
		for (size_t i = 0; i < n; i++)                                                                \
			memcpy(x + i * width, column + i * W, W);                                             \
	}

WIDTH(1)
WIDTH(2)
WIDTH(4)
WIDTH(8)
WIDTH(16)

/* Interleaves the bytes of two vectors: one, two or four at a time, of their first halves or their
 * last ones. */
typedef uint8_t __attribute__((vector_size(16))) bytes;
typedef uint8_t __attribute__((vector_size(16), aligned(1), may_alias)) any_bytes;
#ifdef __clang__
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(a, b, ...) __builtin_shuffle(a, b, (bytes){ __VA_ARGS__ })
#endif
#define ONES(a, b) MIX(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ONES_END(a, b) MIX(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define TWOS(a, b) MIX(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23)
#define TWOS_END(a, b) MIX(a, b, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31)
#define FOURS(a, b) MIX(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23)
#define FOURS_END(a, b) MIX(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31)

static inline void put_two(bytes two, size_t width, uint8_t *x)
{
	memcpy(x, &two, 8);
	memcpy(x + width, (uint8_t *)&two + 8, 8);
}

/* Writes four items; a has their first four bytes and b the last. */
static inline void put_four(bytes a, bytes b, size_t width, uint8_t *x)
{
	put_two(FOURS(a, b), width, x);
	put_two(FOURS_END(a, b), width, x + 2 * width);
}

/* Joins eight planes of a record: sixteen items at a time, each to its place. */
static void join_far(const uint8_t *const *plane, size_t at, size_t n, size_t width, uint8_t *restrict x)
{
	for (size_t i = 0; i + 16 <= n; i += 16, x += 16 * width) {
		bytes a[8], b[8];

		for (unsigned k = 0; k < 8; k++)
			a[k] = *(const any_bytes *)(plane[k] + at + i);
		for (unsigned k = 0; k < 4; k++) {
			b[k] = ONES(a[2 * k], a[2 * k + 1]);
			b[k + 4] = ONES_END(a[2 * k], a[2 * k + 1]);
		}
		/* the first or the last four bytes of four items */
		for (unsigned k = 0; k < 4; k++) {
			a[2 * k] = TWOS(b[2 * k], b[2 * k + 1]);
			a[2 * k + 1] = TWOS_END(b[2 * k], b[2 * k + 1]);
		}
		put_four(a[0], a[2], width, x);
		put_four(a[1], a[3], width, x + 4 * width);
		put_four(a[4], a[6], width, x + 8 * width);
		put_four(a[5], a[7], width, x + 12 * width);
	}
}

/* Joins records whose width is a multiple of eight bytes. Returns their number, which is all but a
 * few. */
static size_t join_records(const uint8_t *const *plane, size_t at, size_t n, unsigned width, uint8_t *x)
{
	n -= n % 16;
	for (size_t i = 0; i < n; i += COLUMN)
		for (unsigned k = 0; k < width; k += 8)
			join_far(plane + k, at + i, n - i < COLUMN ? n - i : COLUMN, width, x + i * width + k);
	return n;
}

struct split_width {
	unsigned width;
	void (*split)(const uint8_t *restrict x, size_t n, uint8_t *restrict plane, size_t step);
	void (*join)(const uint8_t *const *plane, size_t at, size_t n, uint8_t *restrict x);
	void (*gather)(const uint8_t *restrict x, size_t n, size_t width, uint8_t *restrict column);
	void (*scatter)(const uint8_t *restrict column, size_t n, size_t width, uint8_t *restrict x);
};

struct split_loops {
	struct split_width widths[5];
	size_t (*records)(const uint8_t *const *plane, size_t at, size_t n, unsigned width, uint8_t *x);
};

VV_CPU_TABLES(struct split_loops, vv_split_loops);

const struct split_loops VV_CPU_NAME(vv_split_loops) = {
	{
		{ 16, split16, join16, gather16, scatter16 },
		{ 8, split8, join8, gather8, scatter8 },
		{ 4, split4, join4, gather4, scatter4 },
		{ 2, split2, join2, gather2, scatter2 },
		{ 1, split1, join1, gather1, scatter1 },
	},
	join_records,
};

#ifndef VV_CPU_LEVEL /* ---- all else, once ---- */

static inline const struct split_loops *loops(void)
{
	return VV_CPU_UP_TO_AVX2(vv_split_loops);
}

/* The widest unit that divides the width. */
static const struct split_width *unit_of(unsigned width)
{
	const struct split_width *w = loops()->widths;

	while (width % w->width)
		w++;
	return w;
}

void vv_split_apart(const uint8_t *x, size_t n, unsigned width, uint8_t *plane, size_t step)
{
	const struct split_width *w = unit_of(width);
	uint8_t column[COLUMN * 16];

	if (w->width == width) {
		w->split(x, n, plane, step);
		return;
	}
	for (size_t i = 0; i < n; i += COLUMN) {
		size_t some = n - i < COLUMN ? n - i : COLUMN;

		for (unsigned k = 0; k < width; k += w->width) {
			w->gather(x + i * width + k, some, width, column);
			w->split(column, some, plane + k * step + i, step);
		}
	}
}

void vv_split_join(const uint8_t *const *plane, size_t at, size_t n, unsigned width, uint8_t *x)
{
	const struct split_width *w = unit_of(width);
	uint8_t column[COLUMN * 16];

	if (w->width == width) {
		w->join(plane, at, n, x);
		return;
	}
	for (size_t i = w->width == 8 ? loops()->records(plane, at, n, width, x) : 0; i < n; i += COLUMN) {
		size_t some = n - i < COLUMN ? n - i : COLUMN;

		for (unsigned k = 0; k < width; k += w->width) {
			w->join(plane + k, at + i, some, column);
			w->scatter(column, some, width, x + i * width + k);
		}
	}
}

/* ---- compression ---- */

static bool is_constant(const uint8_t *p, size_t n)
{
	return memcmp(p, p + 1, n - 1) == 0;
}

/* Does each value occur as often as in random data? It counts some bytes from all over the plane.
 * In counters or repetitions the frequencies are more equal or less equal. The squares of the
 * frequencies of n random bytes sum up to n * n / 256 + n, with a deviation of about a fiftieth. A
 * sum within a sixteenth is taken for noise: compression would cost more bytes than it saves. */
static bool is_noise(const uint8_t *p, size_t n)
{
	const uint64_t chance = COUNTED * COUNTED / 256 + COUNTED;
	const size_t step = n / (COUNTED / WORD);
	uint16_t count[WORD][256] = { 0 };
	uint32_t squares = 0; /* COUNTED * COUNTED at most */

	/* in separate counts, so that no increment waits for the one before it */
	for (size_t i = 0; i < COUNTED / WORD; i++, p += step) {
		count[0][p[0]]++;
		count[1][p[1]]++;
		count[2][p[2]]++;
		count[3][p[3]]++;
	}
	for (size_t v = 0; v < 256; v++) {
		uint32_t all = (uint32_t)count[0][v] + count[1][v] + count[2][v] + count[3][v];

		squares += all * all;
	}
	return squares * 16 < chance * 17 && squares * 16 > chance * 15;
}

/* Is the plane noise? Or, if it is longer, does no sample from its beginning, middle and end
 * shrink? A recipe with a window is never hopeless: it looks for repetitions that no sample
 * shows. */
static bool is_hopeless(const uint8_t *p, size_t n, const struct vv_recipe *how)
{
	struct vv_recipe quick = *how;
	uint8_t to[SAMPLE];
	size_t got = 0;

	if (n < COUNTED || how->window)
		return false;
	if (is_noise(p, n))
		return true;
	if (n < SAMPLED)
		return false;
	quick.level = how->level > QUICK ? QUICK : how->level;
	for (size_t k = 0; !got && k < 3; k++)
		if (vv_plane_frame_quick(p + (n - SAMPLE) / 2 * k, SAMPLE, &quick, to, sizeof(to), &got) < 0)
			return false;
	return !got;
}

enum fate { ALIKE, RAW, CODED };

static enum fate judge(const uint8_t *p, size_t n, const struct vv_recipe *how)
{
	if (n > 1 && is_constant(p, n))
		return ALIKE;
	return n >= TINY && how->coder != VV_CODEC_NONE && !is_hopeless(p, n, how) ? CODED : RAW;
}

/* Stores one plane in at most cap bytes: one byte if all are equal, n uncompressed bytes, or a
 * compressed frame. Sets *out = 0 if it does not fit. */
static int encode_plane(const uint8_t *p, size_t n, enum fate fate, const struct vv_recipe *how, uint8_t *to, size_t cap, size_t *out)
{
	size_t got = 0, store = fate == ALIKE ? 1 : n;
	int rc = 0;

	if (fate == CODED)
		rc = vv_plane_frame_encode(p, n, how, to, cap < n - 1 ? cap : n - 1, &got);
	*out = got > 1 ? got : store <= cap ? store : 0;
	if (rc == 0 && *out == store)
		memcpy(to, p, store);
	return rc;
}

/* Stores one plane after the other; *out = 0 if none shrinks, or if they do not fit. */
static int encode_planes(const uint8_t *plane, unsigned n_planes, size_t m, const struct vv_recipe *how, struct vv_buf *lengths, uint8_t *to,
			 size_t cap, size_t *out)
{
	uint8_t fate[VV_RECIPE_PLANES];
	size_t at = 0, got = 0;
	int rc = 0;

	for (unsigned k = 0; k < n_planes; k++) {
		fate[k] = (uint8_t)judge(plane + k * m, m, how);
		got += fate[k] != RAW;
	}
	for (unsigned k = 0; rc == 0 && got && k < n_planes; k++) {
		rc = encode_plane(plane + k * m, m, fate[k], how, to + at, cap - at, &got);
		vv_wire_put_var(lengths, got);
		at += got;
	}
	*out = got ? at : 0;
	return rc;
}

int vv_split_encode(const uint8_t *plane, unsigned n_planes, size_t m, const struct vv_recipe *how, struct vv_buf *header, const uint8_t *tail,
		    size_t tail_len, uint8_t *to, size_t cap, size_t *out)
{
	size_t longest = header->n + (size_t)n_planes * VARINT, n = n_planes * m + tail_len, got = 0, at;
	int rc = 0;

	*out = 0;
	if (cap > longest)
		rc = encode_planes(plane, n_planes, m, how, header, to + longest, cap - longest, &got);
	if (rc == 0)
		rc = vv_buf_check(header);
	if (rc || !got || header->n + got + tail_len >= n || header->n + got + tail_len > cap)
		return rc;
	at = header->n;
	memmove(to + at, to + longest, got);
	memcpy(to, header->p, at);
	memcpy(to + at + got, tail, tail_len);
	*out = at + got + tail_len;
	return 0;
}

static int damaged(const char *what)
{
	return vv_err_set(VV_EDAMAGED, "a block of byte planes does not decode: %s", what);
}

/* Decompresses one plane of m bytes, stored as n, into `to`. */
static int decode_plane(const uint8_t *p, size_t n, size_t m, uint32_t coder, uint8_t *to)
{
	if (n > 1)
		return coder ? vv_codec_decode(coder, p, n, to, m) : damaged("a plane is neither as it was nor all alike");
	memset(to, *p, m);
	return 0;
}

int vv_split_decode(struct vv_split *s, struct vv_wire *w, unsigned n_planes, size_t m, size_t tail, uint32_t coder)
{
	size_t stored[VV_RECIPE_PLANES], sum = 0, made = 0;
	int rc = 0;

	s->room = NULL;
	for (unsigned k = 0; k < n_planes; k++) {
		stored[k] = (size_t)vv_wire_var_max(w, m);
		if (w->bad || !stored[k])
			return damaged("the length of a plane is none");
		sum += stored[k];
		made += stored[k] < m;
	}
	if (vv_wire_left(w) != sum + tail)
		return damaged("the planes do not fill it");
	s->room = vv_context_pool_room(made * m);
	if (!s->room)
		return VV_ENOMEM;
	made = 0;
	for (unsigned k = 0; rc == 0 && k < n_planes; k++) {
		s->plane[k] = vv_wire_bytes(w, stored[k]);
		if (stored[k] == m)
			continue;
		rc = decode_plane(s->plane[k], stored[k], m, coder, s->room + made);
		s->plane[k] = s->room + made;
		made += m;
	}
	return rc;
}

void vv_split_fini(struct vv_split *s)
{
	vv_context_pool_room_back(s->room);
}

size_t vv_split_decode_takes(size_t n, size_t raw_len)
{
	(void)n;
	return raw_len;
}

#endif
