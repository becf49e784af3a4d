/* Tables of runs laid over each other: a layer over its parents. */
#ifndef VV_CORE_FORMAT_OVERLAY_H
#define VV_CORE_FORMAT_OVERLAY_H

#include "base/parallel_for.h"
#include "core/format/run.h"
#include <stdbool.h>

/* What the tables say, the uppermost first; out starts empty. *gaps: before the end there are bytes of which none says anything. */
int vv_overlay_runs(const struct vv_runs *const *table, size_t n, const struct vv_parallel_for *loop, struct vv_runs *out, bool *gaps);

#endif
