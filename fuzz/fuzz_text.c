/* The input as a block of codec 8 behind a base, where the first byte says how much of it is the base; and as a text to be coded behind that base, which must come back. What it was
 * coded to is a block again, of which the second byte changes a bit. */
#include "base/err.h"
#include "codec/codec.h"
#include <stdlib.h>
#include <string.h>

enum { HEAD = 2, FENCE = 16, LONGEST = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static uint8_t *room(size_t n)
{
	uint8_t *p = malloc(n ? n : 1);

	insist(p != NULL);
	return p;
}

static int decode(const uint8_t *base, size_t n_base, const uint8_t *coded, size_t n, size_t raw_len, const uint8_t *want)
{
	uint8_t *exact = room(n), *raw = room(raw_len + FENCE);
	int rc;

	if (n)
		memcpy(exact, coded, n);
	memset(raw + raw_len, 0x5a, FENCE);
	rc = vv_codec_numbered(VV_CODEC_TEXT)->decode_after(base, n_base, exact, n, raw, raw_len);
	insist(rc == 0 || rc == VV_EDAMAGED || rc == VV_ENOTSUP || rc == VV_ENOMEM);
	for (size_t i = 0; i < FENCE; i++)
		insist(raw[raw_len + i] == 0x5a);
	insist(rc || !want || memcmp(raw, want, raw_len) == 0);
	free(exact);
	free(raw);
	return rc;
}

static void there_and_back(const uint8_t *base, size_t n_base, const uint8_t *p, size_t n, uint8_t change)
{
	const struct vv_codec *c = vv_codec_numbered(VV_CODEC_TEXT);
	size_t cap = c->bound(n), got = 0;
	uint8_t *coded = room(cap);

	insist(c->encode_after(base, n_base, p, n, coded, cap, 1, &got) == 0 && (got == 0 || got < n));
	if (got) {
		insist(decode(base, n_base, coded, got, n, p) == 0);
		coded[change % got] ^= (uint8_t)(1u << change % 8);
		(void)decode(base, n_base, coded, got, n, NULL);
	}
	free(coded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n_base;

	if (size < HEAD)
		return 0;
	n_base = (size - HEAD) * data[0] / 256;
	for (size_t base = 0; base <= n_base; base += n_base ? n_base : 1) {
		(void)decode(data + HEAD, base, data + HEAD + base, size - HEAD - base, (size_t)data[1] * LONGEST / 256, NULL);
		there_and_back(data + HEAD, base, data + HEAD + base, size - HEAD - base, data[1]);
	}
	return 0;
}
