#include "core/dedup/cdc.h"
#include "base/err.h"
#include "base/splitmix64.h"

enum {
	SKEW = 4,    /* times less likely, and more */
	/* bytes between two checks of the remaining length; with 8 bytes the checks would be a
	 * tenth of the work */
	STRIDE = 32,
};

/* If all 64 bytes are equal, the hash is -gear[byte]. With gears below 2^63 that hash is never a
 * cut, and zeros make chunks of the maximum length. */
int vv_cdc_init(struct vv_cdc *c, size_t min, size_t avg, size_t max)
{
	uint64_t state = 0x7661727665; /* "varve" */

	if (min < VV_CDC_WINDOW || avg <= min || max <= avg || max > 1u << 30)
		return vv_err_set(VV_EINVAL, "chunks of %zu to %zu bytes, on average %zu: they must ascend, from %d on", min, max, avg, VV_CDC_WINDOW);
	*c = (struct vv_cdc){ .min = min, .max = max, .rare = UINT64_MAX / avg / SKEW, .frequent = UINT64_MAX / avg * SKEW };
	/* the cuts missed before it come after it */
	c->turn = avg - avg / 8 < min ? min : avg - avg / 8;
	for (size_t i = 0; i < 256; i++)
		c->gear[i] = vv_splitmix64_next(&state) >> 1 | 1;
	return 0;
}

/* skip: advances *q by strides while a stride is left before the end and none of its hashes is
 * below the limit. If it returns true, the hash of the byte before *q is below the limit. */
#if defined(__x86_64__)
/* A comparison and a branch that is not taken are one step. Doubling and adding takes two cycles on
 * most cores. A pair of bytes is therefore added up beforehand, and the loop waits for every second
 * hash only. */
static inline bool skip(const uint64_t *g, const uint8_t **q, const uint8_t *end, uint64_t limit, uint64_t *hash)
{
	const uint8_t *r = *q, *stop = end - (size_t)(end - r) % STRIDE;
	uint64_t h = *hash;

	for (; r < stop; r += STRIDE)
#pragma GCC unroll 16
		for (int k = 0; k < STRIDE; k += 2) {
			uint64_t gear = g[r[k]], both = (gear << 1) + g[r[k + 1]], first = (h << 1) + gear;

			/* kept apart, so that the compiler does not reorder the sums */
			__asm__("" : "+r"(both));
			h = (h << 2) + both;
			if (__builtin_expect(first < limit, 0)) {
				*q = r + k + 1;
				return true;
			}
			if (__builtin_expect(h < limit, 0)) {
				*q = r + k + 2;
				return true;
			}
		}
	*q = r;
	*hash = h;
	return false;
}
#else
/* Is any of eight hashes below the limit? The question is asked for every byte. Compilers need two
 * instructions for each hash, a comparison and a selection. One is enough where a comparison can
 * depend on the one before. */
static inline bool is_any_below(const uint64_t h[8], uint64_t limit)
{
#if defined(__aarch64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
	bool any;

	__asm__("cmp %1, %9\n\t"
		/* compares if none was below so far; otherwise keeps the result "below" */
		"ccmp %2, %9, #0, hs\n\t"
		"ccmp %3, %9, #0, hs\n\t"
		"ccmp %4, %9, #0, hs\n\t"
		"ccmp %5, %9, #0, hs\n\t"
		"ccmp %6, %9, #0, hs\n\t"
		"ccmp %7, %9, #0, hs\n\t"
		"ccmp %8, %9, #0, hs"
		: "=@cclo"(any)
		: "r"(h[0]), "r"(h[1]), "r"(h[2]), "r"(h[3]), "r"(h[4]), "r"(h[5]), "r"(h[6]), "r"(h[7]), "r"(limit));
	return any;
#else
	return (h[0] < limit) | (h[1] < limit) | (h[2] < limit) | (h[3] < limit) | (h[4] < limit) | (h[5] < limit) | (h[6] < limit) | (h[7] < limit);
#endif
}

/* One step for each byte; eight hashes are checked together. The caller finds the cut among the
 * eight. */
static inline bool skip(const uint64_t *g, const uint8_t **q, const uint8_t *end, uint64_t limit, uint64_t *hash)
{
	const uint8_t *r = *q, *stop = end - (size_t)(end - r) % STRIDE;
	uint64_t h = *hash;

	for (; r < stop; r += STRIDE)
#pragma GCC unroll 4
		for (int k = 0; k < STRIDE; k += 8) {
			uint64_t a = (h << 1) + g[r[k]], b = (a << 1) + g[r[k + 1]], d = (b << 1) + g[r[k + 2]], e = (d << 1) + g[r[k + 3]];
			uint64_t s = (e << 1) + g[r[k + 4]], t = (s << 1) + g[r[k + 5]], u = (t << 1) + g[r[k + 6]], v = (u << 1) + g[r[k + 7]];

			if (__builtin_expect(is_any_below((const uint64_t[8]){ a, b, d, e, s, t, u, v }, limit), 0)) {
				*q = r + k;
				*hash = h;
				return false;
			}
			h = v;
		}
	*q = r;
	*hash = h;
	return false;
}
#endif

/* The first position after `from`, up to `to`, where the hash is below the limit; `to` + 1 if there
 * is none. */
static size_t find_cut(const struct vv_cdc *c, const uint8_t *p, size_t from, size_t to, uint64_t limit, uint64_t *hash)
{
	const uint8_t *q = p + from, *end = p + to;

	if (skip(c->gear, &q, end, limit, hash))
		return (size_t)(q - p);
	for (uint64_t h = *hash; q < end; *hash = h) {
		h = (h << 1) + c->gear[*q++];
		if (h < limit)
			return (size_t)(q - p);
	}
	return to + 1;
}

size_t vv_cdc_next(const struct vv_cdc *c, const uint8_t *p, size_t n, bool last)
{
	size_t end = n < c->max ? n : c->max, turn = end < c->turn ? end : c->turn, cut;
	uint64_t hash = 0;

	if (n <= c->min)
		return last ? n : 0;
	(void)find_cut(c, p, c->min - VV_CDC_WINDOW, c->min, 0, &hash);
	cut = find_cut(c, p, c->min, turn, c->rare, &hash);
	if (cut > turn)
		cut = find_cut(c, p, turn, end, c->frequent, &hash);
	if (cut <= end)
		return cut;
	return end == c->max || last ? end : 0;
}
