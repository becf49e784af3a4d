/* A restart from an epoch that another number of ranks wrote, or the same number with other
 * parts. */
#ifndef VV_ENGINE_SESSION_REDISTRIBUTE_H
#define VV_ENGINE_SESSION_REDISTRIBUTE_H

#include "engine/context.h"

/* Does a region of the session differ from that of the table in its part of the state? */
bool vv_redistribute_has_moved(const struct varve *v, const struct vv_run_table *t);
/* Fills the regions from an epoch of `ranks` ranks. All ranks call this. Each part is filled from
 * the stored parts that overlap it. */
int vv_redistribute_read(struct varve *v, uint64_t epoch, uint32_t ranks);
/* The items of a list in an epoch of `ranks` ranks: of all ranks, and of rank v->ctx.rank there or
 * an even share. All ranks call this. */
int vv_redistribute_list(struct varve *v, uint64_t epoch, uint32_t ranks, const char *name, uint64_t *share, uint64_t *total);

#endif
