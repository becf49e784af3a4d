/* The tip of the session: the epoch that the next checkpoint continues, and its state. */
#ifndef VV_ENGINE_EPOCH_TIP_H
#define VV_ENGINE_EPOCH_TIP_H

#include "engine/write/layer_writer.h"

/* For opening: finds the newest epoch of the lineage, and removes temporary files of dead
 * writers. */
int vv_tip_find_newest(struct varve *v, const char *lineage);
/* The next checkpoint continues `epoch`. Takes ownership of the table's content. */
void vv_tip_continue(struct varve *v, uint64_t epoch, struct vv_run_table *table);
/* The table that a single rank has read in a restart from this epoch. NULL: the table, or the eras
 * of its layers, are not in memory any more. */
struct vv_run_table *vv_tip_table(const struct varve *v, uint64_t epoch);
/* Moves that table to out. Without vv_tip_continue after it, the next checkpoint reads it again. */
bool vv_tip_take_table(struct varve *v, uint64_t epoch, struct vv_run_table *out);
/* The epoch just accepted is rejected after all. The next one continues `epoch` as it is in the
 * store. */
void vv_tip_step_back(struct varve *v, uint64_t epoch);
/* The next epoch continues the content of `epoch`, but none of its layers: they belong to other
 * parts of the state. */
void vv_tip_begin_after(struct varve *v, uint64_t epoch);
/* The parent that the next commit record names; 0: none. */
uint64_t vv_tip_parent(const struct varve *v);
/* The store differs from the session's knowledge. The next epoch refers to nothing in the store and
 * begins a new era. */
void vv_tip_begin_era(struct varve *v);
/* Layers written from now on belong to another era (core/format/era_table.h), since some earlier
 * layers are gone. The new token is computed from the old one, so that it is the same on all
 * ranks. */
void vv_tip_new_era(struct varve *v);

/* The index names no layers of epochs below this one. For an index that is read later. */
void vv_tip_refer_from(struct varve *v, uint64_t epoch);
/* For opening: the numbers in use so far are known, and the session's era begins. */
void vv_tip_open(struct varve *v);
/* For opening with many ranks: they have agreed on the newest epoch, the highest number and one
 * token. */
void vv_tip_agree(struct varve *v, uint64_t epoch, uint64_t highest);
void vv_tip_set_token(struct varve *v, uint64_t token);
/* Before each epoch: all ranks agree on its number. */
int vv_tip_agree_on_numbers(struct varve *v);
/* Returns the number of a new epoch. */
uint64_t vv_tip_next_number(struct varve *v);

/* The next checkpoint continues no epoch. */
void vv_tip_continue_none(struct varve *v);
/* v->tip.table has been loaded. */
void vv_tip_loaded(struct varve *v);
/* The regions adopt the loaded table: depth and cost of the chain follow from it. */
void vv_tip_adopt(struct varve *v);
/* Ranks with local stores have compared them (done), or must compare them again. Mixed: some stores
 * belong to another copy of the lineage. */
void vv_tip_compared(struct varve *v, bool done);
void vv_tip_is_mixed(struct varve *v);

/* Is reading the chain more expensive than reading a full table? A delta is cheaper to write, a
 * keyframe cheaper to restart from. */
bool vv_tip_wants_keyframe(const struct varve *v);
/* The epoch is stored and becomes the tip. */
void vv_tip_accept(const struct vv_layer_writer *p);
/* The epoch failed: its record and this rank's layer are removed. */
void vv_tip_fail(struct varve *v, uint64_t epoch);
/* The epoch failed, and its record could not be removed yet. */
bool vv_tip_has_failed(const struct varve *v, uint64_t epoch);
/* Before each epoch: tries again to remove records of failed epochs. */
void vv_tip_sweep(struct varve *v);

#endif
