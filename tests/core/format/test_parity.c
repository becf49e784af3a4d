// The parity object: what is written is read, and every change of a byte and every cut is refused.
#include "base/err.h"
#include "base/mem.h"
#include "core/format/parity.h"
#include "vv_test.h"

static struct vv_parity_layer layer[3] = {
	{ .len = 10000, .rank = 0, .storage_node = 1, .domain = 0, .domain_name = "a" },
	{ .len = 1, .rank = 2, .storage_node = 3, .domain = 1, .domain_name = "rack 2" },
	{ .len = 4097, .rank = 5, .storage_node = 1, .domain = 0, .domain_name = "a" },
};

static struct vv_parity_head example(void)
{
	return (struct vv_parity_head){ .lineage = "0123456789abcde", .epoch = 7, .since = 3, .n_ranks = 6, .rank = 2, .k = 1, .m = 1,
					.block_len = 4096, .n_layers = 3, .own = 1, .layer = layer };
}

static void check_head(void)
{
	struct vv_parity_head h = example(), got;
	struct vv_buf b = { 0 };
	int64_t n;

	vv_parity_head_put(&h, &b);
	CHECK_EQ(vv_buf_check(&b), 0);
	CHECK_EQ(vv_parity_head_get(&got, b.p, 10, b.n), 72);
	n = vv_parity_head_get(&got, b.p, 72, b.n);
	CHECK_EQ(n, b.n);
	CHECK(!got.layer);
	CHECK_EQ(vv_parity_head_get(&got, b.p, b.n, b.n), b.n);
	CHECK(vv_parity_head_same(&h, &got) && got.own == 1 && got.rank == 2 && strcmp(got.layer[1].domain_name, "rack 2") == 0);
	got.layer[2].len++;
	CHECK(!vv_parity_head_same(&h, &got));
	vv_parity_head_fini(&got);
	for (size_t i = 0; i < b.n; i++)
		for (int bit = 0; bit < 8; bit++) {
			b.p[i] ^= (uint8_t)(1 << bit);
			n = vv_parity_head_get(&got, b.p, b.n, b.n);
			CHECK(n < 0 || (size_t)n > b.n);
			CHECK(!got.layer);
			b.p[i] ^= (uint8_t)(1 << bit);
		}
	CHECK(vv_parity_head_get(&got, b.p, 72, b.n - 1) < 0);
	vv_buf_fini(&b);
}

/* With a right checksum, and layers that cannot be. */
static void refuse(void (*spoil)(struct vv_parity_layer *))
{
	struct vv_parity_layer copy[3];
	struct vv_parity_head h = example(), got;
	struct vv_buf b = { 0 };

	memcpy(copy, layer, sizeof(copy));
	h.layer = copy;
	spoil(copy);
	vv_parity_head_put(&h, &b);
	CHECK(vv_parity_head_get(&got, b.p, b.n, b.n) == VV_EDAMAGED);
	vv_buf_fini(&b);
}

static void high_rank(struct vv_parity_layer *l) { l[2].rank = 6; }
static void same_rank(struct vv_parity_layer *l) { l[2].rank = 2; }
static void late_node(struct vv_parity_layer *l) { l[0].storage_node = 2; }
static void late_domain(struct vv_parity_layer *l) { l[1].domain = 2; }
static void no_name(struct vv_parity_layer *l) { l[1].domain_name[0] = '\0'; }
static void no_length(struct vv_parity_layer *l) { l[1].len = 0; }
static void no_own(struct vv_parity_layer *l) { l[1].rank = 3; }

static void check_checks(void)
{
	uint64_t parity[2] = { 1, 2 }, data[3] = { 3, 4, 5 };
	struct vv_digest digest[3] = { { { 6, 7 } }, { { 8, 9 } }, { { 10, 11 } } };
	struct vv_parity_checks c = { 2, 3, parity, data, digest }, none = { 2, 0, parity, data, digest }, got;
	struct vv_buf b = { 0 }, short_one = { 0 };

	vv_parity_checks_put(&c, 3, &b);
	CHECK_EQ(b.n, vv_parity_checks_len(2, 3, 3));
	CHECK_EQ(vv_parity_checks_get(&got, b.p, b.n, 2, 3, 3), 0);
	CHECK(got.n_data == 3 && got.data[2] == 5 && got.parity[1] == 2 && vv_digest_equal(&got.digest[2], &digest[2]));
	vv_parity_checks_fini(&got);
	CHECK_EQ(vv_parity_checks_get(&got, b.p, b.n, 2, 4, 3), VV_EDAMAGED);
	CHECK_EQ(vv_parity_checks_get(&got, b.p, b.n, 3, 3, 3), VV_EDAMAGED);
	for (size_t i = 0; i < b.n; i++) {
		b.p[i] ^= 4;
		CHECK_EQ(vv_parity_checks_get(&got, b.p, b.n, 2, 3, 3), VV_EDAMAGED);
		CHECK_EQ(vv_parity_checks_get(&got, b.p, i, 2, 3, 3), VV_EDAMAGED);
		b.p[i] ^= 4;
	}
	vv_parity_checks_put(&none, 3, &short_one);
	CHECK_EQ(vv_parity_checks_get(&got, short_one.p, short_one.n, 2, 3, 3), 0);
	CHECK_EQ(got.n_data, 0);
	vv_parity_checks_fini(&got);
	vv_buf_fini(&b);
	vv_buf_fini(&short_one);
}

int main(void)
{
	check_head();
	refuse(high_rank);
	refuse(same_rank);
	refuse(late_node);
	refuse(late_domain);
	refuse(no_name);
	refuse(no_length);
	refuse(no_own);
	check_checks();
	return 0;
}
