/* The supervision of a program: it is asked for checkpoints, restarted when it dies, and ended when
 * the supervisor is to end. */
#ifndef VV_CLI_RUN_RUN_WATCH_H
#define VV_CLI_RUN_RUN_WATCH_H

#include "cli/run/run_plan.h"

/* From now on signals for the program wait until there is one. Signals that end a command at the
 * terminal still do. It must be called before there are threads. */
void vv_run_watch_prepare(void);
/* Runs until the program ends successfully, has died too often, or was to end. Returns the exit
 * status, or an error if the program could not be started. */
int vv_run_watch(const struct vv_run_plan *plan);

#endif
