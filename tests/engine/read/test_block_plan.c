/* Ranges of a payload, cut at the borders of blocks that hold extents with gaps; and one sentence for positions in no block. */
#include "base/err.h"
#include "engine/read/block_plan.h"
#include "vv_test.h"
#include <string.h>

enum { BLOCK = 100 };

/* Block 0: positions 0..100. Block 1: 100..140 and 160..220; 140..160 is gone. Block 2, coded: 220..320. */
static void make_blocks(struct vv_layer_file *f)
{
	struct vv_blocks *b = &f->blocks;

	CHECK(vv_payload_extent_add(&b->extent, 0, 100, 0) == 0);
	CHECK(vv_payload_block_add(b, 0, BLOCK, BLOCK, 0) == 0);
	CHECK(vv_payload_extent_add(&b->extent, 100, 40, 0) == 0);
	CHECK(vv_payload_extent_add(&b->extent, 160, 60, 0) == 0);
	CHECK(vv_payload_block_add(b, 0, BLOCK, BLOCK, 0) == 0);
	CHECK(vv_payload_extent_add(&b->extent, 220, 100, 0) == 0);
	CHECK(vv_payload_block_add(b, 1, BLOCK, 50, 0) == 0);
}

static bool is_part(const struct vv_part *p, uint64_t pos, uint64_t at, uint32_t from, uint32_t len)
{
	return p->pos == pos && p->at == at && p->from == from && p->len == len;
}

/* Ranges come in any order, and overlap. */
static void group_parts(struct vv_layer_file *f)
{
	struct vv_block_plan p = { .file = f };

	CHECK(vv_block_plan_add(&p, 170, 100, (struct vv_part){ .at = 1000, .region = 7 }) == 0);
	CHECK(vv_block_plan_add(&p, 90, 50, (struct vv_part){ .at = 5000, .region = 8 }) == 0);
	CHECK(vv_block_plan_add(&p, 10, 20, (struct vv_part){ .at = 0, .region = 9 }) == 0);
	CHECK(vv_block_plan_group(&p) == 0);
	CHECK(p.n == 5 && p.end[0] == 2 && p.end[1] == 4 && p.end[2] == 5);
	CHECK(is_part(&p.part[0], 10, 0, 10, 20) && p.part[0].region == 9);
	CHECK(is_part(&p.part[1], 90, 5000, 90, 10) && p.part[1].region == 8);
	CHECK(is_part(&p.part[2], 100, 5010, 0, 40) && p.part[2].region == 8);
	CHECK(is_part(&p.part[3], 170, 1000, 50, 50) && p.part[3].region == 7);
	CHECK(is_part(&p.part[4], 220, 1050, 0, 50) && p.part[4].region == 7);
	CHECK(p.spare == 70 + 10);
	vv_block_plan_fini(&p);
}

static void cut_to_memory(struct vv_layer_file *f)
{
	struct vv_block_plan p = { .file = f };
	uint8_t to[60];

	CHECK(vv_block_plan_add(&p, 70, 60, (struct vv_part){ .to = to, .region = VV_PART_MEMORY }) == 0);
	CHECK(vv_block_plan_group(&p) == 0);
	CHECK(p.n == 2 && p.part[0].to == to && p.part[1].to == to + 30);
	vv_block_plan_fini(&p);
}

static void find_no_block(struct vv_layer_file *f)
{
	const uint64_t start[] = { 130, 320, UINT64_MAX - 5 };
	const char *bad[] = { "position 140 ", "position 320 ", "position 18446744073709551610 " };

	for (size_t i = 0; i < 3; i++) {
		struct vv_block_plan p = { .file = f };

		CHECK(vv_block_plan_add(&p, start[i], 20, (struct vv_part){ .region = 0 }) == VV_EDAMAGED);
		CHECK(strstr(vv_err_last(), bad[i]) && strstr(vv_err_last(), "in no block"));
		CHECK(strstr(vv_err_last(), "'dir:/s/layer-of-it'"));
		vv_block_plan_fini(&p);
	}
}

int main(void)
{
	struct vv_layer_file f = { .url = "dir:/s", .object = "layer-of-it" };

	make_blocks(&f);
	group_parts(&f);
	cut_to_memory(&f);
	find_no_block(&f);
	vv_payload_blocks_fini(&f.blocks);
	return 0;
}
