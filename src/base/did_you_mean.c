#include "base/did_you_mean.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { WORD = 32 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The number of letters to change, add, omit or swap to turn a into b: optimal string alignment,
 * over the first WORD letters. */
static size_t distance(const char *a, const char *b)
{
	size_t n = least(strlen(a), WORD), m = least(strlen(b), WORD), d[WORD + 1][WORD + 1];

	for (size_t i = 0; i <= n; i++)
		for (size_t j = 0; j <= m; j++) {
			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[n][m];
}

static bool resembles(const char *a, const char *b)
{
	size_t n = strlen(a), limit = n < 4 ? 1 : n < 8 ? 2 : 3;

	return distance(a, b) <= limit || (n >= 3 && strncmp(a, b, n) == 0);
}

const char *vv_did_you_mean_best(const char *word, const char *candidate, const char *best)
{
	return resembles(word, candidate) && (!best || distance(word, candidate) < distance(word, best)) ? candidate : best;
}
