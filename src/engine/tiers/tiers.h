/* The tiers of a session: further stores of its lineage, by the option `tiers`. Threads copy
 * committed epochs there. Each function does nothing if the session has no tiers. */
#ifndef VV_ENGINE_TIERS_TIERS_H
#define VV_ENGINE_TIERS_TIERS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct varve;
struct vv_tier;
struct vv_tiers;

/* Reads the option. url: the nearest store. */
int vv_tiers_open(struct varve *v, const char *url);
/* Under the lock of the nearest store, before the lineage is opened there. If that store lacks the
 * lineage, it takes the record of the nearest tier that has one. VV_EIO: the store has no epoch,
 * and a tier that might have some cannot be reached. */
int vv_tiers_adopt(struct varve *v, const char *lineage);
/* The same error, for ranks with stores of their own, once it is known whether any of those has an
 * epoch. A tier that cannot be reached is a warning otherwise. */
int vv_tiers_check_reached(const struct varve *v, bool has_epochs);
/* The highest number that a tier uses; 0: none. */
uint64_t vv_tiers_highest(const struct varve *v);
/* The session is open: an epoch that an earlier session has not copied is copied now. All ranks
 * call it together. */
void vv_tiers_start(struct varve *v);
/* The epoch is committed. Does nothing for ranks with stores of their own: vv_tiers_ranks_plan
 * does. */
void vv_tiers_offer(struct varve *v, uint64_t epoch);
/* Must the nearest store keep the epoch, because it is being copied or is to be copied next? */
bool vv_tiers_needs(struct varve *v, uint64_t epoch);
/* For closing: the last epoch is due, for tiers that want it. Waits for the copies that are due, at
 * most for the time of the option `timeout`. together: all ranks call it. */
void vv_tiers_finish(struct varve *v, bool together);
/* For commands that write one epoch: the close of the session does not make it due. The settings
 * `every` and `mtbf` still count. */
void vv_tiers_ignore_last(struct varve *v);
/* Ends the threads, except in a child of fork, where they do not exist. */
void vv_tiers_free(struct varve *v);

/* Calls fn with the store of each tier and the newest epoch known to be there. */
void vv_tiers_each(struct varve *v, void (*fn)(void *arg, const char *url, uint64_t newest), void *arg);

/* ---- for tiers_ranks.c and tiers_restart.c: engine/tiers/tiers_priv.h ---- */

struct vv_tiers *vv_tiers_of(const struct varve *v); /* NULL: the session has none */
/* Tiers are stores that all ranks share. Rank 0 looks for epochs there; the others learn the
 * result. */
bool vv_tiers_is_rank_0(const struct varve *v);
int vv_tiers_agree(struct varve *v, int rc);
/* Has each rank, or each machine, a nearest store of its own? Then their leaders copy. */
bool vv_tiers_nearest_is_local(const struct varve *v);
bool vv_tiers_rank_copies(const struct varve *v); /* this rank copies */
/* Opens the store of the tier, which is made if it does not exist. */
int vv_tiers_make_store(struct vv_tier *r);
/* The lock of the fields marked so in tiers_priv.h. As in background.c: no handler of the program
 * runs meanwhile. */
void vv_tiers_lock(struct vv_tiers *t, sigset_t *mask);
void vv_tiers_unlock(struct vv_tiers *t, const sigset_t *mask);
/* Starts the thread if an epoch is due, and lets one that has failed be tried again. The caller
 * holds the lock. */
void vv_tiers_wake(struct vv_tier *r);
/* The caller holds the lock. */
bool vv_tiers_is_due(const struct vv_tier *r, uint64_t epoch);
/* Opens the store and the lineage as far as they exist. */
int vv_tiers_open_lineage(struct vv_tier *r, const char *name);
/* Looks for the lineage and its newest epoch below `before`. The result is an error only if there
 * is no memory; r->trouble has others. */
int vv_tiers_look(struct vv_tier *r, const char *name, uint64_t before, uint64_t *newest);

#endif
