// Chunks by Rabin fingerprints: bounds, the average, the same cuts however the bytes come, few chunks that change with a change, and all of it against
// a model that divides polynomials bit by bit.
#include "base/err.h"
#include "core/rabin.h"
#include "support/gen.h"
#include "vv_test.h"

enum { N = 8 << 20 };

struct sizes {
	size_t min, avg, max;
};

static const struct sizes all_sizes[] = { { VV_RABIN_MIN, VV_RABIN_AVG, VV_RABIN_MAX }, { 48, 256, 2048 }, { 1000, 8192, 100000 } };
static uint8_t *bytes;

struct cuts {
	size_t *at; // ends of chunks
	size_t n;
};

static struct cuts cut(const struct vv_rabin *c, const uint8_t *p, size_t n)
{
	struct cuts k = { .at = malloc((n / c->min + 2) * sizeof(size_t)) };

	CHECK(k.at != NULL);
	for (size_t at = 0; at < n; k.at[k.n++] = at) {
		size_t len = vv_rabin_next(c, p + at, n - at, true);

		CHECK(len > 0 && len <= c->max && len <= n - at);
		CHECK(len >= c->min || at + len == n);
		at += len;
	}
	return k;
}

static void keeps_its_sizes(const struct sizes *s)
{
	struct vv_rabin c;
	struct cuts k;

	CHECK_EQ(vv_rabin_init(&c, s->min, s->avg, s->max), 0);
	k = cut(&c, bytes, N);
	CHECK((double)N / (double)k.n > 0.9 * (double)(s->min + s->avg) && (double)N / (double)k.n < 1.1 * (double)(s->min + s->avg));
	free(k.at);
}

// Whatever there is of the bytes at a time.
static void cuts_do_not_depend_on_buffers(const struct sizes *s)
{
	struct vv_rabin c;
	struct cuts k;
	uint64_t state = 5;
	size_t n = 1 << 20, at = 0, have = 0;

	CHECK_EQ(vv_rabin_init(&c, s->min, s->avg, s->max), 0);
	k = cut(&c, bytes, n);
	for (size_t i = 0; i < k.n;) {
		uint8_t *copy = malloc(have - at + 1); // a sanitizer sees what is read beyond
		size_t len;

		CHECK(copy != NULL);
		memcpy(copy, bytes + at, have - at);
		len = vv_rabin_next(&c, copy, have - at, have == n);
		free(copy);
		if (len) {
			CHECK_EQ(at + len, k.at[i]);
			at += len;
			i++;
			continue;
		}
		CHECK(have < n && have - at < s->max);
		have += 1 + gen_below(&state, s->avg / 2);
		if (have > n)
			have = n;
	}
	CHECK_EQ(at, n);
	free(k.at);
}

// Bytes of chunks that end at the same place in both, `shift` apart from `from` on.
static size_t shared(const struct cuts *a, const struct cuts *b, size_t from, long shift)
{
	size_t bytes_shared = 0;

	for (size_t i = 1, k = 1; i < a->n && k < b->n;) {
		size_t end = a->at[i] < from ? a->at[i] : a->at[i] + (size_t)shift;

		if (end == b->at[k] && a->at[i] - a->at[i - 1] == b->at[k] - b->at[k - 1])
			bytes_shared += a->at[i] - a->at[i - 1];
		if (end <= b->at[k])
			i++;
		else
			k++;
	}
	return bytes_shared;
}

// After something was inserted, or deleted, all but a few chunks are the same.
static void finds_its_way_back(const struct sizes *s)
{
	static const long shifts[] = { 1, -1, 7, -13, 500, -4097, 100000 };
	uint8_t *other = malloc(N + 100000);
	uint64_t state = 9;
	struct vv_rabin c;
	struct cuts a, b;

	CHECK(other != NULL);
	CHECK_EQ(vv_rabin_init(&c, s->min, s->avg, s->max), 0);
	a = cut(&c, bytes, N);
	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		size_t at = N / 10 + gen_below(&state, N / 2), lost = shifts[i] < 0 ? (size_t)-shifts[i] : 0, added = shifts[i] < 0 ? 0 : (size_t)shifts[i];

		memcpy(other, bytes, at);
		gen_bytes(&state, other + at, added);
		memcpy(other + at + added, bytes + at + lost, N - at - lost);
		b = cut(&c, other, N - lost + added);
		CHECK(shared(&a, &b, at + lost, shifts[i]) >= N - lost - 12 * s->max);
		free(b.at);
	}
	free(a.at);
	free(other);
}

