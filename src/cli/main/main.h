/* The command, common to the programs varve and varve-mpi. */
#ifndef VV_CLI_MAIN_MAIN_H
#define VV_CLI_MAIN_MAIN_H

#include "cli/base/verb_context.h"

/* world: NULL if the process is alone. Returns the exit status. */
int vv_main_run(int argc, char **argv, const struct vv_command_ranks *world);

/* The table of verbs: the row i, or NULL after the last one. */
const struct vv_cmd *vv_main_verb(size_t i);
int vv_main_find(const char *name, const struct vv_cmd **out);

#endif
