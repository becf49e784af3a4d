/* Overlays of tables of runs: a layer over its parents. */
#ifndef VV_CORE_FORMAT_OVERLAY_H
#define VV_CORE_FORMAT_OVERLAY_H

#include "base/parallel_for.h"
#include "core/format/run.h"
#include <stdbool.h>

/* Combines the tables, the uppermost first; out starts empty. *gaps: some bytes before the end are
 * in no table. */
int vv_overlay_runs(const struct vv_runs *const *table, size_t n, const struct vv_parallel_for *loop, struct vv_runs *out, bool *gaps);

#endif
