/* Binary search. */
#ifndef VV_BASE_SEARCH_H
#define VV_BASE_SEARCH_H

#include <stddef.h>

/* Sets i to the first of the numbers lo..hi-1 for which `before` is false, or to hi. The numbers
 * for which it is true must come first. `before` is an expression in i. */
#define VV_SEARCH(i, lo, hi, before)                            \
	do {                                                    \
		size_t search_lo = (lo), search_hi = (hi);      \
                                                                \
		while (search_lo < search_hi) {                 \
			i = search_lo + (search_hi - search_lo) / 2; \
			if (before)                             \
				search_lo = i + 1;              \
			else                                    \
				search_hi = i;                  \
		}                                               \
		i = search_lo;                                  \
	} while (0)

#endif
