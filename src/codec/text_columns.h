/* The prediction of a text's tokens, shared by text_columns.c and text_columns_back.c. A token is
 * predicted by the previous token in its column, or by the similar line of an earlier text.
 * docs/format.md, codec 8. */
#ifndef VV_CODEC_TEXT_COLUMNS_H
#define VV_CODEC_TEXT_COLUMNS_H

#include "codec/text_tokens.h"

/* in the format: the number that a number is stored as the difference to */
enum vv_text_from {
	VV_TEXT_FROM_ZERO,
	VV_TEXT_FROM_BEFORE, /* the last one in the column */
	VV_TEXT_FROM_BASE,   /* the one at its place in the base's line */
	VV_TEXT_FROMS,
};

enum { VV_TEXT_HAS_BASE = 4, VV_TEXT_PLAIN = 8 }; /* beside the coder */

struct vv_text_number {
	int64_t value;
	unsigned decimals;
};

/* The lines of the base. */
struct vv_text_lines {
	uint32_t *start; /* of each line, its first token; behind the last one, the number of tokens */
	size_t n;
};

int vv_text_columns_lines(struct vv_text_lines *l, const struct vv_text_tokens *t, size_t n_tokens);

/* Decompresses into exactly raw_len bytes; `before` may be NULL. */
int vv_text_columns_back_decode_after(const void *before, size_t n_before, const void *from, size_t n, void *to, size_t raw_len);
size_t vv_text_columns_back_takes(size_t n, size_t raw_len);

#endif
