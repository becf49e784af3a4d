/* `varve run --rehearse N`: does a restart bring back all of the program's state? */
#ifndef VV_CLI_RUN_RUN_REHEARSE_H
#define VV_CLI_RUN_RUN_REHEARSE_H

#include "cli/run/run_plan.h"

/* Runs the program twice undisturbed, to epoch 2N + 1, and once more, stopped after epoch N + 1 and
 * started again. Compares the epochs after that, region by region. The exit status: 0 if they are
 * the same, 1 if not; or an error. */
int vv_run_rehearse(const struct vv_run_plan *plan);

#endif
