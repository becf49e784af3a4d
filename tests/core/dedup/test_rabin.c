// ctest: COST 2
// Chunks by Rabin fingerprints: the suite of all chunkers, the cuts that stores hold, and all of it against a model that divides polynomials bit by bit.
#include "core/dedup/rabin.h"
#include "support/cutsuite.h"
#include "vv_test.h"

static struct vv_rabin chunker;

static int init(size_t min, size_t avg, size_t max)
{
	return vv_rabin_init(&chunker, min, avg, max);
}

static size_t next(const uint8_t *p, size_t n, bool end)
{
	return vv_rabin_next(&chunker, p, n, end);
}

// ---- the model: polynomials over two elements, bit by bit

static uint64_t add_bit(uint64_t x, unsigned bit)
{
	x = x << 1 | bit;
	return x >> 53 ? x ^ VV_RABIN_POLYNOMIAL : x;
}

static uint64_t print_of(const uint8_t *window)
{
	uint64_t x = 0;

	for (size_t i = 0; i < VV_RABIN_WINDOW; i++)
		for (int bit = 7; bit >= 0; bit--)
			x = add_bit(x, window[i] >> bit & 1);
	return x;
}

static size_t model_next(const struct cut_sizes *s, const uint8_t *p, size_t n)
{
	size_t len = s->min;

	if (n <= s->min)
		return n;
	while (++len < s->max && len < n)
		if ((print_of(p + len - VV_RABIN_WINDOW) & (s->avg - 1)) == s->avg - 1)
			break;
	return len;
}

static void agrees_with_the_model(const struct cut_sizes *s)
{
	const uint8_t *bytes = cutsuite_bytes();
	size_t n = 100000;

	CHECK_EQ(init(s->min, s->avg, s->max), 0);
	for (size_t at = 0, len; at < n; at += len) {
		len = next(bytes + at, n - at, true);
		CHECK_EQ(len, model_next(s, bytes + at, n - at));
	}
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t x = 0;

	for (int bit = 52; bit >= 0; bit--) {
		x = add_bit(x, 0);
		if (b >> bit & 1)
			x ^= a;
	}
	return x;
}

// Its degree is a prime number: it has no factor if x to the power of 2^53 is x, and it is divided neither by x nor by x + 1.
static void polynomial_is_irreducible(void)
{
	uint64_t x = 2;

	CHECK_EQ(VV_RABIN_POLYNOMIAL >> 53, 1);
	CHECK_EQ(VV_RABIN_POLYNOMIAL & 1, 1);
	CHECK_EQ(__builtin_popcountll(VV_RABIN_POLYNOMIAL) % 2, 1);
	for (int i = 0; i < 53; i++)
		x = times(x, x);
	CHECK_EQ(x, 2);
}

int main(void)
{
	static const struct cutter rabin = { init, next };
	static const struct cut_sizes sizes[] = { { VV_RABIN_MIN, VV_RABIN_AVG, VV_RABIN_MAX, VV_RABIN_MIN + VV_RABIN_AVG },
						  { 48, 256, 2048, 48 + 256 },
						  { 1000, 8192, 100000, 1000 + 8192 } };
	static const size_t cuts[] = { 3584, 13931, 15270, 16074, 19386, 22726 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cutsuite_run(&rabin, &sizes[i]);
		cutsuite_repeated(&rabin, &sizes[i], 0);
		agrees_with_the_model(&sizes[i]);
	}
	cutsuite_short_ends(&rabin);
	cutsuite_for_ever(&rabin, &sizes[0], cuts, sizeof(cuts) / sizeof(cuts[0]));
	cutsuite_refuses(&rabin, 47, 256, 1024, "ascend");
	cutsuite_refuses(&rabin, 512, 512, 1024, "ascend");
	cutsuite_refuses(&rabin, 512, 1024, 1024, "ascend");
	cutsuite_refuses(&rabin, 512, 1024, (1u << 30) + 1, "ascend");
	cutsuite_refuses(&rabin, 512, 3000, 32768, "powers of two");
	polynomial_is_irreducible();
	return 0;
}
