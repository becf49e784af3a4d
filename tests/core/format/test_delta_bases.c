/* The section of bases: what is put comes back, in one form only; hostile lists are refused. */
#include "base/err.h"
#include "core/format/delta_bases.h"
#include "core/format/payload.h"
#include "support/gen.h"
#include "vv_test.h"
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 300, BLOCKS = 20, CODEC = 7, EPOCH = 900, MOST = 4 * 8 + (4 << 20) /* of a block of 8 bytes */ };

/* A byte of a long number. */
#define LOW(n, shift) (((n) >> (shift) & 127) | 128)

static struct vv_block block[BLOCKS];
static struct vv_blocks blocks = { .v = block };

/* Some blocks, of which some have bases. */
static void make(uint64_t *state, struct vv_delta_bases *b)
{
	size_t any = gen_below(state, BLOCKS);

	blocks.n = BLOCKS;
	for (size_t i = 0; i < BLOCKS; i++) {
		struct vv_delta_base v[VV_DELTA_BASES_EXTENTS];
		size_t n = 1 + gen_below(state, gen_below(state, 4) ? 4 : VV_DELTA_BASES_EXTENTS);

		block[i] = (struct vv_block){ .codec = i == any || gen_below(state, 2) ? CODEC : 4 };
		for (size_t k = 0; k < n; k++) {
			v[k] = (struct vv_delta_base){ gen_below(state, 5) ? 1 + gen_below(state, EPOCH - 1) : 0, 0, 1 + gen_below(state, 5000) };
			v[k].pos = v[k].epoch ? gen_below(state, 1ull << (1 + gen_below(state, 39))) : 0;
			block[i].raw_len += (uint32_t)v[k].len;
		}
		if (block[i].codec == CODEC)
			CHECK_EQ(vv_delta_bases_add(b, i, v, n), 0);
	}
}

static int get(struct vv_delta_bases *b, const uint8_t *p, size_t n, uint64_t epoch)
{
	uint8_t *exact = malloc(n ? n : 1);
	int rc;

	CHECK(exact);
	memcpy(exact, p, n);
	rc = vv_delta_bases_get(b, exact, n, &blocks, CODEC, epoch);
	free(exact);
	return rc;
}

static int refused(const uint8_t *p, size_t n, uint64_t epoch)
{
	struct vv_delta_bases b = { 0 };
	int rc = get(&b, p, n, epoch);

	vv_delta_bases_fini(&b);
	return rc;
}

static void there_and_back(uint64_t *state)
{
	struct vv_delta_bases b = { 0 }, got = { 0 };
	struct vv_buf bytes = { 0 };
	size_t n = 0;

	make(state, &b);
	vv_delta_bases_put(&b, &bytes);
	CHECK_EQ(get(&got, bytes.p, bytes.n, EPOCH), 0);
	CHECK(got.n == b.n && got.n_blocks == b.n_blocks);
	for (size_t i = 0; i < b.n; i++)
		CHECK(got.v[i].epoch == b.v[i].epoch && got.v[i].pos == b.v[i].pos && got.v[i].len == b.v[i].len);
	for (size_t i = 0; i < BLOCKS; i++)
		CHECK((vv_delta_bases_of(&got, i, &n) != NULL) == (block[i].codec == CODEC));
	for (size_t cut = 0; cut < bytes.n; cut += 1 + gen_below(state, 9))
		CHECK_EQ(refused(bytes.p, cut, EPOCH), VV_EDAMAGED);
	vv_buf_add(&bytes, "", 1);
	CHECK_EQ(refused(bytes.p, bytes.n, EPOCH), VV_EDAMAGED);
	if (b.n && bytes.p[0]) /* of the same epoch, or a newer one */
		CHECK_EQ(refused(bytes.p, bytes.n - 1, 1), VV_EDAMAGED);
	CHECK_EQ(vv_delta_bases_get(&(struct vv_delta_bases){ 0 }, NULL, 0, &blocks, CODEC, EPOCH), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "missing") != NULL);
	vv_delta_bases_fini(&b);
	vv_delta_bases_fini(&got);
	vv_buf_fini(&bytes);
}

