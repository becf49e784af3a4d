/* The input as a block of each codec, for the decoded length that its first bytes say (u24): it decodes into exactly that, or not at all. And as bytes to be coded by
 * each, which must come back; what they were coded to is a block again, of which the same first bytes change a few. */
#include "base/err.h"
#include "codec/codec.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 3, LONGEST = 1 << 20, FENCE = 16 };

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static uint8_t *room(size_t n)
{
	uint8_t *p = malloc(n + 1);

	insist(p != NULL);
	return p;
}

static void as_block(const struct vv_codec *c, const uint8_t *p, size_t n, size_t raw_len)
{
	uint8_t *raw = room(raw_len + FENCE);
	int rc;

	memset(raw + raw_len, 0x5a, FENCE);
	rc = c->decode(p, n, raw, raw_len);
	insist(rc == 0 || rc == VV_EDAMAGED || rc == VV_ENOTSUP || rc == VV_ENOMEM);
	for (size_t i = 0; i < FENCE; i++)
		insist(raw[raw_len + i] == 0x5a);
	free(raw);
}

/* The bytes are by themselves, so that a sanitizer sees the first that is read behind them. */
static void as_changed(const struct vv_codec *c, const uint8_t *coded, size_t n, uint32_t seed, size_t raw_len)
{
	uint8_t *p = malloc(n);

	insist(p != NULL);
	memcpy(p, coded, n);
	for (unsigned i = 0; i <= seed % 3; i++) {
		seed = seed * 1664525 + 1013904223;
		p[(seed >> 8) % n] ^= (uint8_t)(1u << (seed >> 5) % 8);
	}
	as_block(c, p, n, raw_len);
	free(p);
}

static void there_and_back(const struct vv_codec *c, const uint8_t *p, size_t n, uint32_t seed)
{
	size_t cap = c->bound(n), got = 0;
	uint8_t *coded = room(cap), *back = room(n);

	insist(c->encode(p, n, NULL, coded, cap, c->usual_level, &got) == 0 && (got == 0 || got < n));
	if (got) {
		insist(c->decode(coded, got, back, n) == 0 && memcmp(back, p, n) == 0);
		as_changed(c, coded, got, seed, n);
	}
	free(coded);
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t head;

	if (size < HEAD)
		return 0;
	head = data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16;
	for (const struct vv_codec *const *c = vv_codec_all(); *c; c++) {
		as_block(*c, data + HEAD, size - HEAD, head % LONGEST);
		there_and_back(*c, data + HEAD, size - HEAD, head);
	}
	return 0;
}
