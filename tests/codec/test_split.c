// ctest: COST 2
/* Byte planes apart and together: every width, few things and many, from any place in the planes, with each level of vector units that this machine has; not a byte
 * beyond. */
#include "base/cpu.h"
#include "codec/split.h"
#include "support/gen.h"
#include "vv_test.h"
#include <string.h>

enum { MOST = 600, GUARD = 0xa5 };

static uint8_t x[MOST * VV_RECIPE_PLANES + 8], planes[MOST * VV_RECIPE_PLANES], back[MOST * VV_RECIPE_PLANES + 64];

static void check_apart(unsigned width, size_t n)
{
	memset(planes, GUARD, sizeof(planes));
	vv_split_apart(x + n % 7, n, width, planes, MOST);
	for (unsigned k = 0; k < width; k++) {
		bool ok = true;

		for (size_t i = 0; i < MOST; i++)
			ok &= planes[k * MOST + i] == (i < n ? x[n % 7 + i * width + k] : GUARD);
		CHECK(ok);
	}
}

/* The planes have all MOST things. */
static void check_join(unsigned width, size_t at, size_t n)
{
	const uint8_t *plane[VV_RECIPE_PLANES];

	for (unsigned k = 0; k < width; k++)
		plane[k] = planes + k * MOST;
	memset(back, GUARD, sizeof(back));
	vv_split_join(plane, at, n, width, back + 32);
	CHECK(memcmp(back + 32, x + at * width, n * width) == 0);
	for (size_t i = 0; i < 32; i++)
		CHECK(back[i] == GUARD && back[32 + n * width + i] == GUARD);
}

/* All below, and then what is so many times eight, or is not. */
static unsigned next_width(unsigned width)
{
	return width < 34 ? width + 1 : width % 8 ? width / 8 * 8 + 8 : width + 3;
}

static void test_widths(void)
{
	static const size_t counts[] = { 0, 1, 15, 16, 17, 33, 256, 257, 271, 529 };
	uint64_t state = 3;

	gen_bytes(&state, x, sizeof(x));
	for (unsigned width = 1; width <= VV_RECIPE_PLANES; width = next_width(width)) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			check_apart(width, counts[i]);
		vv_split_apart(x, MOST, width, planes, MOST);
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			for (size_t at = 0; at + counts[i] <= MOST; at += at < 2 ? 1 : 167)
				check_join(width, at, counts[i]);
	}
}

int main(void)
{
	for (int level = VV_CPU_BASELINE; level <= (int)vv_cpu_most(); level++) {
		CHECK_EQ(vv_cpu_hold((enum vv_cpu_level)level), level);
		test_widths();
	}
	return 0;
}
