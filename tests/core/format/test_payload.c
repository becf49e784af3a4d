/* Blocks and digests: against a model with one flag per position, round trips, and every kind of damage. */
#include "base/err.h"
#include "base/mem.h"
#include "core/format/payload.h"
#include "support/gen.h"
#include "vv_test.h"

enum { MAX = 200, FIRST_OFF = 16 };

/* block number + 1 per position, 0 = in none */
static void spread(const struct vv_blocks *b, uint32_t model[MAX + 1])
{
	memset(model, 0, (MAX + 1) * sizeof(*model));
	for (size_t i = 0; i < b->n; i++)
		for (size_t j = 0; j < b->v[i].n_extents; j++) {
			const struct vv_extent *e = &b->extent.v[b->v[i].extent + j];

			for (uint64_t k = 0; k < e->len; k++)
				model[e->pos + k] = (uint32_t)i + 1;
		}
}

static void check_find(const struct vv_blocks *b)
{
	uint32_t model[MAX + 1];

	spread(b, model);
	for (uint64_t pos = 0; pos <= MAX; pos++) {
		size_t want = 0;

		CHECK_EQ(vv_payload_block_find(b, pos), model[pos] ? model[pos] - 1 : b->n);
		while (want < b->extent.n && b->extent.v[want].pos + b->extent.v[want].len <= pos)
			want++;
		CHECK_EQ(vv_payload_extent_find(&b->extent, pos), want);
		for (uint64_t len = 0, all = 1; pos + len <= MAX; len++) {
			CHECK_EQ(vv_payload_extent_has(&b->extent, pos, len), all);
			all = all && model[pos + len];
		}
	}
}

static void test_find(void)
{
	uint64_t state = 1;

	for (int round = 0; round < 60; round++) {
		struct vv_blocks b = { 0 };
		struct vv_buf bytes = { 0 };

		gen_blocks(&state, gen_below(&state, MAX + 1), round % 3 == 0, &b, &bytes);
		check_find(&b);
		vv_payload_blocks_fini(&b);
		vv_buf_fini(&bytes);
	}
}

static void test_extent_join(void)
{
	struct vv_extents e = { 0 };

	CHECK_EQ(vv_payload_extent_has(&e, 3, 0), 1);
	CHECK_EQ(vv_payload_extent_has(&e, 3, 1), 0);
	CHECK_EQ(vv_payload_extent_add(&e, 10, 5, 1), 0);
	CHECK_EQ(vv_payload_extent_add(&e, 15, 5, 1), 0);
	CHECK_EQ(vv_payload_extent_add(&e, 20, 0, 1), 0);
	CHECK_EQ(e.n, 1);
	CHECK_EQ(vv_payload_extent_add(&e, 20, 5, 0), 0);
	CHECK_EQ(vv_payload_extent_add(&e, 30, 5, 1), 0);
	CHECK_EQ(e.n, 3);
	CHECK(vv_payload_extent_has(&e, 10, 15) && !vv_payload_extent_has(&e, 10, 16));
	CHECK(!vv_payload_extent_has(&e, 9, 2) && !vv_payload_extent_has(&e, 24, 7));
	vv_payload_extents_fini(&e);
}

static void check_same_blocks(const struct vv_blocks *a, const struct vv_blocks *b)
{
	CHECK_EQ(a->n, b->n);
	CHECK_EQ(a->extent.n, b->extent.n);
	for (size_t i = 0; i < a->n; i++) {
		CHECK_EQ(a->v[i].off + FIRST_OFF, b->v[i].off);
		CHECK_EQ(a->v[i].check, b->v[i].check);
		CHECK_EQ(a->v[i].codec, b->v[i].codec);
		CHECK_EQ(a->v[i].raw_len, b->v[i].raw_len);
		CHECK_EQ(a->v[i].stored_len, b->v[i].stored_len);
		CHECK_EQ(a->v[i].n_extents, b->v[i].n_extents);
		CHECK_EQ(a->v[i].extent, b->v[i].extent);
	}
	CHECK(a->extent.n == 0 || memcmp(a->extent.v, b->extent.v, a->extent.n * sizeof(*a->extent.v)) == 0);
}

