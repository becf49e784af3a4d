/* All lanes of a layer are those that are found one by one, joined: for layers of any blocks, extents and digests, as gc leaves them. */
#include "base/mem.h"
#include "engine/lineage/plain_extent.h"
#include "support/gen.h"
#include "vv_test.h"

enum { ROUNDS = 400, BLOCKS = 12, EXTENTS = 4 };

/* Blocks of some extents each, with gaps between them or none, plain or coded. */
static uint64_t make_blocks(uint64_t *state, struct vv_blocks *b)
{
	uint64_t pos = 0, coded = gen_below(state, 3), gaps = gen_below(state, 3);

	for (uint64_t i = 0, n = gen_below(state, BLOCKS + 1); i < n; i++) {
		uint32_t raw = 0;

		for (uint64_t k = 1 + gen_below(state, EXTENTS); k > 0; k--) {
			struct vv_extents *x = &b->extent;

			pos += gaps && gen_below(state, 2) ? gen_below(state, 5000) : 0;
			CHECK_EQ(vv_mem_room(&x->v, x->n, &x->cap, sizeof(*x->v)), 0);
			x->v[x->n] = (struct vv_extent){ pos, 1 + gen_below(state, 9000) };
			raw += (uint32_t)x->v[x->n].len;
			pos += x->v[x->n++].len;
			if (!gaps)
				break;
		}
		CHECK_EQ(vv_payload_block_add(b, coded && gen_below(state, 3) == 0, raw, raw, 0), 0);
	}
	return pos;
}

/* Chunks of a few sizes, some without a digest. */
static void make_digests(uint64_t *state, uint64_t payload, struct vv_digests *d)
{
	uint32_t chunk = 1 + (uint32_t)gen_below(state, 3000);

	for (uint64_t pos = gen_below(state, 2000); pos + chunk <= payload; pos += chunk) {
		struct vv_digest some = { { pos, chunk } };

		if (gen_below(state, 10) == 0)
			chunk = 1 + (uint32_t)gen_below(state, 3000);
		else
			CHECK_EQ(vv_payload_digest_add(d, pos, chunk, &some), 0);
	}
}

static void check_at(const struct vv_layer_file *f, const struct vv_plain_extents *all, uint64_t pos)
{
	const struct vv_plain_extent *l = NULL;
	struct vv_plain_extent one;

	for (size_t i = 0; i < all->n; i++)
		if (pos >= all->v[i].lo && pos < all->v[i].hi)
			l = &all->v[i];
	CHECK_EQ(vv_plain_extent_find(f, pos, &one), l != NULL);
	if (!l)
		return;
	CHECK(l->lo <= one.lo && l->hi >= one.hi);
	CHECK(l->digest == one.digest && l->first == one.first && l->chunk == one.chunk);
	CHECK_EQ(l->block->codec, one.block->codec);
	if (one.block->codec)
		CHECK(l->block == one.block && l->lo == one.lo && l->hi == one.hi);
	CHECK_EQ(l->off + (pos - l->lo), one.off + (pos - one.lo));
}

static size_t check_layer(uint64_t *state)
{
	struct vv_layer_file f = { 0 };
	struct vv_plain_extents all = { 0 };
	uint64_t payload = make_blocks(state, &f.blocks);

	make_digests(state, payload, &f.digests);
	CHECK_EQ(vv_plain_extent_list(&f, &all), 0);
	for (size_t i = 0; i < all.n; i++) {
		CHECK(all.v[i].lo < all.v[i].hi);
		CHECK(i == 0 || all.v[i - 1].hi <= all.v[i].lo);
		check_at(&f, &all, all.v[i].lo);
		check_at(&f, &all, all.v[i].hi - 1);
		check_at(&f, &all, all.v[i].hi);
	}
	for (int i = 0; i < 200; i++)
		check_at(&f, &all, gen_below(state, payload + 100));
	vv_mem_free(all.v);
	vv_payload_blocks_fini(&f.blocks);
	vv_payload_digests_fini(&f.digests);
	return all.n;
}

/* As a checkpoint lays it down: one lane. */
static void one_lane(uint32_t block, uint64_t blocks, size_t lanes)
{
	struct vv_layer_file f = { 0 };
	struct vv_plain_extents all = { 0 };
	struct vv_digest some = { { 1, 2 } };

	for (uint64_t i = 0; i < blocks; i++) {
		CHECK_EQ(vv_mem_room(&f.blocks.extent.v, f.blocks.extent.n, &f.blocks.extent.cap, sizeof(*f.blocks.extent.v)), 0);
		f.blocks.extent.v[f.blocks.extent.n++] = (struct vv_extent){ i * block, block };
		CHECK_EQ(vv_payload_block_add(&f.blocks, 0, block, block, 0), 0);
		for (uint32_t at = 0; at < block; at += 1 << 20)
			CHECK_EQ(vv_payload_digest_add(&f.digests, i * block + at, 1 << 20, &some), 0);
	}
	CHECK_EQ(vv_plain_extent_list(&f, &all), 0);
	CHECK_EQ(all.n, lanes);
	for (size_t i = 0; i < all.n; i++)
		CHECK(all.v[i].hi - all.v[i].lo <= VV_PLAIN_EXTENT_MAX);
	check_at(&f, &all, blocks * block - 1);
	vv_mem_free(all.v);
	vv_payload_blocks_fini(&f.blocks);
	vv_payload_digests_fini(&f.digests);
}

int main(void)
{
	uint64_t state = 5;
	size_t lanes = 0;

	for (int i = 0; i < ROUNDS; i++)
		lanes += check_layer(&state);
	CHECK(lanes > ROUNDS);
	one_lane(1 << 20, 20, 1);
	one_lane(VV_MAX_BLOCK, 80, 5); /* 5 GiB */
	return 0;
}