/* Whatever is taken is put again as it was. */
static void rubbish(uint64_t *state)
{
	struct vv_delta_bases b = { 0 };
	struct vv_buf again = { 0 };
	uint8_t p[40];
	size_t n = gen_below(state, sizeof(p));

	blocks.n = 2;
	block[0] = (struct vv_block){ .codec = CODEC, .raw_len = (uint32_t)(1 + gen_below(state, 8)) };
	block[1] = (struct vv_block){ .codec = CODEC, .raw_len = (uint32_t)(1 + gen_below(state, 8)) };
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)gen_below(state, gen_below(state, 9) ? 4 : 256);
	if (get(&b, p, n, EPOCH) == 0) {
		vv_delta_bases_put(&b, &again);
		CHECK(again.n == n && memcmp(again.p, p, n) == 0);
		for (size_t i = 0; i < b.n; i++)
			CHECK(b.v[i].epoch < EPOCH && b.v[i].len >= 1);
	}
	vv_delta_bases_fini(&b);
	vv_buf_fini(&again);
}

static void hostile(void)
{
	/* epochs; then for each block: bases, each with epoch, length and position */
	static const struct {
		uint8_t p[24];
		size_t n;
		int rc;
	} list[] = {
		{ { 1, 5, 1, 1, 8, 0 }, 6, 0 },
		{ { 1, 5, 1, 1, 8, 1 }, 6, VV_EDAMAGED },                     /* before position 0 */
		{ { 1, 0, 1, 1, 8, 0 }, 6, VV_EDAMAGED },                     /* epoch 0 */
		{ { 1, 5, 1, 0, 8 }, 5, VV_EDAMAGED },                        /* an epoch that nothing is of */
		{ { 0, 1, 0, 8 }, 4, 0 },                                     /* zeros */
		{ { 0, 1, 1, 8, 0 }, 5, VV_EDAMAGED },                        /* no such epoch */
		{ { 0, 0 }, 2, VV_EDAMAGED },                                 /* no bases */
		{ { 0, 1, 0, 7 }, 4, 0 },                                     /* shorter, */
		{ { 0, 1, 0, 9 }, 4, 0 },                                     /* or longer than the block: for matches */
		{ { 0, 1, 0, LOW(MOST, 0), LOW(MOST, 7), LOW(MOST, 14), MOST >> 21 }, 7, 0 },
		{ { 0, 1, 0, LOW(MOST + 1, 0), LOW(MOST + 1, 7), LOW(MOST + 1, 14), MOST >> 21 }, 7, VV_EDAMAGED }, /* too long */
		{ { 0, 2, 0, 8, 0, 0 }, 6, VV_EDAMAGED },                     /* a length of 0 */
		{ { 0, 65, 0, 8 }, 4, VV_EDAMAGED },                          /* too many */
		{ { 1, 5, 1, 1, 8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1 }, 15, VV_EDAMAGED },
		{ { 1, 5, 1, 1, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 }, 15, VV_EDAMAGED },
	};

	blocks.n = 1;
	block[0] = (struct vv_block){ .codec = CODEC, .raw_len = 8 };
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		CHECK_EQ(refused(list[i].p, list[i].n, EPOCH), list[i].rc);
	CHECK_EQ(refused(list[0].p, list[0].n, 5), VV_EDAMAGED); /* of its own epoch: a cycle */
	block[0].codec = 4;
	CHECK_EQ(refused(list[4].p, list[4].n, EPOCH), VV_EDAMAGED); /* no block needs any */
}

int main(void)
{
	uint64_t state = 3;

	hostile();
	for (int i = 0; i < ROUNDS; i++) {
		there_and_back(&state);
		for (int k = 0; k < 50; k++)
			rubbish(&state);
	}
	return 0;
}
