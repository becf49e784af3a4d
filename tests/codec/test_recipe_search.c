// ctest: COST 2
/* The chooser: for each recipe something that it must be chosen for; near-duplicates are seen, and others not taken for such; the same samples give
 * the same answer, of whatever size they are; and what is promised is kept. */
#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/recipe_search.h"
#include "core/format/head.h"
#include "support/gen.h"
#include "vv_test.h"
#include <math.h>

enum { MOST = 8, BYTES = VV_RECIPE_SEARCH_BYTES };

static uint8_t room[MOST][BYTES] __attribute__((aligned(16)));

static struct vv_recipe_search choose(const struct vv_form *form, enum vv_effort effort, size_t n, size_t bytes)
{
	struct vv_sample s[MOST];
	struct vv_recipe_search t = { .ratio = -1 }, again;

	for (size_t i = 0; i < n; i++)
		s[i] = (struct vv_sample){ room[i], bytes };
	CHECK_EQ(vv_recipe_search_choose(form, effort, true, s, n, &t), 0);
	CHECK_EQ(vv_recipe_search_choose(form, effort, true, s, n, &again), 0);
	CHECK(vv_recipe_same(&t.recipe, &again.recipe) && t.ratio == again.ratio && t.alike == again.alike);
	CHECK(t.ratio >= 1 && t.alike > 0);
	return t;
}

/* What it promised, against the same samples in one block. */
static void check_promise(const struct vv_recipe_search *t, size_t n, size_t bytes)
{
	const struct vv_codec *c = vv_codec_numbered(vv_recipe_search_codec(&t->recipe));
	size_t cap = c ? c->bound(n * BYTES) : 0, got = 0;
	uint8_t *to = malloc(cap + 1), *back = malloc(bytes);

	CHECK(to && back && (c || t->ratio == 1));
	if (c) {
		CHECK_EQ(c->encode(room[0], bytes, &t->recipe, to, cap, t->recipe.level, &got), 0);
		CHECK(got > 0 && (double)bytes / (double)got > t->ratio / t->alike * 0.8);
		CHECK_EQ(c->decode(to, got, back, bytes), 0);
		CHECK(memcmp(back, room[0], bytes) == 0);
	}
	free(to);
	free(back);
}

static double noise(uint64_t *state, double size)
{
	return size * ((double)(gen_next(state) >> 11) * 0x1p-53 - 0.5);
}

/* Smooth in three dimensions; no two instances alike. */
static void fill_field(uint64_t *state, size_t row, size_t rows, bool swapped)
{
	for (size_t k = 0; k < MOST; k++)
		for (size_t i = 0; i < BYTES / 8; i++) {
			double x = (double)(i % row), y = (double)(i / row % rows), z = (double)(i / row / rows);
			double v = 100 + (double)k + sin(x / 5 + (double)k) * cos(y / 4) * (3 + z) + y * x / 50 + noise(state, 1e-11);
			uint64_t u;

			memcpy(&u, &v, 8);
			u = swapped ? __builtin_bswap64(u) : u;
			memcpy(room[k] + 8 * i, &u, 8);
		}
}

