// Content-defined chunks: the suite of all chunkers, the cuts that stores hold, and the same cuts found one byte at a time.
#include "core/dedup/cdc.h"
#include "support/cutsuite.h"
#include "support/gen.h"
#include "vv_test.h"

static struct vv_cdc chunker;

static int init(size_t min, size_t avg, size_t max)
{
	return vv_cdc_init(&chunker, min, avg, max);
}

static size_t next(const uint8_t *p, size_t n, bool end)
{
	return vv_cdc_next(&chunker, p, n, end);
}

/* The length of the next chunk of n bytes, the last there are. */
static size_t slowly(const uint8_t *p, size_t n)
{
	uint64_t h = 0;

	for (size_t at = 0; at < n && at < chunker.max; at++) {
		if (at + VV_CDC_WINDOW >= chunker.min)
			h = h * 2 + chunker.gear[p[at]];
		if (at >= chunker.min && h < (at < chunker.turn ? chunker.rare : chunker.frequent))
			return at + 1;
	}
	return n < chunker.max ? n : chunker.max;
}

static void test_slowly(size_t min, size_t avg, size_t max)
{
	enum { N = 300000 };
	static uint8_t data[N];
	uint64_t state = avg;

	gen_bytes(&state, data, N);
	memset(data + N / 2, 0, N / 8);
	CHECK_EQ(vv_cdc_init(&chunker, min, avg, max), 0);
	for (size_t at = 0, n; at < N; at += n) {
		n = vv_cdc_next(&chunker, data + at, N - at, true);
		CHECK_EQ(n, slowly(data + at, N - at));
	}
	for (size_t n = 1; n < 3 * avg && n < 3000; n++) /* whatever is left at the end */
		CHECK_EQ(vv_cdc_next(&chunker, data + 17, n, true), slowly(data + 17, n));
}

int main(void)
{
	static const struct cutter cdc = { init, next };
	static const struct cut_sizes sizes[] = { { VV_CDC_MIN, VV_CDC_AVG, VV_CDC_MAX, VV_CDC_AVG },
						  { 512, 4096, 32768, 4096 },
						  { 64, 256, 2048, 256 },
						  { 1000, 10000, 50000, 10000 } };
	static const struct cut_sizes stored = { 2 << 10, 8 << 10, 64 << 10, 8 << 10 };
	static const size_t cuts[] = { 7607, 17899, 21304, 30391, 38816, 52512 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cutsuite_run(&cdc, &sizes[i]);
		for (int value = 0; value < 256; value++)
			cutsuite_repeated(&cdc, &sizes[i], (uint8_t)value);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		test_slowly(sizes[i].min, sizes[i].avg, sizes[i].max);
	test_slowly(64, 65, 66);
	test_slowly(71, 100, 203);
	cutsuite_short_ends(&cdc);
	cutsuite_for_ever(&cdc, &stored, cuts, sizeof(cuts) / sizeof(cuts[0]));
	cutsuite_refuses(&cdc, 63, 256, 1024, "ascend");
	cutsuite_refuses(&cdc, 512, 512, 1024, "ascend");
	cutsuite_refuses(&cdc, 512, 1024, 1024, "ascend");
	cutsuite_refuses(&cdc, 512, 1024, (1u << 30) + 1, "ascend");
	return 0;
}
