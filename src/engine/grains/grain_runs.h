/* Turns the pieces found in grains into run tables. */
#ifndef VV_ENGINE_GRAINS_GRAIN_RUNS_H
#define VV_ENGINE_GRAINS_GRAIN_RUNS_H

#include "engine/grains/grain_sets.h"

/* The new data is placed. Adds the runs of each region in grains to the layer's head: those of its
 * changes. If the layer refers to no parent, those of the complete region. */
int vv_grain_runs_add(struct vv_layer_writer *p);
/* The epoch is accepted, or abandoned. */
void vv_grain_runs_accept(struct vv_layer_writer *p);
void vv_grain_runs_abandon(struct vv_layer_writer *p);
/* Adds the runs of `len` bytes of `from` at `at` to out, at offset `to`. */
int vv_grain_runs_transfer(const struct vv_runs *from, uint64_t at, uint64_t len, uint64_t to, struct vv_runs *out);
/* Notes that shared_runs holds the bytes at..end of the data of the set's last ordinal. Takes a
 * reference to shared_runs. */
int vv_grain_runs_place(struct vv_set *s, uint64_t at, uint64_t end, struct vv_shared_runs *shared_runs);
/* Forgets the locations of this ordinal and of later ones. */
void vv_grain_runs_forget_locations(struct vv_set *s, uint32_t ordinal);

#endif