static void test_smooth(void)
{
	for (int swapped = 0; swapped < 2; swapped++) {
		const uint64_t dim[] = { 32, 16, 16 };
		struct vv_form form = vv_recipe_form(VV_TYPE_F64, swapped, 3, dim);
		struct vv_recipe_search t;
		uint64_t state = 1;

		fill_field(&state, 16, 16, swapped);
		for (enum vv_effort e = VV_EFFORT_FAST; e <= VV_EFFORT_MAX; e++) {
			t = choose(&form, e, 4, BYTES);
			CHECK(t.recipe.predictor == VV_PREDICT_LORENZO || (e > VV_EFFORT_FAST && t.recipe.predictor == VV_PREDICT_REAL));
			CHECK(t.recipe.width == 8 && t.recipe.real && t.recipe.swapped == swapped);
			CHECK(t.recipe.n_strides == 3 && t.recipe.stride[0] == 1 && t.recipe.stride[1] == 16 && t.recipe.stride[2] == 256);
			CHECK(t.ratio > 1.5 && t.alike < 1.10);
			check_promise(&t, 4, BYTES);
		}
		form.plane = 0;
		t = choose(&form, VV_EFFORT_DEFAULT, 4, BYTES);
		CHECK(t.recipe.n_strides == 2 && t.recipe.stride[1] == 16);
		form.row = 0; /* found all the same */
		t = choose(&form, VV_EFFORT_DEFAULT, 4, BYTES);
		CHECK(t.recipe.n_strides >= 2 && t.recipe.predictor != VV_PREDICT_NONE);
		form = (struct vv_form){ .type = VV_TYPE_BYTES };
		t = choose(&form, VV_EFFORT_DEFAULT, 4, BYTES);
		CHECK(t.recipe.width == 8 && t.ratio > 1.4 && t.recipe.record == 1);
		CHECK(swapped || t.recipe.n_strides >= 2);
	}
}

/* A sum of functions of one coordinate each: two neighbours predict all of it in floating point. As
 * integers, the difference of neighbours is a little smaller than that. */
static void test_sum_of_coordinates(void)
{
	const uint64_t dim[] = { 64, 16, 32 };
	struct vv_form form = vv_recipe_form(VV_TYPE_F64, false, 3, dim);
	struct vv_recipe_search t;

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < BYTES / 8; i++) {
			double x = (double)(i % 32), y = (double)(i / 32 % 16), z = (double)(i / 512 + 16 * k);
			double v = sin(z * 6 / 63 + 0.2) * cos(y * 6 / 63) + x * 6 / 63;

			memcpy(room[k] + 8 * i, &v, 8);
		}
	t = choose(&form, VV_EFFORT_DEFAULT, 1, BYTES);
	CHECK(t.recipe.predictor == VV_PREDICT_REAL && t.recipe.n_strides == 2 && t.recipe.stride[1] == 32);
	CHECK(t.ratio > 15);
	check_promise(&t, 1, BYTES);
}

/* Complex numbers: both parts change slowly, and not together. */
static void test_complex(void)
{
	const uint64_t dim[] = { 64, 128 };
	struct vv_form form = vv_recipe_form(VV_TYPE_C64, false, 2, dim);
	uint64_t state = 2;
	struct vv_recipe_search t;

	for (size_t k = 0; k < MOST; k++)
		for (size_t i = 0; i < BYTES / 8; i++) {
			float v[2] = { (float)(sin((double)(i % 128) / 20 + (double)k) * cos((double)i / 128 / 9) + noise(&state, 1e-5)),
				       (float)(1000 + (double)(i % 128) * (double)i / 300 + noise(&state, 1e-3)) };

			memcpy(room[k] + 8 * i, v, 8);
		}
	t = choose(&form, VV_EFFORT_DEFAULT, 3, BYTES);
	CHECK(t.recipe.width == 4 && t.recipe.record == 2 && t.recipe.real && t.recipe.n_strides >= 1 && t.recipe.stride[0] == 2);
	check_promise(&t, 3, BYTES);
}

struct particle {
	double kind, x[3];
	uint64_t tag, type;
	uint32_t flags, image;
	double v[3];
};

