/* The writer's process, as far as the kernel shows it. */
#ifndef VV_CLI_TOP_TOP_PROCESS_H
#define VV_CLI_TOP_TOP_PROCESS_H

#include "cli/top/top.h"

/* Reads the kernel's data about a process. */
void vv_top_process_read(long pid, struct vv_top_process *out);
/* The value of a variable in its environment, cut to n bytes; false: there is none, or it is not
 * readable. */
bool vv_top_process_variable(long pid, const char *name, char *out, size_t n);

#endif
