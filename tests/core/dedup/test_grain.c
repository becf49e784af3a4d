// Numbers of grains, limits, and the words of a piece.
#include "core/dedup/grain.h"
#include "base/err.h"
#include "vv_test.h"

static void numbers(void)
{
	struct vv_span s[] = { { .len = 0 }, { .len = 64 * 32 }, { .len = 63 }, { .len = 64 * 33 + 1 }, { .len = 64 }, { .len = 0 } };
	static const uint32_t first[] = { 0, 0, 32, 32, 96, 128 }, n[] = { 0, 32, 0, 33, 1, 0 };
	uint32_t end;

	CHECK_EQ(vv_grain_number_spans(s, 6, 64, &end), 0);
	CHECK_EQ(end, 128);
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(s[i].first, first[i]);
		CHECK_EQ(s[i].n, n[i]);
		for (uint32_t k = 0; k < n[i]; k++)
			CHECK_EQ(vv_grain_span_of(s, 6, first[i] + k), i);
	}
	CHECK_EQ(vv_grain_number_spans(s, 0, 64, &end), 0);
	CHECK_EQ(end, 0);
}

static void too_many(void)
{
	struct vv_span s[] = { { .len = (uint64_t)1 << 36 }, { .len = (uint64_t)1 << 36 }, { .len = UINT64_MAX } };
	uint32_t end;

	CHECK_EQ(vv_grain_number_spans(s, 1, 32, &end), 0);
	CHECK_EQ(end, 1u << 31);
	CHECK_EQ(vv_grain_number_spans(s, 2, 32, &end), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "larger"));
	CHECK_EQ(vv_grain_number_spans(s, 2, 64, &end), 0);
	CHECK_EQ(vv_grain_number_spans(s + 2, 1, 4096, &end), VV_EINVAL);
}

static void limits(void)
{
	uint32_t end = 1 << 23;
	size_t least = vv_grain_limit(0, end, 0), l = vv_grain_limit((uint64_t)1 << 30, end, 0);

	CHECK_EQ(least, 1024);
	CHECK(l > least && l < vv_grain_limit((uint64_t)2 << 30, end, 0));
	CHECK((uint64_t)end * 16 + VV_GRAIN_SLICE * 64ull + 2 * l * 4 / 3 * 24 <= (uint64_t)1 << 30);
	CHECK_EQ(vv_grain_limit(UINT64_MAX, end, 4), 4ull * end + least);
	CHECK_EQ(vv_grain_limit(UINT64_MAX, UINT32_MAX, 4), VV_GRAIN_LIMIT);
	CHECK_EQ(vv_grain_limit(UINT64_MAX, end, 0), VV_GRAIN_LIMIT);
	CHECK_EQ(vv_grain_limit((uint64_t)1 << 30, 1000, 0), (((uint64_t)1 << 30) - 1000 * (17 + 64)) / 64); /* all of it, however small the set */
	CHECK_EQ(vv_grain_limit((uint64_t)1 << 30, 1000, 4), 4000 + least);
	CHECK_EQ(vv_grain_limit(0, end, 4), least);
	CHECK_EQ(vv_grain_limit(0, 0, 0), least);
	CHECK_EQ(vv_grain_limit(0, 0, 4), least);
}

static void words(void)
{
	uint64_t from = vv_grain_from(VV_PIECE_REPEAT, VV_GRAIN_ORDINALS - 1, ((uint64_t)1 << 40) - 1);

	CHECK_EQ(from, UINT64_MAX);
	CHECK_EQ(vv_grain_kind(from), VV_PIECE_REPEAT);
	CHECK_EQ(vv_grain_ordinal(from), VV_GRAIN_ORDINALS - 1);
	CHECK_EQ(vv_grain_number(from), ((uint64_t)1 << 40) - 1);
	from = vv_grain_from(VV_PIECE_COPY, 5, 9);
	CHECK(vv_grain_kind(from) == VV_PIECE_COPY && vv_grain_ordinal(from) == 5 && vv_grain_number(from) == 9);
	CHECK_STR(vv_grain_method_name(VV_METHOD_FULL), "full");
	CHECK_STR(vv_grain_method_name(VV_METHOD_RUN), "run");
}

/* The digests of adjacent grains are those of each, of every kind and size, wherever they lie. */
static void digests(void)
{
	static uint8_t bytes[5 * 4096 + 3];
	struct vv_digest many[5], one;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i >> 3);
	for (unsigned kind = VV_DIGEST_XXH3; kind <= VV_DIGEST_SHA256; kind++)
		for (size_t chunk = VV_GRAIN_MIN; chunk <= VV_GRAIN_MAX; chunk *= 2) {
			vv_digest_grains(kind, bytes + 3, chunk, 5, many);
			for (size_t i = 0; i < 5; i++) {
				vv_digest_of_kind(kind)(bytes + 3 + i * chunk, chunk, &one);
				CHECK(vv_digest_equal(&many[i], &one));
			}
		}
}

int main(void)
{
	numbers();
	too_many();
	limits();
	words();
	digests();
	return 0;
}
