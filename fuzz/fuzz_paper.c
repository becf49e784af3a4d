/* The input as a block of Islam 2012's coders, for several decoded lengths; and as bytes to be coded by each first pass, which must come back. */
#include "base/err.h"
#include "codec/codec.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct vv_recipe recipes[] = {
	{ .width = 8, .record = 1, .predictor = VV_PREDICT_FPC, .real = true, .level = 4 },
	{ .width = 8, .record = 1, .predictor = VV_PREDICT_FPZIP, .real = true, .coder = VV_CODEC_PAPER },
	{ .width = 4, .record = 1, .predictor = VV_PREDICT_FPZIP, .real = true, .swapped = true },
	{ .width = 1, .record = 1, .predictor = VV_PREDICT_LZ, .coder = VV_CODEC_PAPER },
	{ .width = 1, .record = 1, .predictor = VV_PREDICT_NONE, .coder = VV_CODEC_PAPER },
};

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static void *memory(size_t n)
{
	void *p = malloc(n ? n : 1);

	insist(p != NULL);
	return p;
}

static void decode(const struct vv_codec *c, const uint8_t *data, size_t size, size_t raw_len)
{
	uint8_t *to = memory(raw_len);
	int rc = c->decode(data, size, to, raw_len);

	insist(rc == 0 || rc == VV_EDAMAGED || rc == VV_ENOTSUP);
	if (rc == 0)
		insist(c->recipe(data, size).width > 0);
	free(to);
}

static void round_trip(const struct vv_codec *c, const uint8_t *data, size_t size, const struct vv_recipe *how)
{
	size_t cap = c->bound(size), n = 0;
	uint8_t *to = memory(cap), *back = memory(size);

	insist(c->encode(data, size, how, to, cap, c->usual_level, &n) == 0 && (n == 0 || n < size));
	if (n)
		insist(c->decode(to, n, back, size) == 0 && memcmp(back, data, size) == 0);
	free(to);
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct vv_codec *c = vv_codec_numbered(VV_CODEC_PAPER);

	insist(c != NULL);
	/* the length that the block claims itself, and others */
	if (size > 5)
		decode(c, data, size, data[4] < 128 ? data[4] : (data[4] & 127) | (size_t)(data[5] & 127) << 7);
	decode(c, data, size, 64);
	decode(c, data, size, 4096);
	for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++)
		round_trip(c, data, size, &recipes[i]);
	return 0;
}
