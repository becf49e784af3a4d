/* Commit and lineage records: round trips, every flip, every cut, and the rules behind a right check. */
#include "base/err.h"
#include "base/mem.h"
#include "core/format/commit.h"
#include "core/format/run.h"
#include "support/gen.h"
#include "vv_test.h"

static struct vv_commit some_commit(uint64_t *state, uint32_t ranks)
{
	struct vv_commit c = { .n_ranks = ranks, .epoch = 1 + gen_below(state, VV_MAX_EPOCH) };

	gen_bytes(state, c.lineage, 16);
	c.parent = gen_below(state, c.epoch);
	c.time_ns = gen_next(state);
	c.rank = vv_mem_new(ranks, sizeof(*c.rank));
	CHECK(c.rank);
	gen_bytes(state, c.rank, ranks * sizeof(*c.rank));
	for (uint32_t i = 0; i < ranks; i++)
		c.rank[i].storage_node = gen_below(state, i + 2);
	return c;
}

static int get(const uint8_t *p, size_t n)
{
	struct vv_commit c = { 0 };
	uint8_t *copy = malloc(n ? n : 1);
	int rc;

	CHECK(copy);
	memcpy(copy, p, n);
	rc = vv_commit_get(&c, copy, n);
	vv_commit_fini(&c);
	free(copy);
	return rc;
}

static void test_round_trip(void)
{
	uint64_t state = 1;

	for (uint32_t ranks = 1; ranks < 40; ranks++) {
		struct vv_commit a = some_commit(&state, ranks), b = { 0 };
		struct vv_buf out = { 0 };

		vv_buf_add(&out, "before", 6);
		vv_commit_put(&a, &out);
		CHECK_EQ(out.n, 6 + VV_COMMIT_FIXED + ranks * VV_COMMIT_PER_RANK);
		CHECK_EQ(vv_commit_get(&b, out.p + 6, out.n - 6), 0);
		CHECK(memcmp(a.lineage, b.lineage, 16) == 0);
		CHECK_EQ(a.epoch, b.epoch);
		CHECK_EQ(a.parent, b.parent);
		CHECK_EQ(a.time_ns, b.time_ns);
		CHECK_EQ(a.n_ranks, b.n_ranks);
		for (uint32_t i = 0; i < ranks; i++) {
			CHECK(vv_digest_equal(&a.rank[i].head, &b.rank[i].head));
			CHECK_EQ(a.rank[i].file_len, b.rank[i].file_len);
			CHECK_EQ(a.rank[i].payload, b.rank[i].payload);
			CHECK_EQ(a.rank[i].memory, b.rank[i].memory);
			CHECK_EQ(a.rank[i].stored, b.rank[i].stored);
			CHECK_EQ(a.rank[i].storage_node, b.rank[i].storage_node);
		}
		vv_commit_fini(&a);
		vv_commit_fini(&b);
		vv_buf_fini(&out);
	}
}

static void test_sum(void)
{
	struct vv_commit_rank rank[] = { { .memory = 1, .stored = 10, .file_len = 100 }, { .memory = 2, .stored = 20, .file_len = 200 } };
	struct vv_commit c = { .n_ranks = 2, .rank = rank }, none = { 0 };
	struct vv_commit_sums s = vv_commit_sum(&c);

	CHECK_EQ(s.memory, 3);
	CHECK_EQ(s.stored, 30);
	CHECK_EQ(s.file_len, 300);
	CHECK_EQ(vv_commit_sum(&none).memory, 0);
}

static void test_damage(void)
{
	uint64_t state = 2;

	for (uint32_t ranks = 1; ranks < 4; ranks++) {
		struct vv_commit c = some_commit(&state, ranks);
		struct vv_buf out = { 0 };

		vv_commit_put(&c, &out);
		for (size_t i = 0; i < out.n * 8; i++) {
			out.p[i / 8] ^= (uint8_t)(1 << i % 8);
			CHECK_EQ(get(out.p, out.n), VV_EDAMAGED);
			out.p[i / 8] ^= (uint8_t)(1 << i % 8);
		}
		for (size_t n = 0; n < out.n; n++)
			CHECK_EQ(get(out.p, n), VV_EDAMAGED);
		CHECK_EQ(get(out.p, out.n), 0);
		vv_wire_put_u8(&out, 0);
		CHECK_EQ(get(out.p, out.n), VV_EDAMAGED);
		vv_commit_fini(&c);
		vv_buf_fini(&out);
	}
}

/* Sets n little-endian bytes at a place, then makes the check right again. */
static void forge(struct vv_buf *b, size_t at, uint64_t v, size_t n)
{
	struct vv_buf check = { 0 };

	for (size_t i = 0; i < n; i++)
		b->p[at + i] = (uint8_t)(v >> (8 * i));
	vv_wire_put_u64(&check, vv_digest_check(b->p, b->n - 8));
	memcpy(b->p + b->n - 8, check.p, 8);
	vv_buf_fini(&check);
}

static void check_forged(size_t at, uint64_t v, size_t n, int want)
{
	uint64_t state = 3;
	struct vv_commit c = some_commit(&state, 2);
	struct vv_buf out = { 0 };

	c.epoch = 100;
	c.parent = 99;
	vv_commit_put(&c, &out);
	forge(&out, at, v, n);
	CHECK_EQ(get(out.p, out.n), want);
	vv_commit_fini(&c);
	vv_buf_fini(&out);
}

