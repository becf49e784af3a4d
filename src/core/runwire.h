/* Runs as they are stored: a layer's sections SOURCES and RUNS, docs/format.md, section 4. */
#ifndef VV_CORE_RUNWIRE_H
#define VV_CORE_RUNWIRE_H

#include "base/loop.h"
#include "core/head.h"

int vv_runwire_put(const struct vv_head *h, struct vv_buf *sources, struct vv_buf *runs);

/* The runs of h's regions. Long tables are read in parts, at once if the loop has threads; what comes out is the same. */
int vv_runwire_get(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, const struct vv_loop *loop);

#endif
