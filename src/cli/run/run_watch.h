/* A program that is looked after: told to checkpoint, brought back when it dies, ended when we are told to end. */
#ifndef VV_CLI_RUN_RUN_WATCH_H
#define VV_CLI_RUN_RUN_WATCH_H

#include "cli/run/run_plan.h"

/* From now on signals to the program wait until there is one. Those that end a command at the terminal still do. Before there are threads. */
void vv_run_watch_prepare(void);
/* Until it ends well, has died too often, or was to end. The exit status, or an error if it could not be started. */
int vv_run_watch(const struct vv_run_plan *plan);

#endif
