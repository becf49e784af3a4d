#include "core/ranks/erasure_code.h"
#include "vv_config.h"
#include <string.h>

#if VV_HAVE_ISAL
#include <isa-l/erasure_code.h>
#endif

/* GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1. */
enum { POLYNOMIAL = 0x1d };

static uint8_t multiply(uint8_t a, uint8_t b)
{
	unsigned product = 0;

	for (unsigned x = a; b; b >>= 1, x = x << 1 ^ (x & 0x80 ? 0x100 | POLYNOMIAL : 0))
		product ^= b & 1 ? x : 0;
	return (uint8_t)product;
}

/* a^254: the group has 255 elements. */
static uint8_t invert(uint8_t a)
{
	uint8_t result = 1, power = a;

	for (int bit = 1; bit < 8; bit++) {
		power = multiply(power, power);
		result = multiply(result, power);
	}
	return result;
}

bool vv_erasure_code_is_sound(unsigned k, unsigned m)
{
	return k >= 1 && m >= 1 && m <= VV_ERASURE_PARITY && k + m <= VV_ERASURE_BLOCKS;
}

/* The rows of gf_gen_cauchy1_matrix of ISA-L. With one parity block it is the exclusive or. */
uint8_t vv_erasure_code_factor(const struct vv_erasure_code *c, unsigned parity, unsigned data)
{
	return c->m == 1 ? 1 : invert((uint8_t)((c->k + parity) ^ data));
}

/* Column `data` of the equation of a block. */
static uint8_t row_of(const struct vv_erasure_code *c, unsigned block, unsigned data)
{
	if (block < c->k)
		return block == data;
	return vv_erasure_code_factor(c, block - c->k, data);
}

static void swap_rows(uint8_t *a, uint8_t *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t t = a[i];

		a[i] = b[i];
		b[i] = t;
	}
}

/* Gauss and Jordan, for one pivot. `a` has n rows of n + 1 columns. */
static bool eliminate(uint8_t *a, unsigned n, unsigned pivot)
{
	unsigned width = n + 1, r = pivot;
	uint8_t *p = a + (size_t)pivot * width, scale;

	while (r < n && !a[(size_t)r * width + pivot])
		r++;
	if (r == n)
		return false;
	if (r != pivot)
		swap_rows(p, a + (size_t)r * width, width);
	scale = invert(p[pivot]);
	for (unsigned i = 0; i < width; i++)
		p[i] = multiply(p[i], scale);
	for (r = 0; r < n; r++) {
		uint8_t *row = a + (size_t)r * width, f = row[pivot];

		for (unsigned i = 0; r != pivot && f && i < width; i++)
			row[i] ^= multiply(f, p[i]);
	}
	return true;
}

bool vv_erasure_code_solve(const struct vv_erasure_code *c, unsigned n, const uint8_t *from, unsigned block, uint8_t *factor)
{
	uint8_t a[VV_ERASURE_BLOCKS * (VV_ERASURE_BLOCKS + 1)];
	unsigned width = n + 1;

	/* One equation for each data block: the factors, times the rows of `from`, give the row of
	 * the block. */
	for (unsigned d = 0; d < n; d++) {
		for (unsigned i = 0; i < n; i++)
			a[d * width + i] = row_of(c, from[i], d);
		a[d * width + n] = row_of(c, block, d);
	}
	for (unsigned pivot = 0; pivot < n; pivot++)
		if (!eliminate(a, n, pivot))
			return false;
	for (unsigned i = 0; i < n; i++)
		factor[i] = a[i * width + n];
	return true;
}

/* Bytes in vectors: GCC and Clang map these types to the vector registers of the processor. */
typedef uint8_t lanes __attribute__((vector_size(16)));
typedef int8_t signed_lanes __attribute__((vector_size(16)));
enum { LANES = sizeof(lanes) };

/* The product of all bytes with one factor, by doubling. */
static void add_lanes(uint8_t factor, const uint8_t *in, uint8_t *out)
{
	lanes x, sum;

	memcpy(&x, in, LANES);
	memcpy(&sum, out, LANES);
	for (unsigned by = factor; by; by >>= 1) {
		if (by & 1)
			sum ^= x;
		x = (x + x) ^ ((lanes)((signed_lanes)x < 0) & POLYNOMIAL);
	}
	memcpy(out, &sum, LANES);
}

static void add_product(uint8_t factor, size_t len, const uint8_t *in, uint8_t *out)
{
	size_t i = 0;

	for (; i + LANES <= len; i += LANES)
		add_lanes(factor, in + i, out + i);
	for (; i < len; i++)
		out[i] ^= multiply(in[i], factor);
}

void vv_erasure_code_sum_plain(const uint8_t *factor, unsigned n, unsigned rows, size_t len, const uint8_t *const *in,
			       uint8_t *const *out)
{
	enum { PART = 8 << 10 }; /* of each block: the sums stay in the cache */

	for (size_t at = 0; at < len; at += PART) {
		size_t part = len - at < PART ? len - at : PART;

		for (unsigned r = 0; r < rows; r++) {
			memset(out[r] + at, 0, part);
			for (unsigned i = 0; i < n; i++)
				add_product(factor[r * n + i], part, in[i] + at, out[r] + at);
		}
	}
}

#if VV_HAVE_ISAL

/* Its prototypes have no const. Some of its kernels need 64 bytes. */
void vv_erasure_code_sum(const uint8_t *factor, unsigned n, unsigned rows, size_t len, const uint8_t *const *in, uint8_t *const *out)
{
	enum { SHORT = 64 };
	uint8_t table[32 * VV_ERASURE_BLOCKS * VV_ERASURE_PARITY], copy[VV_ERASURE_BLOCKS * VV_ERASURE_PARITY];
	uint8_t *from[VV_ERASURE_BLOCKS], *to[VV_ERASURE_PARITY];

	if (len < SHORT || len > INT32_MAX || rows > VV_ERASURE_PARITY) {
		vv_erasure_code_sum_plain(factor, n, rows, len, in, out);
		return;
	}
	memcpy(copy, factor, (size_t)n * rows);
	memcpy(from, in, n * sizeof(*from));
	memcpy(to, out, rows * sizeof(*to));
	ec_init_tables((int)n, (int)rows, copy, table);
	ec_encode_data((int)len, (int)n, (int)rows, table, from, to);
}

#else

void vv_erasure_code_sum(const uint8_t *factor, unsigned n, unsigned rows, size_t len, const uint8_t *const *in, uint8_t *const *out)
{
	vv_erasure_code_sum_plain(factor, n, rows, len, in, out);
}

#endif
