/* Text as tokens: each is a prefix and possibly a decimal number. A prefix and the format of its
 * number are an entry of a dictionary. So a token is the number of an entry and an integer. Tokens
 * are counted in each line: those at one place are a column. docs/format.md, codec 8. */
#ifndef VV_CODEC_TEXT_TOKENS_H
#define VV_CODEC_TEXT_TOKENS_H

#include "base/wire.h"

enum {
	VV_TEXT_ENTRIES = 4096, /* of a dictionary, at most */
	VV_TEXT_COLUMNS = 256,  /* the last one has all further tokens of a line */
	VV_TEXT_PREFIX = 255,   /* bytes, at most */
	VV_TEXT_DIGITS = 18,    /* of a number, at most */
	VV_TEXT_LARGEST = 8 << 20, /* bytes of a text */
};

struct vv_text_entry {
	uint32_t prefix;  /* its place in the dictionary, */
	uint8_t len;      /* and its bytes */
	bool number;      /* a number follows, with */
	uint8_t decimals; /* digits after the point, */
	uint8_t zeros;    /* at least so many digits before it, */
	uint8_t field;    /* and so many bytes with the blanks before it; 0: no blanks */
};

struct vv_text_tokens {
	struct vv_text_entry entry[VV_TEXT_ENTRIES];
	size_t n_entries;
	struct vv_buf dictionary; /* as it is stored */
	uint16_t *slot;  /* of the hash table: an entry plus 1 */
	int64_t *value;  /* of each token: its number, without the point; the memory of all three */
	uint16_t *id;    /* its entry */
	uint16_t *at;    /* its place in its line, at most VV_TEXT_COLUMNS - 1 */
	size_t n;
};

/* The tokens of a text of n bytes, at most. */
static inline size_t vv_text_tokens_most(size_t n)
{
	return n / 4 * 3 + 16;
}

/* Prepares for two texts of so many bytes in all. */
int vv_text_tokens_init(struct vv_text_tokens *t, size_t bytes);
void vv_text_tokens_fini(struct vv_text_tokens *t);
/* Adds the tokens of a text, which begins a line. VV_TEXT_DIFFERS: it has too many entries or
 * tokens to be a table. */
int vv_text_tokens_scan(struct vv_text_tokens *t, const uint8_t *p, size_t n);
enum { VV_TEXT_DIFFERS = 1 };
/* Adds the entries of a stored dictionary. False: it is none. */
bool vv_text_tokens_read(struct vv_text_tokens *t, const uint8_t *p, size_t n);

/* Does a token of this entry end a line? */
static inline bool vv_text_ends_line(const struct vv_text_tokens *t, const struct vv_text_entry *e)
{
	return !e->number && e->len && t->dictionary.p[e->prefix + e->len - 1] == '\n';
}

extern const uint64_t vv_text_power[VV_TEXT_DIGITS + 1];

/* A number with another number of decimals: exact if it has more of them, else cut. */
static inline int64_t vv_text_rescale(int64_t v, unsigned from, unsigned to)
{
	if (from == to)
		return v;
	return from < to ? (int64_t)((uint64_t)v * vv_text_power[to - from]) : v / (int64_t)vv_text_power[from - to];
}

#endif
