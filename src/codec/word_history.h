/* The description of words by earlier words, shared by word_history.c and word_history_back.c.
 * docs/packing.md. */
#ifndef VV_CODEC_WORD_HISTORY_H
#define VV_CODEC_WORD_HISTORY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	VV_WORD_HISTORY_WORD = 8,        /* bytes */
	VV_WORD_HISTORY_DIFFERENCES = 7, /* that are remembered, the last one first */
	VV_WORD_HISTORY_CLOSE = 3,       /* bytes of a stored difference */
};

/* The description of a word. From 1 to VV_WORD_HISTORY_DIFFERENCES: the word before it on its
 * trail, plus that one of the last differences. */
enum { VV_WORD_HISTORY_SAME = 0, VV_WORD_HISTORY_AGAIN = VV_WORD_HISTORY_DIFFERENCES + 1, VV_WORD_HISTORY_NEAR, VV_WORD_HISTORY_NEW };

static inline uint64_t vv_word_history_word(const uint8_t *p, size_t i)
{
	uint64_t w;

	memcpy(&w, p + VV_WORD_HISTORY_WORD * i, VV_WORD_HISTORY_WORD);
	return w;
}

/* Moves a difference to the front, from its place; a new one drops the oldest. */
static inline void vv_word_history_push(uint64_t *last, unsigned from, uint64_t difference)
{
	for (unsigned k = from < VV_WORD_HISTORY_DIFFERENCES ? from : VV_WORD_HISTORY_DIFFERENCES - 1; k > 0; k--)
		last[k] = last[k - 1];
	last[0] = difference;
}

/* Decompresses into exactly raw_len bytes. */
int vv_word_history_back_decode(const void *from, size_t n, void *to, size_t raw_len);
size_t vv_word_history_back_takes(size_t n, size_t raw_len);

#endif
