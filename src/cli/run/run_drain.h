/* Epochs that only shared memory holds (a store ram:NAME) are lost with the machine. When the
 * program has ended or died, the command copies the newest one to the first tier. */
#ifndef VV_CLI_RUN_RUN_DRAIN_H
#define VV_CLI_RUN_RUN_DRAIN_H

#include "cli/run/run_epochs.h"

/* The name of the first tier, for messages. The caller frees it. NULL: the store is not ram:, or
 * there is no tier. */
char *vv_run_drain_tier(const struct vv_run_plan *plan);
/* *epoch: the copied one; 0: the tier has it already, or there is none. */
int vv_run_drain(struct vv_run_epochs *e, const char *tier, uint64_t *epoch);

#endif
