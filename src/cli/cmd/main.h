/* The command, common to the programs varve and varve-mpi. */
#ifndef VV_CLI_CMD_MAIN_H
#define VV_CLI_CMD_MAIN_H

#include "cli/base/command_ranks.h"

/* world: NULL if the process is alone. Returns the exit status. */
int vv_main_run(int argc, char **argv, const struct vv_command_ranks *world);

#endif
