/* The tip of the session: the epoch that the next checkpoint continues, and what is known of it. */
#ifndef VV_ENGINE_SESSION_TIP_H
#define VV_ENGINE_SESSION_TIP_H

#include "engine/context.h"

/* At the opening: finds the newest epoch of the lineage, and removes temporary files of dead writers. */
int vv_tip_look(struct varve *v, const char *lineage);
/* The next checkpoint continues `epoch`. Takes the table over. */
void vv_tip_continue(struct varve *v, uint64_t epoch, struct vv_run_table *table);
/* The epoch just accepted is not committed after all: the next one continues `epoch`, as the store has it. */
void vv_tip_step_back(struct varve *v, uint64_t epoch);
/* The store is not as the session knows it: the next epoch refers to nothing in it, and begins a new era. */
void vv_tip_begin_anew(struct varve *v);
/* Layers written from now on are of another era (core/format/era_table.h): some earlier ones are gone. The token follows from the old one, so that
 * it is the same on all ranks. */
void vv_tip_new_era(struct varve *v);

#endif
