/* zlib streams: into exactly so many bytes, from exactly so many. */
#include "base/deflate.h"
#include "base/err.h"
#include "support/gen.h"
#include "vv_test.h"

static int unpack(const uint8_t *p, size_t n, const uint8_t *want, size_t raw_len)
{
	uint8_t *to = malloc(raw_len + 1), *copy = malloc(n ? n : 1);
	int rc;

	CHECK(to && copy);
	memcpy(copy, p, n);
	to[raw_len] = 0x5a;
	rc = vv_deflate_unpack(copy, n, to, raw_len);
	CHECK_EQ(to[raw_len], 0x5a);
	CHECK(rc || !want || memcmp(to, want, raw_len) == 0);
	free(to);
	free(copy);
	return rc;
}

static void test_round_trips(void)
{
	static uint8_t from[70000], to[80000];
	uint64_t state = 1;

	for (size_t n = 0; n < sizeof(from); n = n * 5 + 1)
		for (int level = 1; level <= 9; level += 4) {
			size_t got = 0;

			gen_text(&state, from, n);
			CHECK_EQ(vv_deflate_pack(from, n, level, to, sizeof(to), &got), 0);
			CHECK(got > 0);
			CHECK_EQ(unpack(to, got, from, n), 0);
			CHECK_EQ(unpack(to, got, NULL, n + 1), VV_EDAMAGED);
			CHECK(n == 0 || unpack(to, got, NULL, n - 1) == VV_EDAMAGED);
			CHECK_EQ(unpack(to, got + 1, NULL, n), VV_EDAMAGED);
			CHECK_EQ(unpack(to, got - 1, NULL, n), VV_EDAMAGED);
			CHECK_EQ(vv_deflate_pack(from, n, level, to, got - 1, &got), 0);
			CHECK_EQ(got, 0);
		}
}

static void test_damage(void)
{
	uint8_t from[500], to[600];
	uint64_t state = 2;
	size_t n = 0, refused = 0;

	gen_text(&state, from, sizeof(from));
	CHECK_EQ(vv_deflate_pack(from, sizeof(from), 6, to, sizeof(to), &n), 0);
	for (size_t i = 0; i < n * 8; i++) {
		int rc;

		to[i / 8] ^= (uint8_t)(1 << i % 8);
		rc = unpack(to, n, from, sizeof(from)); /* a few bits are of no consequence; then it is what it was */
		CHECK(rc == 0 || rc == VV_EDAMAGED);
		refused += rc != 0;
		to[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	CHECK(refused >= n * 8 - 16);
	CHECK_EQ(unpack(to, 0, NULL, 0), VV_EDAMAGED);
	CHECK_EQ(vv_deflate_pack(from, sizeof(from), 77, to, sizeof(to), &n), VV_EINVAL);
}

int main(void)
{
	CHECK(vv_deflate_built());
	test_round_trips();
	test_damage();
	return 0;
}
