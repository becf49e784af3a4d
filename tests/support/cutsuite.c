#include "support/cutsuite.h"
#include "base/err.h"
#include "support/gen.h"
#include "vv_test.h"

enum { N = CUTSUITE_N };

struct cuts {
	size_t *at; /* ends of chunks */
	size_t n;
};

const uint8_t *cutsuite_bytes(void)
{
	static uint8_t bytes[N];
	uint64_t state = 1;

	if (!bytes[0] && !bytes[1])
		gen_bytes(&state, bytes, N);
	return bytes;
}

static struct cuts cut(const struct cutter *c, const struct cut_sizes *s, const uint8_t *p, size_t n)
{
	struct cuts k = { .at = malloc((n / s->min + 2) * sizeof(size_t)) };

	CHECK(k.at != NULL);
	for (size_t at = 0; at < n; k.at[k.n++] = at) {
		size_t len = c->next(p + at, n - at, true);

		CHECK(len > 0 && len <= s->max && len <= n - at);
		CHECK(len >= s->min || at + len == n);
		at += len;
	}
	return k;
}

static void keeps_its_sizes(const struct cutter *c, const struct cut_sizes *s)
{
	struct cuts k = cut(c, s, cutsuite_bytes(), N);
	double mean = (double)N / (double)k.n;

	CHECK(mean > 0.9 * (double)s->mean && mean < 1.1 * (double)s->mean);
	free(k.at);
}

/* Whatever there is of the bytes at a time. */
static void cuts_do_not_depend_on_buffers(const struct cutter *c, const struct cut_sizes *s)
{
	size_t n = 1 << 20, at = 0, have = 0;
	struct cuts k = cut(c, s, cutsuite_bytes(), n);
	uint64_t state = 5;

	for (size_t i = 0; i < k.n;) {
		uint8_t *copy = malloc(have - at + 1); /* a sanitizer sees what is read beyond */
		size_t len;

		CHECK(copy != NULL);
		memcpy(copy, cutsuite_bytes() + at, have - at);
		len = c->next(copy, have - at, have == n);
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

/* Bytes of chunks that end at the same place in both, `shift` apart from `from` on. */
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

/* After something was inserted, or deleted, all but a few chunks are the same. */
static void finds_its_way_back(const struct cutter *c, const struct cut_sizes *s)
{
	static const long shifts[] = { 1, -1, 7, -13, 500, -4097, 100000 };
	uint8_t *other = malloc(N + 100000);
	struct cuts a = cut(c, s, cutsuite_bytes(), N), b;
	uint64_t state = 9;

	CHECK(other != NULL);
	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		size_t at = N / 10 + gen_below(&state, N / 2), lost = shifts[i] < 0 ? (size_t)-shifts[i] : 0, added = shifts[i] < 0 ? 0 : (size_t)shifts[i];

		memcpy(other, cutsuite_bytes(), at);
		gen_bytes(&state, other + at, added);
		memcpy(other + at + added, cutsuite_bytes() + at + lost, N - at - lost);
		b = cut(c, s, other, N - lost + added);
		CHECK(shared(&a, &b, at + lost, shifts[i]) >= N - lost - 12 * s->max);
		free(b.at);
	}
	free(a.at);
	free(other);
}

void cutsuite_repeated(const struct cutter *c, const struct cut_sizes *s, uint8_t value)
{
	size_t n = 3 * s->max + s->min / 2;
	uint8_t *p = malloc(n);
	struct cuts k;

	CHECK(p != NULL);
	CHECK_EQ(c->init(s->min, s->avg, s->max), 0);
	memset(p, value, n);
	k = cut(c, s, p, n);
	CHECK_EQ(k.n, 4);
	CHECK_EQ(k.at[0], s->max);
	free(k.at);
	free(p);
}

void cutsuite_run(const struct cutter *c, const struct cut_sizes *s)
{
	CHECK_EQ(c->init(s->min, s->avg, s->max), 0);
	keeps_its_sizes(c, s);
	cuts_do_not_depend_on_buffers(c, s);
	finds_its_way_back(c, s);
}

void cutsuite_short_ends(const struct cutter *c)
{
	CHECK_EQ(c->init(512, 4096, 32768), 0);
	CHECK_EQ(c->next(cutsuite_bytes(), 0, true), 0);
	for (size_t n = 1; n <= 512; n++) {
		CHECK_EQ(c->next(cutsuite_bytes(), n, true), n);
		CHECK_EQ(c->next(cutsuite_bytes(), n, false), 0);
	}
}

void cutsuite_for_ever(const struct cutter *c, const struct cut_sizes *s, const size_t *want, size_t n)
{
	struct cuts k;

	CHECK_EQ(c->init(s->min, s->avg, s->max), 0);
	k = cut(c, s, cutsuite_bytes(), N);
	CHECK(k.n >= n);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(k.at[i], want[i]);
	free(k.at);
}

void cutsuite_refuses(const struct cutter *c, size_t min, size_t avg, size_t max, const char *why)
{
	CHECK_EQ(c->init(min, avg, max), VV_EINVAL);
	CHECK(strstr(vv_err_last(), why) != NULL);
}
