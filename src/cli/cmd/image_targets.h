/* Which processes a rank is to save: --pid with one for each rank, or all for a command alone; or --pid-file, with the rank's number in its name. */
#ifndef VV_CLI_WHOM_H
#define VV_CLI_WHOM_H

#include "cli/base/verb_context.h"
#include <sys/types.h>

struct vv_whom {
	pid_t *pid;
	size_t n, cap; /* n = 0: none was named */
};

/* To be freed whatever comes of it. */
int vv_whom_get(const struct vv_job *job, struct vv_whom *out);
void vv_whom_fini(struct vv_whom *w);

#endif
