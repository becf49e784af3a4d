/* The same few grains over and over, as in an array of ones, or of equal structures: a run for each would be more than the array deserves. A few pages of
 * them are put into the stream once, and runs are pages. */
#ifndef VV_ENGINE_GRAINS_REPEATS_H
#define VV_ENGINE_GRAINS_REPEATS_H

#include "engine/grains/grain_sets.h"

/* After a set's pass: for long repetitions of what is short. */
int vv_repeats_find(struct vv_layer_writer *p, struct vv_set *s);
/* The piece, from `at` on in `out`, as far as whole echoes go; *done: bytes. Nothing if it has no echo. */
int vv_repeats_emit(const struct vv_layer_writer *p, const struct vv_set *s, size_t piece, uint64_t at, struct vv_runs *out, uint64_t *done);

#endif