static void test_records(void)
{
	struct vv_form form = { .type = VV_TYPE_BYTES };
	uint64_t state = 3;
	struct vv_recipe_search t;

	for (size_t k = 0; k < MOST; k++) {
		gen_bytes(&state, room[k], BYTES);
		for (size_t i = 16 + 8 * k; i + sizeof(struct particle) <= BYTES; i += sizeof(struct particle)) {
			struct particle p = { .kind = 11, .tag = gen_below(&state, 20000), .type = 1, .flags = 1, .image = 0x20080200 };

			for (int d = 0; d < 3; d++) {
				p.x[d] = 20 + noise(&state, 10);
				p.v[d] = noise(&state, 3);
			}
			memcpy(room[k] + i, &p, sizeof(p));
		}
	}
	for (size_t n = 1; n <= 5; n += 2) {
		t = choose(&form, VV_EFFORT_DEFAULT, n, BYTES);
		CHECK_EQ((size_t)t.recipe.width * t.recipe.record, sizeof(struct particle));
		CHECK(t.ratio > 1.5 && t.alike < 1.10);
		check_promise(&t, n, BYTES);
	}
	form.record = sizeof(struct particle); /* told */
	t = choose(&form, VV_EFFORT_FAST, 2, BYTES);
	CHECK_EQ((size_t)t.recipe.width * t.recipe.record, sizeof(struct particle));
}

static void test_counters(void)
{
	uint64_t state = 4;

	for (unsigned width = 4; width <= 8; width += 4) {
		struct vv_form form = { .type = width == 4 ? VV_TYPE_I32 : VV_TYPE_U64 };
		struct vv_recipe_search t;
		uint64_t v = 0;

		for (size_t k = 0; k < MOST; k++)
			for (size_t i = 0; i < BYTES / width; i++) {
				v += 200 + gen_below(&state, 100);
				memcpy(room[k] + width * i, &v, width);
			}
		t = choose(&form, VV_EFFORT_DEFAULT, 3, BYTES);
		CHECK(t.recipe.predictor == VV_PREDICT_LORENZO && t.recipe.n_strides == 1 && t.recipe.stride[0] == 1 && !t.recipe.real);
		CHECK(t.recipe.width == width && t.ratio > 3);
		form.type = VV_TYPE_BYTES;
		t = choose(&form, VV_EFFORT_DEFAULT, 3, BYTES);
		CHECK(t.recipe.predictor == VV_PREDICT_LORENZO && t.recipe.width == width && t.ratio > 3);
		check_promise(&t, 3, BYTES);
	}
}

static void test_constant(void)
{
	static const uint8_t types[] = { VV_TYPE_BYTES, VV_TYPE_U8, VV_TYPE_I16, VV_TYPE_F32, VV_TYPE_F64, VV_TYPE_C128 };

	memset(room, 0x3f, sizeof(room));
	for (size_t i = 0; i < sizeof(types); i++) {
		struct vv_form form = { .type = types[i] };
		struct vv_recipe_search t = choose(&form, VV_EFFORT_DEFAULT, 4, BYTES);

		CHECK(t.ratio > 500 && t.recipe.predictor == VV_PREDICT_NONE);
		t = choose(&form, VV_EFFORT_FAST, 4, BYTES); /* any coder does */
		CHECK(t.ratio > 100 && t.recipe.predictor == VV_PREDICT_NONE);
		CHECK(!vv_codec_numbered(VV_CODEC_LZ4) || types[i] == VV_TYPE_BYTES || t.recipe.coder == VV_CODEC_LZ4);
	}
}

/* Nothing is gained, and that is seen from little. */
static void test_noise(void)
{
	uint64_t state = 5;

	for (unsigned type = VV_TYPE_BYTES; type < VV_TYPES; type++) {
		const uint64_t dim[] = { 64, 32 };
		struct vv_form form = vv_recipe_form(type, false, 2, dim);
		struct vv_recipe_search t;

		gen_bytes(&state, room, sizeof(room));
		t = choose(&form, VV_EFFORT_DEFAULT, MOST, BYTES);
		CHECK(t.recipe.coder == VV_CODEC_NONE && t.recipe.predictor == VV_PREDICT_NONE && t.ratio == 1);
		CHECK_EQ(vv_recipe_search_codec(&t.recipe), VV_CODEC_NONE);
		CHECK(t.alike > 0.9 && t.alike < 1.10);
	}
}

