/* The text to learn: sentences that a seed draws. */
#ifndef TEXT_H
#define TEXT_H

#include "numbers.h"

enum { TEXT = 1 << 16, CHARS = 30 };

static const char ALPHABET[CHARS + 1] = " abcdefghijklmnopqrstuvwxyz.,\n";

static const char *const WORDS[5][8] = {
	{ "the", "a", "one", "that", "this", "every", "another", "no" },
	{ "small", "old", "quiet", "green", "slow", "brave", "hungry", "wise" },
	{ "fox", "owl", "river", "sailor", "child", "gardener", "storm", "horse" },
	{ "sees", "follows", "forgets", "finds", "carries", "hears", "paints", "awaits" },
	{ "at dawn", "in the rain", "by the sea", "at night", "in winter", "on the hill", "again", "alone" },
};

/* Numbers of characters in the alphabet. */
static inline void draw_text(uint64_t seed, uint8_t text[TEXT])
{
	static const int SENTENCE[] = { 0, 1, 2, 3, 0, 2, 4 };
	size_t n = 0;

	for (uint64_t word = 0; n < TEXT; word++) {
		int part = (int)(word % 7), comma = part == 6 && random_bits(seed, word) % 2;
		const char *w = WORDS[SENTENCE[part]][random_bits(seed, word) / 2 % 8];
		char chars[32];

		snprintf(chars, sizeof(chars), "%s%s", w, part < 6 ? " " : comma ? ", " : ".\n");
		for (const char *c = chars; *c && n < TEXT; c++)
			text[n++] = (uint8_t)(strchr(ALPHABET, *c) - ALPHABET);
	}
}

#endif
