/* varve image check: the resources of processes that could not be saved. */
#ifndef VV_CLI_IMAGE_IMAGE_CHECK_H
#define VV_CLI_IMAGE_IMAGE_CHECK_H

#include "cli/base/verb_context.h"

/* Words behind the verb are for criu's command line. Returns 1 if there are findings. */
int vv_image_check_run(struct vv_verb_context *job);

#endif