static void test_text(void)
{
	struct vv_form form = { .type = VV_TYPE_BYTES };
	uint64_t state = 6;
	struct vv_recipe_search t;

	gen_text(&state, room, sizeof(room));
	for (enum vv_effort e = VV_EFFORT_FAST; e <= VV_EFFORT_MAX; e++) {
		t = choose(&form, e, 3, BYTES);
		CHECK(t.recipe.width == 1 && t.recipe.record == 1 && t.recipe.predictor == VV_PREDICT_NONE && t.ratio > 1.5);
		check_promise(&t, 3, BYTES);
	}
}

/* Ranks that differ in their rounding, as symmetric ones do: the high bytes are noise, but the same noise. */
static void test_alike(void)
{
	struct vv_form form = { .type = VV_TYPE_F64 };
	struct vv_recipe_search together, apart;
	uint64_t state = 7;
	double v;

	for (size_t k = 0; k < MOST; k++)
		for (size_t i = 0; i < BYTES / 8; i++) {
			if (k == 0)
				v = 1 + noise(&state, 1);
			else
				memcpy(&v, room[0] + 8 * i, 8);
			v = k ? v * (1 + noise(&state, 1e-11)) : v;
			memcpy(room[k] + 8 * i, &v, 8);
		}
	together = choose(&form, VV_EFFORT_DEFAULT, 6, BYTES);
	CHECK(together.alike > 1.10 && together.ratio > 1.3);
	CHECK(together.recipe.predictor == VV_PREDICT_TRAIL || together.recipe.window > 20);
	for (size_t i = 0; i < sizeof(room) / 8; i++) {
		v = 1 + noise(&state, 1);
		memcpy((uint8_t *)room + 8 * i, &v, 8);
	}
	apart = choose(&form, VV_EFFORT_DEFAULT, 6, BYTES);
	CHECK(apart.alike < 1.10 && apart.alike > 0.95 && apart.ratio < together.ratio);
	CHECK(choose(&form, VV_EFFORT_DEFAULT, 1, BYTES).alike == 1);
}

/* The second look, once it is known how each is coded best: it must come to what a first one would. */
static struct vv_recipe_search look_twice(const struct vv_form *form, size_t n)
{
	struct vv_recipe_search apart = { 0 }, together = { 0 };
	struct vv_sample s[MOST];
	double ratio = 0;

	for (size_t i = 0; i < n; i++)
		s[i] = (struct vv_sample){ room[i], BYTES };
	CHECK_EQ(vv_recipe_search_choose(form, VV_EFFORT_DEFAULT, false, s, n, &apart), 0);
	CHECK_EQ(vv_recipe_search_one(&apart.recipe, &s[0], &ratio), 0);
	CHECK(ratio > apart.ratio * 0.8 && ratio < apart.ratio * 1.25);
	CHECK_EQ(vv_recipe_search_together(form, VV_EFFORT_DEFAULT, &apart, s, n, &together), 0);
	CHECK(apart.n_finalists >= 1 && apart.bytes && apart.bytes <= n * BYTES);
	return together;
}

static void test_second_look(void)
{
	struct vv_form numbers = { .type = VV_TYPE_F64 }, bytes = { .type = VV_TYPE_BYTES };
	uint64_t state = 17;
	double v;

	for (size_t n = 2; n <= 6; n += 2) {
		for (size_t i = 0; i < MOST * BYTES / 8; i++) {
			v = 1 + noise(&state, 1);
			memcpy((uint8_t *)room + 8 * i, &v, 8);
		}
		CHECK(look_twice(&numbers, n).alike < 1.10);
		CHECK(look_twice(&bytes, n).alike < 1.10);
	}
	memcpy(room[1], room[0], BYTES);
	CHECK(look_twice(&numbers, 2).alike > 1.5);
	CHECK(look_twice(&bytes, 2).alike > 1.5);
	memcpy(room[1], room[0] + 5, BYTES - 5);
	CHECK(look_twice(&bytes, 2).alike > 1.5);
	memset(room, 0, sizeof(room));
	CHECK(look_twice(&numbers, 3).alike > 1.10);
}

