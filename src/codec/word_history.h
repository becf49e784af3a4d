/* What word_history.c and word_history_back.c share: how words are told by others. docs/packing.md. */
#ifndef VV_CODEC_TRAIL_H
#define VV_CODEC_TRAIL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	VV_TRAIL_WORD = 8,        /* bytes */
	VV_TRAIL_DIFFERENCES = 7, /* that are remembered, the last one first */
	VV_TRAIL_CLOSE = 3,       /* bytes of a difference that is told */
};

/* What is told of a word. From 1 to VV_TRAIL_DIFFERENCES: the one before it on its trail, plus that one of the last differences. */
enum { VV_TRAIL_SAME = 0, VV_TRAIL_AGAIN = VV_TRAIL_DIFFERENCES + 1, VV_TRAIL_NEAR, VV_TRAIL_NEW };

static inline uint64_t vv_trail_word(const uint8_t *p, size_t i)
{
	uint64_t w;

	memcpy(&w, p + VV_TRAIL_WORD * i, VV_TRAIL_WORD);
	return w;
}

/* To the front, from where it was; what is new drops the oldest. */
static inline void vv_trail_push(uint64_t *last, unsigned from, uint64_t difference)
{
	for (unsigned k = from < VV_TRAIL_DIFFERENCES ? from : VV_TRAIL_DIFFERENCES - 1; k > 0; k--)
		last[k] = last[k - 1];
	last[0] = difference;
}

/* Decodes into exactly raw_len bytes. */
int vv_trail_back_decode(const void *from, size_t n, void *to, size_t raw_len);
size_t vv_trail_back_takes(size_t n, size_t raw_len);

#endif
