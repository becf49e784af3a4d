/* Runs that several have and nobody changes: a table is long, and what the memory held in the last epoch is also where later ones may copy from. */
#ifndef VV_ENGINE_SHEET_H
#define VV_ENGINE_SHEET_H

#include "core/format/run.h"
#include <stdatomic.h>

struct vv_sheet {
	struct vv_runs runs; /* of a restart they may come after the sheet (vv_table_settle): all who look wait for that */
	atomic_size_t holders;
};

/* One holder, and no runs: nobody else has it yet, and it may be written. NULL: no memory. */
struct vv_sheet *vv_sheet_new(void);
struct vv_sheet *vv_sheet_hold(struct vv_sheet *s);
/* NULL is fine. */
void vv_sheet_drop(struct vv_sheet *s);

#endif