/* Some blocks are said to be coded, so that stored and raw length differ. */
static void some_blocks(uint64_t *state, uint64_t payload, struct vv_blocks *b, uint64_t *end)
{
	struct vv_buf bytes = { 0 };

	gen_blocks(state, payload, gen_below(state, 2) == 0, b, &bytes);
	*end = FIRST_OFF;
	for (size_t i = 0; i < b->n; i++) {
		if (gen_below(state, 2)) {
			b->v[i].codec = 1 + (uint32_t)gen_below(state, 2);
			b->v[i].stored_len = 1 + (uint32_t)gen_below(state, 300);
		}
		b->v[i].off = *end - FIRST_OFF;
		*end += b->v[i].stored_len;
	}
	vv_buf_fini(&bytes);
}

static int try_blocks(const uint8_t *p, size_t n, uint64_t payload, uint64_t end)
{
	struct vv_blocks b = { 0 };
	struct vv_buf again = { 0 };
	uint8_t *copy = malloc(n ? n : 1);
	int rc;

	CHECK(copy);
	memcpy(copy, p, n);
	rc = vv_payload_get_blocks(&b, copy, n, payload, FIRST_OFF, end);
	CHECK(rc == 0 || rc == VV_EDAMAGED);
	if (rc == 0) {
		vv_payload_put_blocks(&b, &again);
		CHECK(again.n == n && memcmp(again.p, p, n) == 0);
		check_find(&b);
	}
	vv_payload_blocks_fini(&b);
	vv_buf_fini(&again);
	free(copy);
	return rc;
}

