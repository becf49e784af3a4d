// Erasure code: every set of at most m lost blocks of a stripe comes back, by ISA-L's arithmetic and by our own.
#include "core/ranks/erasure_code.h"
#include "vv_test.h"

enum { LEN = 200 };

static uint8_t block[VV_ERASURE_BLOCKS][LEN], other[LEN];

static uint8_t slow_product(uint8_t a, uint8_t b)
{
	unsigned x = 0;

	for (int i = 0; i < 8; i++)
		x ^= b >> i & 1 ? (unsigned)a << i : 0;
	for (int i = 15; i >= 8; i--)
		x ^= x >> i & 1 ? 0x11du << (i - 8) : 0;
	return (uint8_t)x;
}

static void make_parity(const struct vv_erasure_code *c, unsigned n)
{
	for (unsigned p = 0; p < c->m; p++)
		for (unsigned b = 0; b < LEN; b++) {
			uint8_t sum = 0;

			for (unsigned d = 0; d < n; d++)
				sum ^= slow_product(vv_erasure_code_factor(c, p, d), block[d][b]);
			block[c->k + p][b] = sum;
		}
}

/* Rebuilds each block that is not in `have`, a set of blocks, from the first n that are. */
static void rebuild(const struct vv_erasure_code *c, unsigned n, unsigned have, size_t len)
{
	uint8_t from[VV_ERASURE_BLOCKS], factor[VV_ERASURE_BLOCKS];
	const uint8_t *in[VV_ERASURE_BLOCKS];
	uint8_t *out = other;
	unsigned k = 0;

	for (unsigned b = 0; b < c->k + c->m && k < n; b++)
		if (have >> b & 1) {
			from[k] = (uint8_t)b;
			in[k++] = block[b];
		}
	for (unsigned b = 0; b < c->k + c->m; b++) {
		if (have >> b & 1 || (b >= n && b < c->k))
			continue;
		CHECK(vv_erasure_code_solve(c, n, from, b, factor));
		memset(other, 0xee, sizeof(other));
		vv_erasure_code_sum(factor, n, 1, len, in, &out);
		CHECK(memcmp(other, block[b], len) == 0);
		vv_erasure_code_sum_plain(factor, n, 1, len, in, &out);
		CHECK(memcmp(other, block[b], len) == 0);
	}
}

/* All subsets of the stripe's blocks with at most m lost. */
static void check_code(unsigned k, unsigned m, unsigned n)
{
	struct vv_erasure_code c = { (uint8_t)k, (uint8_t)m };
	unsigned present = ((1u << (k + m)) - 1) & ~(((1u << k) - 1) & ~((1u << n) - 1));

	for (unsigned i = 0; i < n; i++)
		for (unsigned b = 0; b < LEN; b++)
			block[i][b] = (uint8_t)rand();
	make_parity(&c, n);
	for (unsigned lost = 0; lost < 1u << (k + m); lost++)
		if (!(lost & ~present) && (unsigned)__builtin_popcount(lost) <= m)
			rebuild(&c, n, present & ~lost, lost % 3 ? LEN : 1 + lost % LEN);
}

int main(void)
{
	uint8_t twice[2] = { 0, 0 }, factor[2];
	struct vv_erasure_code c = { 2, 2 }, wide = { 48, 16 };

	CHECK(vv_erasure_code_is_sound(1, 1) && vv_erasure_code_is_sound(48, 16) && !vv_erasure_code_is_sound(0, 1));
	CHECK(!vv_erasure_code_is_sound(1, 0) && !vv_erasure_code_is_sound(49, 16) && !vv_erasure_code_is_sound(2, 17));
	CHECK(!vv_erasure_code_solve(&c, 2, twice, 1, factor));
	for (unsigned k = 1; k < 8; k++)
		for (unsigned m = 1; k + m <= 8; m++)
			for (unsigned n = 1; n <= k; n++)
				check_code(k, m, n);
	/* The widest: the parity alone, and 32 of the data. */
	for (unsigned i = 0; i < wide.k; i++)
		for (unsigned b = 0; b < LEN; b++)
			block[i][b] = (uint8_t)rand();
	make_parity(&wide, wide.k);
	uint8_t from[48], f[48];
	const uint8_t *in[48];
	uint8_t *out = other;

	for (unsigned i = 0; i < 48; i++) {
		from[i] = (uint8_t)(16 + i);
		in[i] = block[16 + i];
	}
	for (unsigned i = 0; i < 16; i++) {
		CHECK(vv_erasure_code_solve(&wide, 48, from, i, f));
		vv_erasure_code_sum(f, 48, 1, LEN, in, &out);
		CHECK(memcmp(other, block[i], LEN) == 0);
	}
	return 0;
}
