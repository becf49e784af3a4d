/* What zstd -3 makes of a series: each state alone, or with the one before as its dictionary (--patch-from). As the command does it, to the
 * byte. */
#ifndef VV_BENCH_DELTA_H
#define VV_BENCH_DELTA_H

#include "series.h"

struct bench_delta { /* of all states but the first */
	uint64_t original, bytes;
	double seconds; /* to encode them, the least of the rounds */
};

/* Every state is decoded and compared. false: this build has no zstd. */
bool bench_delta(const struct bench_series *s, int n, bool patch, int rounds, struct bench_delta *out);

#endif
