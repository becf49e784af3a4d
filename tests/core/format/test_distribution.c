/* The section PARTS: what is put comes back; every cut and every changed byte is refused or decodes to something that the format allows.
 * Boxes against a walk over their elements. */
#include "base/err.h"
#include "core/format/distribution.h"
#include "support/dice.h"
#include "vv_test.h"
#include <stdlib.h>

static struct vv_head_region regions[4];
static struct vv_distribution parts[4];

static void fill(struct vv_head *h)
{
	static char name[4][8] = { "T#0", "plain", "step", "list" };

	for (int i = 0; i < 4; i++) {
		parts[i] = (struct vv_distribution){ 0 };
		regions[i] = (struct vv_head_region){ .name = name[i], .shape = { .chunk = 4096 } };
	}
	regions[0].shape = (struct vv_shape){ .len = 6 * 7 * 8, .chunk = 4096, .type = VV_TYPE_F64, .ndim = 2, .dim = { 6, 7 } };
	parts[0] = (struct vv_distribution){ .kind = VV_DISTRIBUTION_SLAB, .global = { 100, 1000 }, .start = { 96, 300 }, .ghost = { 1, 3 } };
	regions[0].part = &parts[0];
	regions[1].shape.len = 5;
	regions[2].shape.len = 8;
	parts[2].kind = VV_DISTRIBUTION_SHARED;
	regions[2].part = &parts[2];
	regions[3].shape = (struct vv_shape){ .len = 120, .chunk = 4096, .type = VV_TYPE_F32, .ndim = 2, .dim = { 10, 3 } };
	parts[3] = (struct vv_distribution){ .kind = VV_DISTRIBUTION_LIST, .item = 12 };
	regions[3].part = &parts[3];
	h->region = regions;
	h->n_regions = 4;
}

/* A head with the regions, but without parts. */
static void copy(const struct vv_buf *names, struct vv_head *out)
{
	*out = (struct vv_head){ 0 };
	CHECK_EQ(vv_head_get_regions(out, names->p, names->n), 0);
}

static void check_same(const struct vv_head *a, const struct vv_head *b)
{
	for (size_t i = 0; i < a->n_regions; i++) {
		CHECK_EQ(!a->region[i].part, !b->region[i].part);
		if (a->region[i].part)
			CHECK(vv_distribution_same(&a->region[i].shape, a->region[i].part, &b->region[i].shape, b->region[i].part));
	}
}

static void round_trip_and_damage(void)
{
	struct vv_head h = { 0 }, got;
	struct vv_buf names = { 0 }, b = { 0 };

	fill(&h);
	vv_head_put_regions(&h, &names);
	CHECK(vv_distribution_has_any(&h));
	vv_distribution_put(&h, &b);
	copy(&names, &got);
	CHECK(!vv_distribution_has_any(&got));
	CHECK_EQ(vv_distribution_get(&got, b.p, b.n), 0);
	check_same(&h, &got);
	vv_head_fini(&got);
	for (size_t n = 0; n < b.n; n++) {
		copy(&names, &got);
		CHECK_EQ(vv_distribution_get(&got, b.p, n), VV_EDAMAGED);
		vv_head_fini(&got);
	}
	vv_buf_add(&b, "", 1);
	copy(&names, &got);
	CHECK_EQ(vv_distribution_get(&got, b.p, b.n), VV_EDAMAGED);
	vv_head_fini(&got);
	for (size_t i = 0; i < b.n - 1; i++)
		for (int bit = 0; bit < 8; bit++) {
			int rc;

			b.p[i] ^= (uint8_t)(1 << bit);
			copy(&names, &got);
			rc = vv_distribution_get(&got, b.p, b.n - 1);
			CHECK(rc == 0 || rc == VV_EDAMAGED);
			for (size_t k = 0; rc == 0 && k < got.n_regions; k++)
				CHECK(!got.region[k].part || vv_distribution_check("x", &got.region[k].shape, got.region[k].part) == 0);
			vv_head_fini(&got);
			b.p[i] ^= (uint8_t)(1 << bit);
		}
	vv_buf_fini(&b);
	vv_buf_fini(&names);
}

static void limits(void)
{
	struct vv_shape s = { .len = 0, .chunk = 4096, .type = VV_TYPE_F64, .ndim = 2, .dim = { 0, 1ull << 62 } };
	struct vv_distribution d = { .kind = VV_DISTRIBUTION_SLAB, .global = { UINT64_MAX, 10 } };

	CHECK_EQ(vv_distribution_check("T", &s, &d), VV_EINVAL);
	s.dim[1] = 10;
	CHECK_EQ(vv_distribution_check("T", &s, &d), VV_EINVAL);
	d.global[0] = 1ull << 54;
	CHECK_EQ(vv_distribution_check("T", &s, &d), VV_EINVAL); /* 10 * 2^54 elements */
	d.global[0] = 1ull << 52;
	CHECK_EQ(vv_distribution_check("T", &s, &d), 0);
	d.start[0] = (1ull << 52) + 1;
	CHECK_EQ(vv_distribution_check("T", &s, &d), VV_EINVAL);
	d.start[0] = 0;
	d.ghost[0] = 1ull << 63;
	CHECK_EQ(vv_distribution_check("T", &s, &d), VV_EINVAL);
	d = (struct vv_distribution){ .kind = 4 };
	CHECK_EQ(vv_distribution_check("T", &s, &d), VV_EINVAL);
	d = (struct vv_distribution){ .kind = VV_DISTRIBUTION_LIST, .item = 12 };
	CHECK_EQ(vv_distribution_check("T", &s, &d), VV_EINVAL); /* no multiple of 8 */
	d.item = 0;
	CHECK_EQ(vv_distribution_check("T", &s, &d), VV_EINVAL);
}

/* Does the box have the element? */
static bool has(const struct vv_box *b, const int64_t *at)
{
	for (unsigned i = 0; i < b->ndim; i++)
		if (at[i] < b->start[i] || at[i] >= b->end[i])
			return false;
	return true;
}

static void boxes(void)
{
	for (int i = 0; i < 2000; i++) {
		struct vv_box a = { .ndim = 2 }, b = { .ndim = 2 }, both;
		uint64_t n = 0;
		bool some;

		for (int d = 0; d < 2; d++) {
			a.start[d] = (int64_t)upto(6) - 2;
			a.end[d] = a.start[d] + (int64_t)upto(5);
			b.start[d] = (int64_t)upto(6) - 2;
			b.end[d] = b.start[d] + (int64_t)upto(5);
		}
		some = vv_distribution_intersect(&a, &b, &both);
		for (int64_t y = -3; y < 10; y++)
			for (int64_t x = -3; x < 10; x++) {
				int64_t at[2] = { y, x };
				bool in = has(&a, at) && has(&b, at);

				CHECK_EQ(in, some && has(&both, at));
				n += in;
			}
		CHECK_EQ(some, n > 0);
		CHECK(!some || vv_distribution_volume(&both) == n);
	}
}

int main(void)
{
	char text[VV_DISTRIBUTION_TEXT];

	round_trip_and_damage();
	limits();
	boxes();
	CHECK_EQ(vv_distribution_name_length("T"), 1);
	CHECK_EQ(vv_distribution_name_length("T#a#b"), 1);
	CHECK_STR(vv_distribution_text(2, (int64_t[]){ -3, 17 }, text), "(-3, 17)");
	return 0;
}
