/* A restart brings back the epochs that the nearest store, the session's own, has lost, or reads
 * them from a tier. Each function does nothing if the session has no tiers. All ranks call them
 * together. */
#ifndef VV_ENGINE_TIERS_TIERS_RESTART_H
#define VV_ENGINE_TIERS_TIERS_RESTART_H

#include <stdbool.h>
#include <stdint.h>

struct varve;

/* Before the newest epoch is looked for. VV_EIO: a tier cannot be reached, and may have a newer one
 * than the nearest store. */
int vv_tiers_restart_ask(struct varve *v);
/* Raises *epoch to the newest epoch below `before` that a tier has. */
int vv_tiers_restart_newest(struct varve *v, uint64_t before, uint64_t *epoch);
/* Copies the epoch to the nearest store if that lacks it. Returns 1 if it was copied. VV_ENOENT: no
 * store has it. *lacks: the nearest store cannot take it, or ranks with stores of their own have
 * none; a tier may. */
int vv_tiers_restart_fetch(struct varve *v, uint64_t epoch, bool *lacks);
/* The nearest store lacks the epoch, or has it damaged: `why` is the error. Calls `read` with each
 * tier that has the epoch, in place of that store, until one is intact. The caller sees to it that
 * the next checkpoint refers to nothing in the tier. */
int vv_tiers_restart_read(struct varve *v, uint64_t epoch, int why, int (*read)(struct varve *v, uint64_t epoch, void *arg), void *arg);
/* Is that call under way? */
bool vv_tiers_restart_is_reading(const struct varve *v);

#endif
