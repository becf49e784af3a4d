/* Few grains that repeat many times, as in an array of ones or of equal structures. One run for
 * each period would take too much space. So some pages of periods are added to the new data once,
 * and runs refer to these pages. */
#ifndef VV_ENGINE_GRAINS_REPEATS_H
#define VV_ENGINE_GRAINS_REPEATS_H

#include "engine/grains/grain_sets.h"

/* Call it after a set's pass. Adds pages for long repetitions with short periods. */
int vv_repeats_find(struct vv_layer_writer *p, struct vv_set *s);
/* Adds the runs of the piece to `out`, from `at` on, as far as complete repeats reach. *done:
 * bytes; 0 if it has no repeat. */
int vv_repeats_emit(const struct vv_layer_writer *p, const struct vv_set *s, size_t piece, uint64_t at, struct vv_runs *out, uint64_t *done);

#endif