/* Images of one program, at different addresses. */
static void test_images(void)
{
	struct vv_form form = { .type = VV_TYPE_BYTES };
	struct vv_recipe_search t;

	for (size_t k = 0; k < MOST; k++) {
		uint64_t state = 8, base = 0xaaaa00000000 + k * 0x12345000, v;

		for (size_t i = 0; i < BYTES / 8; i++) {
			uint64_t what = gen_below(&state, 4);

			v = what == 0 ? 0 : what == 1 ? base + 8 * gen_below(&state, BYTES / 8) : what == 2 ? gen_below(&state, 1000) : gen_next(&state);
			memcpy(room[k] + 8 * i, &v, 8);
		}
	}
	t = choose(&form, VV_EFFORT_DEFAULT, 6, BYTES);
	CHECK(t.recipe.predictor == VV_PREDICT_TRAIL && t.alike > 1.5);
	CHECK_EQ(vv_recipe_search_codec(&t.recipe), VV_CODEC_TRAIL);
}

/* Sizes, samples and shapes as they come, or as somebody made them up. */
static void test_odd_sizes(void)
{
	uint64_t state = 9;

	gen_text(&state, room, sizeof(room));
	for (int k = 0; k < 400; k++) {
		struct vv_form form = {
			.type = (uint8_t)gen_below(&state, VV_TYPES),
			.swapped = gen_below(&state, 2),
			.row = gen_below(&state, 3) ? gen_below(&state, 100) : gen_next(&state),
		};
		struct vv_sample s[40];
		struct vv_recipe_search t;
		size_t n = gen_below(&state, 40);

		form.plane = gen_below(&state, 2) ? form.row * 3 : gen_next(&state);
		form.record = form.type == VV_TYPE_BYTES && k % 2 ? (uint32_t)gen_next(&state) >> gen_below(&state, 32) : 0;
		for (size_t i = 0; i < n; i++)
			s[i] = (struct vv_sample){ room[i % MOST] + gen_below(&state, 9), gen_below(&state, k % 4 ? 900 : 9000) };
		CHECK_EQ(vv_recipe_search_choose(&form, (enum vv_effort)(k % 3), k % 2, s, n, &t), 0);
		CHECK(t.ratio >= 1 && t.alike > 0 && t.recipe.width >= 1 && t.recipe.record >= 1);
	}
}

static void test_want_of_memory(void)
{
	struct vv_form form = { .type = VV_TYPE_BYTES };
	struct vv_sample s[] = { { room[0], 5000 }, { room[1], 5000 } };
	struct vv_recipe_search t, together;
	double ratio;
	long asked = 1;

	for (long k = 1; k < 2000 && asked >= k; k++) {
		int rc;

		vv_mem_fail_at(k);
		rc = vv_recipe_search_choose(&form, VV_EFFORT_DEFAULT, false, s, 2, &t);
		if (rc == 0)
			rc = vv_recipe_search_together(&form, VV_EFFORT_DEFAULT, &t, s, 2, &together);
		if (rc == 0)
			rc = vv_recipe_search_one(&t.recipe, &s[0], &ratio);
		asked = vv_mem_asked();
		vv_mem_fail_at(0);
		CHECK(rc == 0 || rc == VV_ENOMEM);
	}
}

int main(void)
{
	test_odd_sizes();
	test_noise();
	if (!vv_codec_numbered(VV_CODEC_TYPED))
		SKIP("recipes need zstd, which this varve was built without; that nothing is chosen was checked");
	test_smooth();
	test_sum_of_coordinates();
	test_complex();
	test_records();
	test_counters();
	test_constant();
	test_text();
	test_alike();
	test_second_look();
	test_images();
	test_want_of_memory();
	return 0;
}
