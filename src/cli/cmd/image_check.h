/* varve image check: what could not be saved. */
#ifndef VV_CLI_CMD_IMAGE_CHECK_H
#define VV_CLI_CMD_IMAGE_CHECK_H

#include "cli/base/verb_context.h"

/* Words behind the verb are for criu's command line. 1: there is something. */
int vv_image_check_run(struct vv_verb_context *job);

#endif
