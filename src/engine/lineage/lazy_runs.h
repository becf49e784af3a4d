/* The tables of a head that are read when they are needed, a part of them at a time, by whichever thread needs it first: so bytes are on their way
 * before two million runs have been looked at. */
#ifndef VV_ENGINE_LINEAGE_LAZY_RUNS_H
#define VV_ENGINE_LINEAGE_LAZY_RUNS_H

#include "base/pool.h"
#include "core/format/run_wire.h"

struct vv_lazy_runs;

/* Begins to read the runs of h's regions, as vv_run_wire_begin does. The head and the bytes stay where they are. */
int vv_lazy_runs_new(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, struct vv_pool *pool, struct vv_lazy_runs **out);
void vv_lazy_runs_free(struct vv_lazy_runs *r); /* NULL is fine */
/* The layers that the runs of all regions name. */
size_t vv_lazy_runs_sources(const struct vv_lazy_runs *r, const uint64_t **out);
/* By any thread: those of a region's runs that speak of at..end, and some more. False: something is wrong with them, and end will say what. */
bool vv_lazy_runs_find(struct vv_lazy_runs *r, size_t region, uint64_t at, uint64_t end, struct vv_runs *out);
/* All runs are there, or it is said what is wrong with them. Nobody looks meanwhile. */
int vv_lazy_runs_finish(struct vv_lazy_runs *r, struct vv_pool *pool);

#endif
