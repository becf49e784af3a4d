// Content-defined chunks: the suite of all chunkers, and the cuts that stores hold.
#include "core/cdc.h"
#include "support/cutsuite.h"
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
	cutsuite_short_ends(&cdc);
	cutsuite_for_ever(&cdc, &stored, cuts, sizeof(cuts) / sizeof(cuts[0]));
	cutsuite_refuses(&cdc, 63, 256, 1024, "ascend");
	cutsuite_refuses(&cdc, 512, 512, 1024, "ascend");
	cutsuite_refuses(&cdc, 512, 1024, 1024, "ascend");
	cutsuite_refuses(&cdc, 512, 1024, (1u << 30) + 1, "ascend");
	return 0;
}
