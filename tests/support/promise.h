/* "It never loses an epoch", as a check: what must hold of a store after anything that can happen to a run. A promise
 * that is broken ends the program with the words in `when`. */
#ifndef VV_TEST_PROMISE_H
#define VV_TEST_PROMISE_H

#include "support/script.h"

struct promise {
	const struct script *script;
	const char *store;
	const char *options;
	const struct script_log *log;
	/* May an epoch be there that the run did not live to see? It must then be whole. */
	bool newer;
	char when[200];
};

/* Every epoch in the store is one that was reported, the last reported one is there (or a newer one), all of them
 * restore exactly, verify finds nothing; and a next checkpoint works, restores, and leaves no more than is to be kept. */
void promise_check(const struct promise *p);
/* The same without the next checkpoint: the store is only read, and may be in use. */
void promise_check_epochs(const struct promise *p);
/* How many epochs the store lists. */
size_t promise_epochs(const char *store);
/* How many of its layers continue another. */
size_t promise_deltas(const char *store);

#endif
