/* The input thrice: as a decoded length (u16) and a block of codec 7, whose base is made of the same bytes; as a match in that base; and as a section of bases for two blocks. What
 * decodes must come back when it is coded again, and a section that is taken has one form only. */
#include "base/wire.h"
#include "codec/delta.h"
#include "core/format/digest.h"
#include "core/format/payload.h"
#include <stdlib.h>
#include <string.h>

enum { CHECK = 8, HEADER = 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static void *copy(const void *p, size_t n)
{
	void *exact = malloc(n ? n : 1);

	insist(exact != NULL);
	memcpy(exact, p, n);
	return exact;
}

static void there_and_back(uint8_t bits, const uint8_t *x, const uint8_t *base, size_t n)
{
	struct vv_delta how = { .op = bits >> 4 & 1 ? VV_DELTA_MATCH : bits & 1, .width = (uint8_t)(1u << (bits >> 1 & 3)), .swapped = bits >> 3 & 1 };
	size_t cap = vv_delta_bound(n), got = 0;
	uint8_t *room = copy(base, n), *to = malloc(cap ? cap : 1), *back = malloc(n ? n : 1);

	how.recipe = (struct vv_recipe){ .width = how.width, .record = 1, .coder = VV_CODEC_ZSTD, .level = 1 };
	insist(to && back);
	insist(vv_delta_encode(&how, x, n, room, n, to, cap, &got) == 0 && (got == 0 || got < n));
	insist(!got || (vv_delta_decode(to, got, base, n, back, n) == 0 && memcmp(back, x, n) == 0));
	free(room);
	free(to);
	free(back);
}

static void as_block(const uint8_t *p, size_t size, size_t n)
{
	uint8_t *base = malloc(n ? n : 1), *x = malloc(n ? n : 1), *exact = copy(p, size);
	uint64_t check;

	insist(base && x);
	for (size_t i = 0; i < n; i++)
		base[i] = size ? p[i % size] : 0;
	/* no fuzzer finds a check: the first attempt leaves the bytes that it should be of */
	memset(x, 0, n);
	if (vv_delta_decode(exact, size, base, n, x, n) < 0 && size >= HEADER) {
		check = vv_digest_check(x, n);
		for (size_t i = 0; i < CHECK; i++)
			exact[i] = (uint8_t)(check >> 8 * i);
	}
	if (vv_delta_decode(exact, size, base, n, x, n) == 0)
		there_and_back(exact[CHECK], x, base, n);
	free(base);
	free(x);
	free(exact);
}

/* A frame of any bytes gives some block or an error; a match of the input in a part of itself comes back. */
static void as_match(const uint8_t *p, size_t size, size_t n)
{
	static const struct vv_delta how = { .op = VV_DELTA_MATCH, .width = 1, .recipe = { .width = 1, .level = 3 } };
	size_t n_base = size / 2, cap = vv_delta_bound(size), got = 0;
	uint8_t *base = copy(p, n_base), *to = malloc(cap ? cap : 1), *x = malloc(n ? n : 1), *back = malloc(size ? size : 1);
	uint8_t *frame = malloc(size + HEADER);

	insist(base && to && x && back && frame);
	memset(frame, 0, HEADER);
	frame[CHECK] = 1 << 4;
	frame[CHECK + 1] = VV_CODEC_ZSTD;
	memcpy(frame + HEADER, p, size);
	(void)vv_delta_decode(frame, size + HEADER, base, n_base, x, n);
	insist(vv_delta_encode(&how, p, size, base, n_base, to, cap, &got) == 0 && (got == 0 || got < size));
	insist(!got || (vv_delta_decode(to, got, base, n_base, back, size) == 0 && memcmp(back, p, size) == 0));
	free(base);
	free(to);
	free(x);
	free(back);
	free(frame);
}

static void as_section(const uint8_t *p, size_t size)
{
	struct vv_block block[2] = { { .codec = VV_CODEC_DELTA, .raw_len = 8 }, { .codec = VV_CODEC_DELTA, .raw_len = 1 << 20 } };
	const struct vv_blocks blocks = { .v = block, .n = 2 };
	struct vv_delta_bases b = { 0 };
	struct vv_buf again = { 0 };
	uint8_t *exact = copy(p, size);

	if (vv_delta_bases_get(&b, exact, size, &blocks, VV_CODEC_DELTA, 1000) == 0) {
		vv_delta_bases_put(&b, &again);
		insist(again.n == size && memcmp(again.p, p, size) == 0);
	}
	vv_delta_bases_fini(&b);
	vv_buf_fini(&again);
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 2)
		as_match(data + 2, size - 2, (size_t)(data[0] | data[1] << 8));
	if (size >= 2)
		as_block(data + 2, size - 2, (size_t)(data[0] | data[1] << 8));
	as_section(data, size);
	return 0;
}
