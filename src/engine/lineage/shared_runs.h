/* Runs with several owners, which do not change. A table is long, and later epochs may copy from
 * the runs of the last epoch. */
#ifndef VV_ENGINE_LINEAGE_SHARED_RUNS_H
#define VV_ENGINE_LINEAGE_SHARED_RUNS_H

#include "core/format/run.h"
#include <stdatomic.h>

struct vv_shared_runs {
	/* After a restart they may be set later (vv_run_table_merge). All readers wait for that. */
	struct vv_runs runs;
	atomic_size_t refs;
};

/* Returns an object with one reference and no runs. Its creator may write it until it is shared.
 * NULL: no memory. */
struct vv_shared_runs *vv_shared_runs_new(void);
struct vv_shared_runs *vv_shared_runs_ref(struct vv_shared_runs *s);
/* Accepts NULL. */
void vv_shared_runs_unref(struct vv_shared_runs *s);

#endif
