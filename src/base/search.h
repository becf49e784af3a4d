/* Search by halves. */
#ifndef VV_BASE_SEARCH_H
#define VV_BASE_SEARCH_H

#include <stddef.h>

/* Makes i the first of the numbers lo..hi-1 that is not `before` what is looked for, or hi; all that are come first. `before` is asked with i. */
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