static void check_block_damage(struct vv_buf *coded, uint64_t payload, uint64_t end, long taken[2])
{
	for (size_t n = 0; n < coded->n; n++)
		CHECK_EQ(try_blocks(coded->p, n, payload, end), VV_EDAMAGED);
	CHECK_EQ(try_blocks(coded->p, coded->n, payload, end + 1), VV_EDAMAGED);
	CHECK_EQ(try_blocks(coded->p, coded->n, payload, end - 1), VV_EDAMAGED);
	for (size_t i = 0; i < coded->n * 8; i++) {
		coded->p[i / 8] ^= (uint8_t)(1 << i % 8);
		taken[try_blocks(coded->p, coded->n, payload, end) == 0]++;
		coded->p[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	vv_wire_put_u8(coded, 0);
	CHECK_EQ(try_blocks(coded->p, coded->n, payload, end), VV_EDAMAGED);
}

static void test_blocks(void)
{
	uint64_t state = 2;
	long taken[2] = { 0 };

	for (int round = 0; round < 300; round++) {
		uint64_t payload = gen_below(&state, round < 20 ? 60 : MAX + 1), end;
		struct vv_blocks a = { 0 }, b = { 0 };
		struct vv_buf coded = { 0 };

		some_blocks(&state, payload, &a, &end);
		vv_payload_put_blocks(&a, &coded);
		CHECK_EQ(vv_payload_get_blocks(&b, coded.p, coded.n, payload, FIRST_OFF, end), 0);
		check_same_blocks(&a, &b);
		if (round < 20)
			check_block_damage(&coded, payload, end, taken);
		vv_payload_blocks_fini(&a);
		vv_payload_blocks_fini(&b);
		vv_buf_fini(&coded);
	}
	CHECK(taken[0] > 100 && taken[1] > 100); /* a flip in a check, for one, is another valid section */
}

/* A few bytes may hold many extents: they are refused before they take memory. */
static void test_many_extents(void)
{
	enum { N = 4 << 20 };
	struct vv_blocks b = { 0 };
	struct vv_buf coded = { 0 };

	vv_wire_put_var(&coded, 1);
	vv_wire_put_var(&coded, 1); /* codec */
	vv_wire_put_var(&coded, N);
	vv_wire_put_var(&coded, 1);
	vv_wire_put_u64(&coded, 0);
	vv_wire_put_var(&coded, N);
	for (int i = 0; i < N; i++) {
		vv_wire_put_var(&coded, 1);
		vv_wire_put_var(&coded, 1);
	}
	vv_mem_pretend_available(50 << 20);
	CHECK_EQ(vv_payload_get_blocks(&b, coded.p, coded.n, 2 * N, FIRST_OFF, FIRST_OFF + 1), VV_ENOMEM);
	CHECK_EQ(b.extent.cap, 0);
	CHECK(strstr(vv_err_last(), "section BLOCKS"));
	vv_mem_pretend_available(0);
	CHECK_EQ(vv_payload_get_blocks(&b, coded.p, coded.n, 2 * N, FIRST_OFF, FIRST_OFF + 1), 0);
	vv_payload_blocks_fini(&b);
	vv_buf_fini(&coded);
}

/* codec, raw, stored, check, extents... written by hand: n numbers, the fourth as a u64. */
static int block_by_hand(const uint64_t *v, size_t n, uint64_t payload)
{
	struct vv_buf b = { 0 };
	int rc;

	vv_wire_put_var(&b, 1);
	for (size_t i = 0; i < n; i++)
		if (i == 3)
			vv_wire_put_u64(&b, v[i]);
		else
			vv_wire_put_var(&b, v[i]);
	rc = try_blocks(b.p, b.n, payload, FIRST_OFF + v[2]);
	vv_buf_fini(&b);
	return rc;
}

#define BLOCK(payload, ...)                                                                        \
	block_by_hand((const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, payload)

static void test_block_rules(void)
{
	CHECK_EQ(BLOCK(100, 0, 10, 10, 1, 1, 90, 10), 0);
	CHECK_EQ(BLOCK(100, 1, 10, 30, 1, 2, 0, 4, 0, 6), 0);
	CHECK_EQ(BLOCK(99, 0, 10, 10, 1, 1, 90, 10), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 0, 10, 9, 1, 1, 0, 10), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 1, 0, 9, 1, 1, 0, 0), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 1, 10, 0, 1, 1, 0, 10), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 1, 10, 5, 1, 0), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 1, 10, 5, 1, 1, 0, 9), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 1, 10, 5, 1, 2, 0, 10, 0, 0), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 1, 10, 5, 1, 2, 0, 10, 0, 1), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 256, 10, 5, 1, 1, 0, 10), VV_EDAMAGED);
	CHECK_EQ(BLOCK(1ull << 30, 1, VV_MAX_BLOCK + 1, 5, 1, 1, 0, VV_MAX_BLOCK + 1), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 1, 10, VV_MAX_STORED_BLOCK + 1, 1, 1, 0, 10), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 1, 10, 5, 1, 1, UINT64_MAX, 10), VV_EDAMAGED);
	CHECK_EQ(BLOCK(100, 1, 10, 5, 1, UINT64_MAX, 0, 10), VV_EDAMAGED);
}

static void check_same_digests(const struct vv_digests *a, const struct vv_digests *b)
{
	CHECK_EQ(a->n, b->n);
	CHECK_EQ(a->n_groups, b->n_groups);
	for (size_t i = 0; i < a->n_groups; i++) {
		CHECK_EQ(a->group[i].pos, b->group[i].pos);
		CHECK_EQ(a->group[i].chunk, b->group[i].chunk);
		CHECK_EQ(a->group[i].count, b->group[i].count);
		CHECK_EQ(a->group[i].digest, b->group[i].digest);
	}
	CHECK(a->n == 0 || memcmp(a->v, b->v, a->n * sizeof(*a->v)) == 0);
}

