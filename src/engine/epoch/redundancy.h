/* The options redundancy and failure-domain, for ranks that have stores of their own. Parity of
 * each epoch is made after the commit. Lost layers are made again when a session begins. */
#ifndef VV_ENGINE_EPOCH_REDUNDANCY_H
#define VV_ENGINE_EPOCH_REDUNDANCY_H

#include "engine/ranks/parity_ranks.h"
#include <stdatomic.h>

struct varve;

enum { VV_REDUNDANCY_TRIES = 3 }; /* for parity: after so many failures in a row no epoch has to get it any more */

struct vv_redundancy {
	struct vv_parity_domains domains; /* k = 0: no parity is made */
	bool asked; /* whether parity of new epochs can be complete: */
	bool base;  /* all that they refer to has parity, or gets it */
	bool pending; /* an epoch was committed, and its parity was not tried yet */
	uint64_t newest_at_open;
	struct { /* committed epochs without parity, ascending; the same on all ranks */
		uint64_t epoch[VV_REDUNDANCY_TRIES];
		size_t n;
	} todo;
	unsigned failures; /* since parity was last complete */
	bool wants_full;   /* the next epoch is to be such a one */
	_Atomic uint64_t epoch; /* the newest protected one; 0: none */
	uint64_t spared; /* retention keeps this one until a newer one is protected; 0: none */
	struct vv_parity_report lost; /* objects that could not be made again */
	bool scanned;      /* all stores were read in search of damage */
};

/* Reads the options. */
int vv_redundancy_configure(struct varve *v);
/* For opening, when the stores of the ranks are known: brings lost layers back. */
int vv_redundancy_open(struct varve *v);
void vv_redundancy_close(struct varve *v);
/* An epoch was committed. */
void vv_redundancy_note(struct varve *v, uint64_t epoch);
/* Makes the parity of all committed epochs that lack it. All ranks call this after each commit: on
 * the thread that stores epochs, or in the next call that all ranks make. A failure is a
 * warning. */
void vv_redundancy_run(struct varve *v);
/* Before a checkpoint, by all ranks: an epoch that refers to unprotected layers would not be
 * protected. So it begins a new era, if it must. */
int vv_redundancy_prepare(struct varve *v, int rc);
/* After gc, by all ranks: bytes of this store's layers under parity, and the part that is needed.
 * If the needed part of all ranks is less than half, the next epoch refers to no older layer. Then
 * gc can remove those. */
int vv_redundancy_limit(struct varve *v, int rc, uint64_t bytes, uint64_t needed);
/* Another epoch is continued, or none: by all ranks, before the index is read. */
int vv_redundancy_ask(struct varve *v, uint64_t parent);
void vv_redundancy_ask_again(struct varve *v);
/* A restart has found an epoch damaged. Looks for damage in all objects and repairs it. *repaired:
 * the epoch can be tried again. */
int vv_redundancy_repair(struct varve *v, uint64_t epoch, bool *repaired);
/* Retention drops neither this epoch nor newer ones. 0: no such limit. */
uint64_t vv_redundancy_spared(const struct varve *v);
/* Adds to the error of an epoch that cannot be restored the reason why nothing was brought back. */
int vv_redundancy_explain(const struct varve *v, uint64_t epoch, int rc);

#endif