// Nothing to go by: chunks of zeros are as long as they may be.
static void zeros(const struct sizes *s)
{
	size_t n = 3 * s->max + s->min / 2;
	uint8_t *p = calloc(n, 1);
	struct vv_rabin c;
	struct cuts k;

	CHECK(p != NULL);
	CHECK_EQ(vv_rabin_init(&c, s->min, s->avg, s->max), 0);
	k = cut(&c, p, n);
	CHECK_EQ(k.n, 4);
	CHECK_EQ(k.at[0], s->max);
	free(k.at);
	free(p);
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

static size_t model_next(const struct sizes *s, const uint8_t *p, size_t n)
{
	size_t len = s->min;

	if (n <= s->min)
		return n;
	while (++len < s->max && len < n)
		if ((print_of(p + len - VV_RABIN_WINDOW) & (s->avg - 1)) == s->avg - 1)
			break;
	return len;
}

static void agrees_with_the_model(const struct sizes *s)
{
	struct vv_rabin c;
	size_t n = 100000;

	CHECK_EQ(vv_rabin_init(&c, s->min, s->avg, s->max), 0);
	for (size_t at = 0, len; at < n; at += len) {
		len = vv_rabin_next(&c, bytes + at, n - at, true);
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

static void short_ends(void)
{
	struct vv_rabin c;

	CHECK_EQ(vv_rabin_init(&c, 512, 4096, 32768), 0);
	CHECK_EQ(vv_rabin_next(&c, bytes, 0, true), 0);
	for (size_t n = 1; n <= 512; n++) {
		CHECK_EQ(vv_rabin_next(&c, bytes, n, true), n);
		CHECK_EQ(vv_rabin_next(&c, bytes, n, false), 0);
	}
}

// Digests of chunks are in stores: the cuts must never change.
static void cuts_are_for_ever(void)
{
	static const size_t want[] = { 3584, 13931, 15270, 16074, 19386, 22726 };
	struct vv_rabin c;
	struct cuts k;

	CHECK_EQ(vv_rabin_init(&c, VV_RABIN_MIN, VV_RABIN_AVG, VV_RABIN_MAX), 0);
	k = cut(&c, bytes, N);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		CHECK_EQ(k.at[i], want[i]);
	free(k.at);
}

static void refuses(size_t min, size_t avg, size_t max, const char *why)
{
	struct vv_rabin c;

	CHECK_EQ(vv_rabin_init(&c, min, avg, max), VV_EINVAL);
	CHECK(strstr(vv_err_last(), why) != NULL);
}

int main(void)
{
	uint64_t state = 1;

	bytes = malloc(N);
	CHECK(bytes != NULL);
	gen_bytes(&state, bytes, N);
	for (size_t i = 0; i < sizeof(all_sizes) / sizeof(all_sizes[0]); i++) {
		keeps_its_sizes(&all_sizes[i]);
		cuts_do_not_depend_on_buffers(&all_sizes[i]);
		finds_its_way_back(&all_sizes[i]);
		zeros(&all_sizes[i]);
		agrees_with_the_model(&all_sizes[i]);
	}
	short_ends();
	cuts_are_for_ever();
	refuses(47, 256, 1024, "ascend");
	refuses(512, 512, 1024, "ascend");
	refuses(512, 1024, 1024, "ascend");
	refuses(512, 1024, (1u << 30) + 1, "ascend");
	refuses(512, 3000, 32768, "powers of two");
	polynomial_is_irreducible();
	free(bytes);
	return 0;
}