/* Wherever they lie in memory: lent, they stay there; in memory of their own some do, and some are moved. */
static int try_digests(const uint8_t *p, size_t n, uint64_t payload)
{
	static size_t turn;
	struct vv_digests d = { 0 };
	struct vv_buf again = { 0 };
	size_t before = turn++ % 9;
	uint8_t *copy = vv_mem_grow(NULL, before + n + 1, 1);
	int rc;

	CHECK(copy);
	memcpy(copy + before, p, n);
	rc = vv_payload_lend_digests(&d, copy + before, n, payload);
	CHECK(rc != 0 || (uint8_t *)d.v + d.n * sizeof(*d.v) == copy + before + n);
	vv_payload_digests_fini(&d); /* nothing of what was lent */
	CHECK_EQ(vv_payload_take_digests(&d, copy + before, n, payload, &copy), rc);
	CHECK(rc == 0 || rc == VV_EDAMAGED);
	CHECK_EQ(copy != NULL, rc != 0);
	if (rc == 0) {
		vv_payload_put_digests(&d, &again);
		CHECK(again.n == n && memcmp(again.p, p, n) == 0);
	}
	vv_payload_digests_fini(&d);
	vv_buf_fini(&again);
	vv_mem_free(copy);
	return rc;
}

static void test_digests(void)
{
	uint64_t state = 3;

	for (int round = 0; round < 300; round++) {
		uint64_t payload = gen_below(&state, round < 20 ? 100 : 2000);
		struct vv_digests a = { 0 }, b = { 0 };
		struct vv_buf coded = { 0 };

		gen_digests(&state, payload, &a);
		vv_payload_put_digests(&a, &coded);
		CHECK_EQ(vv_payload_get_digests(&b, coded.p, coded.n, payload), 0);
		check_same_digests(&a, &b);
		for (size_t n = 0; n < coded.n && round < 20; n++)
			CHECK_EQ(try_digests(coded.p, n, payload), VV_EDAMAGED);
		for (size_t i = 0; i < coded.n * 8 && round < 20; i++) {
			coded.p[i / 8] ^= (uint8_t)(1 << i % 8);
			try_digests(coded.p, coded.n, payload);
			coded.p[i / 8] ^= (uint8_t)(1 << i % 8);
		}
		vv_wire_put_u8(&coded, 0);
		CHECK_EQ(try_digests(coded.p, coded.n, payload), VV_EDAMAGED);
		vv_payload_digests_fini(&a);
		vv_payload_digests_fini(&b);
		vv_buf_fini(&coded);
	}
}

/* groups, (gap, chunk, count)..., then as many digests */
static int group_by_hand(const uint64_t *v, size_t n, uint64_t payload, size_t digests)
{
	static const uint8_t digest[16] = "0123456789abcde";
	struct vv_buf b = { 0 };
	int rc;

	for (size_t i = 0; i < n; i++)
		vv_wire_put_var(&b, v[i]);
	for (size_t i = 0; i < digests; i++)
		vv_buf_add(&b, digest, 16);
	rc = try_digests(b.p, b.n, payload);
	vv_buf_fini(&b);
	return rc;
}

