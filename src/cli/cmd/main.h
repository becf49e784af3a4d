/* The command, whatever program it is in: varve, or varve-mpi. */
#ifndef VV_CLI_CMD_MAIN_H
#define VV_CLI_CMD_MAIN_H

#include "cli/base/command_ranks.h"

/* world: NULL where it is alone. The exit status. */
int vv_main_run(int argc, char **argv, const struct vv_command_ranks *world);

#endif
