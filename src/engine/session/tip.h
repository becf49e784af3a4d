/* The tip of the session: the epoch that the next checkpoint continues, and what is known of it. */
#ifndef VV_ENGINE_SESSION_TIP_H
#define VV_ENGINE_SESSION_TIP_H

#include "engine/write/layer_writer.h"

/* At the opening: finds the newest epoch of the lineage, and removes temporary files of dead writers. */
int vv_tip_find_newest(struct varve *v, const char *lineage);
/* The next checkpoint continues `epoch`. Takes the table over. */
void vv_tip_continue(struct varve *v, uint64_t epoch, struct vv_run_table *table);
/* The epoch just accepted is not committed after all: the next one continues `epoch`, as the store has it. */
void vv_tip_step_back(struct varve *v, uint64_t epoch);
/* The store is not as the session knows it: the next epoch refers to nothing in it, and begins a new era. */
void vv_tip_begin_anew(struct varve *v);
/* Layers written from now on are of another era (core/format/era_table.h): some earlier ones are gone. The token follows from the old one, so that
 * it is the same on all ranks. */
void vv_tip_new_era(struct varve *v);

/* Opening: numbers in use so far are known, and the session's era begins. */
void vv_tip_open(struct varve *v);
/* Opening, many ranks: they have agreed on the newest epoch, the highest number and one token. */
void vv_tip_agree(struct varve *v, uint64_t epoch, uint64_t highest);
void vv_tip_set_token(struct varve *v, uint64_t token);
/* Before each epoch: all ranks give it the same number. */
int vv_tip_agree_on_numbers(struct varve *v);
/* The number of a new epoch. */
uint64_t vv_tip_next_number(struct varve *v);

/* The next checkpoint continues no epoch. */
void vv_tip_continue_none(struct varve *v);
/* v->tip.table has been loaded. */
void vv_tip_loaded(struct varve *v);
/* The regions adopt the loaded table: depth and cost of the chain follow from it. */
void vv_tip_adopt(struct varve *v);
/* Many ranks with stores of their own have compared them, or must again; some belong to another copy of the lineage. */
void vv_tip_compared(struct varve *v, bool done);
void vv_tip_is_mixed(struct varve *v);

/* A delta is cheaper to write, a keyframe cheaper to restart from: is reading the chain dearer than a full table? */
bool vv_tip_wants_keyframe(const struct varve *v);
/* The epoch is stored: it is the tip now. */
void vv_tip_accept(const struct vv_layer_writer *p);
/* The epoch failed: its remains are removed, now or before the next one. */
void vv_tip_fail(struct varve *v, uint64_t epoch);
void vv_tip_sweep(struct varve *v);

#endif
