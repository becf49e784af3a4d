/* `varve run --rehearse N`: does a restart restore all of the program's state? */
#ifndef VV_CLI_RUN_RUN_REHEARSE_H
#define VV_CLI_RUN_RUN_REHEARSE_H

#include "cli/run/run_plan.h"

/* Runs the program twice undisturbed, to epoch 2N + 1, and once more, stopped after epoch N + 1 and
 * restarted. Compares the later epochs, region by region. Returns the exit status, 0 if they are
 * the same and 1 if not, or an error. */
int vv_run_rehearse(const struct vv_run_plan *plan);

#endif
