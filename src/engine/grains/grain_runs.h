/* Turns the pieces found in grains into run tables. */
#ifndef VV_ENGINE_GRAINS_GRAIN_RUNS_H
#define VV_ENGINE_GRAINS_GRAIN_RUNS_H

#include "engine/grains/grain_sets.h"

/* The stream is placed: the runs of the region's changes, or with `all` of everything. */
int vv_grain_runs_runs(struct vv_layer_writer *p, struct vv_region *r, bool all, struct vv_runs *out);
/* The epoch counts, or it does not. */
void vv_grain_runs_accept(struct vv_layer_writer *p);
void vv_grain_runs_abandon(struct vv_layer_writer *p);
/* The part of `from` at `at`, so many bytes, comes to `to` in out. */
int vv_grain_runs_transfer(const struct vv_runs *from, uint64_t at, uint64_t len, uint64_t to, struct vv_runs *out);
/* The bytes at..end of the data of the set's last ordinal lie there. The shared runs gets one holder more. */
int vv_grain_runs_place(struct vv_set *s, uint64_t at, uint64_t end, struct vv_shared_runs *shared_runs);
/* Those of this ordinal and of later ones lie nowhere. */
void vv_grain_runs_forget_locations(struct vv_set *s, uint32_t ordinal);

#endif