#define GROUP(payload, digests, ...)                                                               \
	group_by_hand((const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, payload, digests)

static void test_digest_rules(void)
{
	CHECK_EQ(GROUP(100, 0, 0), 0);
	CHECK_EQ(GROUP(100, 1, 1, 68, 32, 1), 0);
	CHECK_EQ(GROUP(100, 3, 1, 4, 32, 3), 0);
	CHECK_EQ(GROUP(100, 1, 1, 69, 32, 1), VV_EDAMAGED);
	CHECK_EQ(GROUP(100, 3, 1, 5, 32, 3), VV_EDAMAGED);
	CHECK_EQ(GROUP(100, 0, 1, 0, 32, 0), VV_EDAMAGED);
	CHECK_EQ(GROUP(100, 1, 1, 0, 0, 1), VV_EDAMAGED);
	CHECK_EQ(GROUP(100, 2, 1, 0, 32, 1), VV_EDAMAGED);
	CHECK_EQ(GROUP(100, 1, 1, 0, 32, 2), VV_EDAMAGED);
	CHECK_EQ(GROUP(1ull << 40, 1, 1, 0, (1u << 20) + 1, 1), VV_EDAMAGED);
	CHECK_EQ(GROUP(100, 1, 1, UINT64_MAX - 31, 32, 1), VV_EDAMAGED);
	CHECK_EQ(GROUP(1ull << 48, 1, 1, 0, 1, 1ull << 48), VV_EDAMAGED);
	CHECK_EQ(GROUP(1ull << 48, 1, 2, 0, 1, 1ull << 47, 0, 1, 1ull << 47), VV_EDAMAGED);
	CHECK_EQ(GROUP(1ull << 48, 4, UINT64_MAX, 0, 32, 1), VV_EDAMAGED);
}

static void test_no_memory(void)
{
	struct vv_digests d = { 0 };
	struct vv_buf blocks = { 0 }, digests = { 0 };
	struct vv_blocks b = { 0 };
	uint64_t state = 4, end;
	int rc = -1;

	some_blocks(&state, MAX, &b, &end);
	gen_digests(&state, MAX, &d);
	vv_payload_put_blocks(&b, &blocks);
	vv_payload_put_digests(&d, &digests);
	for (long k = 1; rc != 0; k++) {
		struct vv_digests d2 = { 0 };
		struct vv_blocks b2 = { 0 };

		vv_mem_fail_at(k);
		rc = vv_payload_get_blocks(&b2, blocks.p, blocks.n, MAX, FIRST_OFF, end);
		if (rc == 0)
			rc = vv_payload_get_digests(&d2, digests.p, digests.n, MAX);
		CHECK(rc == 0 ? k > 4 : rc == VV_ENOMEM);
		vv_payload_blocks_fini(&b2);
		vv_payload_digests_fini(&d2);
	}
	vv_mem_fail_at(0);
	vv_payload_blocks_fini(&b);
	vv_payload_digests_fini(&d);
	vv_buf_fini(&blocks);
	vv_buf_fini(&digests);
}

/* A cursor finds what a search finds, from wherever it stands: in whole payloads, and in what gc leaves of them. */
static void test_locate(void)
{
	uint64_t state = 5;

	for (int round = 0; round < 40; round++) {
		struct vv_payload_cursor c = { 0 };
		struct vv_blocks b = { 0 };
		struct vv_buf bytes = { 0 };
		uint64_t pos = 0, payload = 5000;

		gen_blocks(&state, payload, round % 2, &b, &bytes);
		for (int i = 0; i < 3000; i++) {
			size_t want;

			pos = i % 4 ? pos + gen_below(&state, 40) : gen_below(&state, payload + 100);
			want = vv_payload_block_find(&b, pos);
			CHECK_EQ(vv_payload_locate(&b, pos, &c), want < b.n);
			if (want < b.n) {
				const struct vv_extent *x = &b.extent.v[c.extent];
				uint64_t before = 0;

				CHECK_EQ(c.block, want);
				CHECK(pos >= x->pos && pos < x->pos + x->len);
				for (size_t k = b.v[want].extent; k < c.extent; k++)
					before += b.extent.v[k].len;
				CHECK_EQ(c.before, before);
			}
		}
		vv_payload_blocks_fini(&b);
		vv_buf_fini(&bytes);
	}
	CHECK_EQ(vv_payload_locate(&(struct vv_blocks){ 0 }, 0, &(struct vv_payload_cursor){ 0 }), 0);
}

int main(void)
{
	test_find();
	test_locate();
	test_extent_join();
	test_blocks();
	test_many_extents();
	test_block_rules();
	test_digests();
	test_digest_rules();
	test_no_memory();
	return 0;
}
