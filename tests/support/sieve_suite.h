/* What every space's sieve must do, against the model: piece by piece, byte by byte. */
#ifndef VV_TEST_SIEVE_SUITE_H
#define VV_TEST_SIEVE_SUITE_H

#include "space/space.h"

struct sieve_suite {
	const struct vv_space *space;
	struct vv_pool *pool;
	void *(*get)(size_t len); /* memory of the space */
	void (*put)(void *p);
	uint64_t seed;
	int rounds; /* of random changes, with each set of options */
	bool xxh3_only;    /* it knows no other digest */
	bool looks_at_all; /* pages that were not written, too */
};

/* Ends the program where something is not as it should be. */
void sieve_suite_run(const struct sieve_suite *s);
/* The same for one of its parts. */
void sieve_suite_shapes(const struct sieve_suite *s);   /* few and many grains, tails, zeros, flipped bits, states that come back */
void sieve_suite_regions(const struct sieve_suite *s);  /* that grow, shrink, appear, vanish and change places */
void sieve_suite_random(const struct sieve_suite *s);   /* edits, moves, insertions, fills; memory plenty and short */
void sieve_suite_failures(const struct sieve_suite *s); /* epochs that do not count */
void sieve_suite_adopted(const struct sieve_suite *s);  /* states that a session continues from */
void sieve_suite_compare(const struct sieve_suite *s);  /* contents of one digest */
void sieve_suite_maybe(const struct sieve_suite *s);    /* pages that were not written */
void sieve_suite_slices(const struct sieve_suite *s);   /* more grains than a slice has: half a GiB of memory */

#endif
