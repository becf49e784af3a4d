/* The COPIES section: what is put is got back, joined and in order; what cannot be is refused. */
#include "base/err.h"
#include "core/format/copies_section.h"
#include "core/format/run.h"
#include "vv_test.h"
#include <string.h>

enum { RANKS = 5, SELF = 2, PAYLOAD = 1 << 20 };

static uint64_t seed = 99;

static uint64_t rng(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static int get(const struct vv_buf *b, struct vv_copies_section *out)
{
	return vv_copies_section_get(out, b->p, b->n, SELF, RANKS, PAYLOAD);
}

static void refuse(struct vv_copy *v, size_t n)
{
	struct vv_copies_section c = { v, n, n }, got = { 0 };
	struct vv_buf b = { 0 };

	vv_copies_section_put(&c, &b);
	CHECK_EQ(get(&b, &got), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "COPIES"));
	vv_copies_section_fini(&got);
	vv_buf_fini(&b);
}

/* Chunks in any order, of which many follow each other. */
static void there_and_back(void)
{
	struct vv_copies_section c = { 0 }, got = { 0 };
	struct vv_buf b = { 0 };
	size_t chunks = 200;

	for (size_t i = 0; i < chunks; i++)
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			uint64_t k = (i * 77) % chunks, run = k / 8;

			if (rank != SELF && rng() % 8)
				CHECK_EQ(vv_copies_section_add(&c, &(struct vv_copy){ k * 100, 100, (run * 31 % 25) * 1000 + k % 8 * 100, rank }), 0);
		}
	vv_copies_section_sort(&c);
	CHECK(c.n < chunks * 4 / 2);
	for (size_t i = 1; i < c.n; i++)
		CHECK(c.v[i - 1].rank < c.v[i].rank || c.v[i - 1].pos + c.v[i - 1].len <= c.v[i].pos);
	vv_copies_section_put(&c, &b);
	CHECK_EQ(get(&b, &got), 0);
	CHECK_EQ(got.n, c.n);
	for (size_t i = 0; i < c.n; i++)
		CHECK(got.v[i].rank == c.v[i].rank && got.v[i].pos == c.v[i].pos && got.v[i].len == c.v[i].len && got.v[i].at == c.v[i].at);
	vv_copies_section_fini(&got);
	for (size_t n = 0; n < b.n; n++) { /* cut short */
		struct vv_buf less = { b.p, n, n, false };

		CHECK_EQ(get(&less, &got), VV_EDAMAGED);
		vv_copies_section_fini(&got);
	}
	for (int i = 0; i < 20000; i++) { /* whatever comes, it is refused or within bounds */
		size_t at = rng() % b.n;
		uint8_t was = b.p[at];

		b.p[at] = (uint8_t)rng();
		if (get(&b, &got) == 0)
			for (size_t k = 0; k < got.n; k++)
				CHECK(got.v[k].rank < RANKS && got.v[k].rank != SELF && got.v[k].pos + got.v[k].len <= PAYLOAD &&
				      got.v[k].at + got.v[k].len <= VV_MAX_PAYLOAD);
		vv_copies_section_fini(&got);
		b.p[at] = was;
	}
	vv_copies_section_fini(&c);
	vv_buf_fini(&b);
}

int main(void)
{
	there_and_back();
	refuse(&(struct vv_copy){ 0, 100, 0, SELF }, 1);
	refuse(&(struct vv_copy){ 0, 100, 0, RANKS }, 1);
	refuse(&(struct vv_copy){ 0, 0, 0, 1 }, 1);
	refuse(&(struct vv_copy){ PAYLOAD - 99, 100, 0, 1 }, 1);
	refuse(&(struct vv_copy){ 0, 100, VV_MAX_PAYLOAD - 99, 1 }, 1);
	refuse((struct vv_copy[]){ { 0, 100, 0, 1 }, { 100, 100, 100, 1 } }, 2);
	return 0;
}
