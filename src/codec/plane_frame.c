#include "codec/plane_frame.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/context_pool.h"
#include "codec/zstd.h"
#include <string.h>

enum {
	LEAST_MATCH = 7,
	WORDS = 3, WORDS_MOST = 9, /* levels */
	BLOCK = 128 << 10,  /* of zstd: each has codes of its own */
	WORD = 4, STEP = 16, /* a word in each step is counted, */
	ALL = 16 << 10,     /* and all words of a shorter block */
	ONE = 256,          /* unit of logarithms, and so of bits */
	FREE = 64,          /* at level 1, a gain of one part in so many is too little */
};

static bool is_plane(const struct vv_recipe *how)
{
	return how->width > 1 || how->record > 1;
}

/* Bytes of a plane recur by chance, a few at a time. Searching for short matches takes longer, and
 * describing them takes as many bytes as it saves. */
static unsigned least_match(const struct vv_recipe *how)
{
	return how->level == 1 && is_plane(how) ? LEAST_MATCH : 0;
}

/* Bytes that get more effort than numbers, and describe the numbers: names and the structure of
 * files. */
static bool is_words(const struct vv_recipe *how)
{
	return how->width == 1 && how->record == 1 && how->level > WORDS && how->level <= WORDS_MOST && !how->window;
}

int vv_plane_frame_quick(const uint8_t *p, size_t n, const struct vv_recipe *how, uint8_t *to, size_t cap, size_t *out)
{
	const struct vv_codec *c;
	const struct vv_zstd_how zstd = { .level = how->level, .window = how->window, .least = least_match(how), .little = is_words(how) };

	if (how->coder == VV_CODEC_ZSTD)
		return vv_zstd_encode(p, n, to, cap, &zstd, out);
	c = vv_codec_numbered(how->coder);
	*out = 0;
	return c ? c->encode(p, n, NULL, to, cap, how->level, out) : 0;
}

/* In integers: the same bytes on every processor. The error is below 1 %. */
static unsigned log_of(unsigned n)
{
	unsigned whole = 31 - (unsigned)__builtin_clz(n), part = (unsigned)((uint64_t)n * ONE >> whole) - ONE;

	return whole * ONE + part + part * (ONE - part) * 88 / (ONE * ONE);
}

/* About the bytes of a block in Huffman codes, with their table. A code has a bit at least. */
static size_t huffman_block(const uint8_t *p, size_t n)
{
	uint32_t count[WORD][256] = { 0 }, counted = 0;
	uint64_t bits = 0, values = 0;

	for (size_t i = 0; i + WORD <= n; i += n < ALL ? WORD : STEP, counted += WORD)
		for (size_t k = 0; k < WORD; k++)
			count[k][p[i + k]]++;
	for (size_t v = 0; counted && v < 256; v++) {
		uint32_t all = count[0][v] + count[1][v] + count[2][v] + count[3][v];
		unsigned code = all ? log_of(counted) - log_of(all) : 0;

		bits += (uint64_t)all * (code > ONE ? code : ONE);
		values += all != 0;
	}
	return counted ? (size_t)(bits * n / counted / ONE / 8 + values / 2) : n;
}

static size_t huffman_size(const uint8_t *p, size_t n)
{
	size_t sum = 0;

	for (size_t at = 0; at < n; at += BLOCK)
		sum += huffman_block(p + at, n - at < BLOCK ? n - at : BLOCK);
	return sum;
}

/* Keeps the smaller frame; *got is the size of the one before, 0: none. */
static int retry(const uint8_t *p, size_t n, const struct vv_zstd_how *how, uint8_t *to, size_t cap, size_t *got)
{
	size_t most = *got ? *got - 1 : cap, less = 0;
	uint8_t *room = vv_context_pool_room(most);
	int rc = room ? vv_zstd_encode(p, n, room, most, how, &less) : VV_ENOMEM;

	if (rc == 0 && less) {
		memcpy(to, room, less);
		*got = less;
	}
	vv_context_pool_room_back(room);
	return rc;
}

int vv_plane_frame_encode(const uint8_t *p, size_t n, const struct vv_recipe *how, uint8_t *to, size_t cap, size_t *out)
{
	int rc = vv_plane_frame_quick(p, n, how, to, cap, out);
	size_t most = *out ? *out : cap < n ? cap : n;

	if (rc || how->coder != VV_CODEC_ZSTD || how->window || !is_plane(how))
		return rc;
	if (how->level > 1)
		rc = retry(p, n, &(struct vv_zstd_how){ .level = 1, .least = LEAST_MATCH }, to, cap, out);
	if (rc == 0 && huffman_size(p, n) < most - (how->level > 1 ? 0 : most / FREE))
		rc = retry(p, n, &(struct vv_zstd_how){ .level = 1, .literals = true }, to, cap, out);
	return rc;
}
