/* The input twice: as a decoded length (u16) and a block of codec 4; and as a recipe (16 bytes), with the rest as numbers to code by it. What decodes
 * must come back by its own recipe, and what is coded must decode. */
#include "base/wire.h"
#include "codec/codec.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

/* Codes them and decodes that again. */
static void there_and_back(const struct vv_codec *c, const struct vv_recipe *how, const uint8_t *p, size_t n)
{
	size_t cap = c->bound(n), got = 0;
	uint8_t *coded = malloc(cap), *back = malloc(n ? n : 1), *exact;

	insist(coded && back);
	insist(c->encode(p, n, how, coded, cap, 1, &got) == 0 && (got == 0 || got < n));
	if (got) {
		exact = malloc(got);
		insist(exact != NULL);
		memcpy(exact, coded, got);
		insist(c->decode(exact, got, back, n) == 0 && memcmp(back, p, n) == 0);
		free(exact);
	}
	free(coded);
	free(back);
}

static void as_block(const struct vv_codec *c, const uint8_t *p, size_t n, size_t raw_len)
{
	struct vv_recipe how = c->recipe(p, n);
	uint8_t *raw = malloc(raw_len ? raw_len : 1);

	insist(raw != NULL);
	if (c->decode(p, n, raw, raw_len) == 0) {
		how.level = 1;
		there_and_back(c, &how, raw, raw_len);
	}
	free(raw);
}

static void as_numbers(const struct vv_codec *c, const uint8_t *data, size_t size)
{
	struct vv_wire w = vv_wire_over(data, size);
	struct vv_recipe how = { .level = 1 };
	unsigned flags;

	how.width = vv_wire_u8(&w);
	how.record = vv_wire_u16(&w);
	how.predictor = vv_wire_u8(&w);
	flags = vv_wire_u8(&w);
	how.real = flags & 1;
	how.swapped = flags >> 1 & 1;
	how.coder = flags >> 2 & 3;
	how.n_strides = flags >> 4 & 3;
	how.window = vv_wire_u8(&w) % 20;
	for (unsigned k = 0; k < VV_RECIPE_STRIDES; k++)
		how.stride[k] = vv_wire_u16(&w);
	(void)vv_wire_u32(&w);
	if (!w.bad)
		there_and_back(c, &how, w.p, vv_wire_left(&w));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct vv_codec *c = vv_codec_numbered(VV_CODEC_TYPED);

	insist(c != NULL);
	if (size >= 2)
		as_block(c, data + 2, size - 2, (size_t)(data[0] | data[1] << 8));
	as_numbers(c, data, size);
	return 0;
}
