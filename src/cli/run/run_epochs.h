/* The lineage that the program writes, as seen from beside it: its epochs are not changed here. It may not be there yet. */
#ifndef VV_CLI_RUN_RUN_EPOCHS_H
#define VV_CLI_RUN_RUN_EPOCHS_H

#include "cli/run/run_plan.h"

struct vv_run_epochs {
	const struct vv_run_plan *plan;
	struct vv_lineage lin;
	bool open;
};

/* The store is made if it is not there; an error if it cannot be, or cannot be written. */
int vv_run_epochs_make_store(struct vv_run_epochs *e);
/* VV_ENOENT if the epoch is not there. */
int vv_run_epochs_check(struct vv_run_epochs *e, uint64_t epoch);
/* The newest epoch below `before`; 0: there is none. */
int vv_run_epochs_newest(struct vv_run_epochs *e, uint64_t before, uint64_t *epoch);
/* The newest one below `before` that is whole: all that it needs is read. */
int vv_run_epochs_newest_intact(struct vv_run_epochs *e, uint64_t before, uint64_t *epoch);
/* What it holds in memory, and the length of its layers. */
int vv_run_epochs_size(struct vv_run_epochs *e, uint64_t epoch, uint64_t *memory, uint64_t *stored);
/* The program has ended well: what there is now is not gone on from again, unless it is asked for. */
int vv_run_epochs_end(struct vv_run_epochs *e);
/* Had it, and has nothing been laid down since? *epoch: the newest; 0: no. */
int vv_run_epochs_ended(struct vv_run_epochs *e, uint64_t *epoch);
/* Who writes the lineage now: 1, or 0 if nobody does, as far as can be told. */
int vv_run_epochs_holder(struct vv_run_epochs *e, struct vv_lock_holder *out);
/* Waits until nobody writes the lineage any more; VV_EBUSY names who does. */
int vv_run_epochs_await(struct vv_run_epochs *e, double patience);

#endif
