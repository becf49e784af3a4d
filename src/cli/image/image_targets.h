/* The processes that a rank is to save: --pid with one for each rank, or all for a command alone.
 * Alternatively --pid-file, with the rank's number in its name. */
#ifndef VV_CLI_IMAGE_IMAGE_TARGETS_H
#define VV_CLI_IMAGE_IMAGE_TARGETS_H

#include "cli/base/verb_context.h"
#include <sys/types.h>

struct vv_image_targets {
	pid_t *pid;
	size_t n, cap; /* n = 0: none was named */
};

/* The caller calls fini also after a failure. */
int vv_image_targets_get(const struct vv_verb_context *job, struct vv_image_targets *out);
void vv_image_targets_fini(struct vv_image_targets *w);

#endif
