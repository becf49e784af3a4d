/* Pieces become blocks: whatever comes in whichever order, the blocks cover the payload and the file without a gap, none that was put together is larger than it may be,
 * each has the check of its bytes, and no two neighbours could have been one. */
#include "engine/write/block_list.h"
#include "support/gen.h"
#include "vv_test.h"
#include <stdlib.h>

enum { BYTES = 1 << 20, MOST = 4096, LONGEST = 1500 };

static uint8_t payload[BYTES];

struct made { /* what was added, and how */
	size_t at, len;
	bool piece;
};

static struct made made[BYTES / 2];
static size_t n_made;

static void add(struct vv_block_list *l, size_t at, size_t len, bool piece)
{
	size_t cut = len / 3;
	struct iovec part[2] = { { payload + at, cut }, { payload + at + cut, len - cut } };

	if (piece) {
		uint64_t check = vv_block_list_check_piece(l, part, 2, len, MOST);

		CHECK_EQ(vv_block_list_add_piece(l, len, check), 0);
	} else {
		CHECK_EQ(vv_block_list_add(l, 3, len, len / 2 + 1, 77), 0);
	}
	made[n_made++] = (struct made){ at, len, piece };
}

/* The pieces that a block is made of, from `first` on. */
static size_t expected(size_t first, size_t *len)
{
	size_t i = first;

	*len = made[i++].len;
	if (!made[first].piece)
		return i;
	for (; i < n_made && made[i].piece && *len + made[i].len <= MOST; i++)
		*len += made[i].len;
	return i;
}

static void check(const struct vv_block_list *l)
{
	const struct vv_blocks *b = &l->blocks;
	uint64_t off = 0, pos = 0;
	size_t next = 0, k = 0;

	for (; next < n_made; k++) {
		size_t first = next, len;

		next = expected(first, &len);
		CHECK(k < b->n);
		CHECK_EQ(b->v[k].raw_len, len);
		CHECK_EQ(b->v[k].off, off);
		CHECK_EQ(b->v[k].n_extents, 1);
		CHECK(b->extent.v[b->v[k].extent].pos == pos && b->extent.v[b->v[k].extent].len == len);
		CHECK_EQ(b->v[k].codec, made[first].piece ? 0 : 3);
		CHECK_EQ(b->v[k].check, made[first].piece ? vv_digest_check(payload + pos, len) : 77);
		CHECK_EQ(b->v[k].stored_len, made[first].piece ? len : len / 2 + 1);
		off += b->v[k].stored_len;
		pos += len;
	}
	CHECK_EQ(k, b->n);
	CHECK_EQ(l->pos, pos);
}

int main(void)
{
	uint64_t state = 3;

	for (size_t i = 0; i < BYTES; i++)
		payload[i] = (uint8_t)gen_next(&state);
	for (int round = 0; round < 20; round++) {
		uint8_t *room = calloc(1, sizeof(struct vv_block_list) + 64);
		struct vv_block_list *l = (struct vv_block_list *)(void *)(room + round % 8 * 8); /* wherever it lies */
		size_t at = 0;

		n_made = 0;
		while (at < BYTES) {
			size_t len = 1 + (size_t)gen_below(&state, round % 4 ? LONGEST : 2 * MOST);

			len = len < BYTES - at ? len : BYTES - at;
			add(l, at, len, gen_below(&state, 10) < (uint64_t)round);
			at += len;
		}
		check(l);
		vv_block_list_fini(l);
		free(room);
	}
	return 0;
}