static void test_rules(void)
{
	check_forged(8, 1, 2, 0);
	check_forged(8, 2, 2, VV_EDAMAGED);
	check_forged(10, 1, 2, VV_EDAMAGED);
	check_forged(12, 0, 4, VV_EDAMAGED);
	check_forged(12, 1, 4, VV_EDAMAGED);
	check_forged(12, 3, 4, VV_EDAMAGED);
	check_forged(12, UINT32_MAX, 4, VV_EDAMAGED);
	check_forged(12, (1u << 26) + 2, 4, VV_EDAMAGED); /* 64 times it is 128 in 32 bits */
	check_forged(32, 0, 8, VV_EDAMAGED);
	check_forged(32, 99, 8, VV_EDAMAGED);
	check_forged(32, VV_MAX_EPOCH, 8, 0);
	check_forged(32, VV_MAX_EPOCH + 1, 8, VV_EDAMAGED);
	check_forged(40, 100, 8, VV_EDAMAGED);
	check_forged(40, 0, 8, 0);
	check_forged(56 + 48, 1, 8, 0);
	check_forged(56 + 48, 2, 8, VV_EDAMAGED);
	check_forged(56 + 64 + 48, 2, 8, 0);
	check_forged(56 + 64 + 48, 3, 8, VV_EDAMAGED);
	check_forged(56 + 56, 1, 8, VV_EDAMAGED);
	check_forged(56 + 64 + 56, 1ull << 63, 8, VV_EDAMAGED);
}

static int get_lineage(const uint8_t *p, size_t n)
{
	uint8_t id[16], *copy = malloc(n ? n : 1);
	uint64_t time_ns;
	int rc;

	CHECK(copy);
	memcpy(copy, p, n);
	rc = vv_commit_get_lineage(id, &time_ns, copy, n);
	free(copy);
	return rc;
}

static void test_lineage(void)
{
	uint8_t id[16], back[16];
	uint64_t state = 4, time_ns = 0;
	struct vv_buf out = { 0 };

	gen_bytes(&state, id, 16);
	vv_commit_put_lineage(id, 0x1122334455667788, &out);
	CHECK_EQ(out.n, VV_COMMIT_LINEAGE);
	CHECK_EQ(vv_commit_get_lineage(back, &time_ns, out.p, out.n), 0);
	CHECK(memcmp(id, back, 16) == 0);
	CHECK_EQ(time_ns, 0x1122334455667788);
	for (size_t i = 0; i < out.n * 8; i++) {
		out.p[i / 8] ^= (uint8_t)(1 << i % 8);
		CHECK_EQ(get_lineage(out.p, out.n), VV_EDAMAGED);
		out.p[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	for (size_t n = 0; n < out.n; n++)
		CHECK_EQ(get_lineage(out.p, n), VV_EDAMAGED);
	forge(&out, 8, 2, 2);
	CHECK_EQ(get_lineage(out.p, out.n), VV_EDAMAGED);
	forge(&out, 8, 1, 2);
	forge(&out, 12, 1, 4);
	CHECK_EQ(get_lineage(out.p, out.n), VV_EDAMAGED);
	forge(&out, 12, 0, 4);
	forge(&out, 40, 1, 8);
	CHECK_EQ(get_lineage(out.p, out.n), VV_EDAMAGED);
	forge(&out, 40, 0, 8);
	CHECK_EQ(get_lineage(out.p, out.n), 0);
	vv_buf_fini(&out);
}

/* One record is not taken for the other. */
static void test_mixed_up(void)
{
	uint64_t state = 5;
	struct vv_commit c = some_commit(&state, 1);
	struct vv_buf out = { 0 };

	vv_commit_put(&c, &out);
	CHECK_EQ(get_lineage(out.p, out.n), VV_EDAMAGED);
	CHECK_EQ(get_lineage(out.p, VV_COMMIT_LINEAGE), VV_EDAMAGED);
	out.n = 0;
	vv_commit_put_lineage(c.lineage, 1, &out);
	CHECK_EQ(get(out.p, out.n), VV_EDAMAGED);
	vv_commit_fini(&c);
	vv_buf_fini(&out);
}

static void test_no_memory(void)
{
	uint64_t state = 6;
	struct vv_commit c = some_commit(&state, 20), back = { 0 };
	struct vv_buf out = { 0 };

	for (long k = 1; k <= 3; k++) {
		vv_mem_fail_at(k);
		vv_commit_put(&c, &out);
		vv_mem_fail_at(0);
		CHECK_EQ(vv_buf_check(&out), VV_ENOMEM);
		vv_buf_fini(&out);
	}
	vv_commit_put(&c, &out);
	vv_mem_fail_at(1);
	CHECK_EQ(vv_commit_get(&back, out.p, out.n), VV_ENOMEM);
	vv_mem_fail_at(0);
	vv_commit_fini(&back);
	vv_commit_fini(&c);
	vv_buf_fini(&out);
}

int main(void)
{
	test_round_trip();
	test_sum();
	test_damage();
	test_rules();
	test_lineage();
	test_mixed_up();
	test_no_memory();
	return 0;
}
