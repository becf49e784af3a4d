/* Run tables of a head that are read on demand. The first thread that needs a part reads it. So
 * reading of data begins before two million runs have been read. */
#ifndef VV_ENGINE_LINEAGE_LAZY_RUNS_H
#define VV_ENGINE_LINEAGE_LAZY_RUNS_H

#include "base/pool.h"
#include "core/format/run_wire.h"

struct vv_lazy_runs;

/* Begins to read the runs of h's regions, like vv_run_wire_begin. The head and the bytes must stay
 * valid and in place. */
int vv_lazy_runs_new(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, struct vv_pool *pool, struct vv_lazy_runs **out);
void vv_lazy_runs_free(struct vv_lazy_runs *r); /* accepts NULL */
/* The layers that the runs of all regions refer to. */
size_t vv_lazy_runs_sources(const struct vv_lazy_runs *r, const uint64_t **out);
/* Finds the runs of a region for at..end, and perhaps some more. Any thread may call it. Returns
 * false if the runs are damaged. vv_lazy_runs_finish then reports the error. */
bool vv_lazy_runs_find(struct vv_lazy_runs *r, size_t region, uint64_t at, uint64_t end, struct vv_runs *out);
/* Reads all remaining runs, or reports the damage. No other thread may use r meanwhile. */
int vv_lazy_runs_finish(struct vv_lazy_runs *r, struct vv_pool *pool);

#endif
