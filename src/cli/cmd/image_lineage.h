/* The lineage of images, when a verb has failed: what can be done with what it holds, and nothing of it where it holds nothing. */
#ifndef VV_CLI_CMD_IMAGE_LINEAGE_H
#define VV_CLI_CMD_IMAGE_LINEAGE_H

#include "cli/base/verb_context.h"

/* After a restore of an epoch that failed with rc: if that is for damage, the message goes on with the newest older epoch that is whole, for which all
 * that it needs is read. */
int vv_image_lineage_advise(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, int rc);
/* A lineage that holds no epoch is taken out of the store again, unless somebody writes it. */
void vv_image_lineage_tidy(struct vv_verb_context *job, const char *url, const char *lineage);

#endif
