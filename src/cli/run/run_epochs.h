/* The lineage that the program writes, seen from the supervisor, which does not change its epochs.
 * The lineage need not exist yet. */
#ifndef VV_CLI_RUN_RUN_EPOCHS_H
#define VV_CLI_RUN_RUN_EPOCHS_H

#include "cli/run/run_plan.h"

struct vv_run_epochs {
	const struct vv_run_plan *plan;
	struct vv_lineage lin;
	bool open;
};

/* Creates the store if it does not exist; returns an error if the store cannot be created or
 * written. */
int vv_run_epochs_make_store(struct vv_run_epochs *e);
/* VV_ENOENT if the epoch does not exist. */
int vv_run_epochs_check(struct vv_run_epochs *e, uint64_t epoch);
/* Replaces words such as a label by the number of an existing epoch; VV_ENOENT if there is none. */
int vv_run_epochs_look_up(struct vv_run_epochs *e, struct vv_spec *spec);
/* The newest epoch below `before`; 0: there is none. */
int vv_run_epochs_newest(struct vv_run_epochs *e, uint64_t before, uint64_t *epoch);
/* The newest intact epoch below `before`: all the data that it needs is read. */
int vv_run_epochs_newest_intact(struct vv_run_epochs *e, uint64_t before, uint64_t *epoch);
/* The bytes of memory that the epoch holds, and the length of its layers. */
int vv_run_epochs_size(struct vv_run_epochs *e, uint64_t epoch, uint64_t *memory, uint64_t *stored);
/* The program has ended successfully: its present epochs are not continued later, unless that is
 * requested. */
int vv_run_epochs_end(struct vv_run_epochs *e);
/* Has the program ended successfully, with no epoch written since? *epoch: the newest; 0: no. */
int vv_run_epochs_ended(struct vv_run_epochs *e, uint64_t *epoch);
/* The process that writes the lineage now: returns 1, or 0 if there is none, as far as is known. */
int vv_run_epochs_holder(struct vv_run_epochs *e, struct vv_lock_holder *out);
/* Waits until no process writes the lineage; VV_EBUSY names the process that does. */
int vv_run_epochs_await(struct vv_run_epochs *e, double patience);

#endif
