/* Runs that several have and nobody changes: a table is long, and what the memory held in the last epoch is also where later ones may copy from. */
#ifndef VV_ENGINE_LINEAGE_SHARED_RUNS_H
#define VV_ENGINE_LINEAGE_SHARED_RUNS_H

#include "core/format/run.h"
#include <stdatomic.h>

struct vv_shared_runs {
	struct vv_runs runs; /* of a restart they may come after the shared runs (vv_run_table_merge): all who look wait for that */
	atomic_size_t refs;
};

/* One holder, and no runs: nobody else has it yet, and it may be written. NULL: no memory. */
struct vv_shared_runs *vv_shared_runs_new(void);
struct vv_shared_runs *vv_shared_runs_ref(struct vv_shared_runs *s);
/* NULL is fine. */
void vv_shared_runs_unref(struct vv_shared_runs *s);

#endif
