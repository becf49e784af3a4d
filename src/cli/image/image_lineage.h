/* The lineage of images after a failed verb: advice about its other epochs, and its removal if it
 * has none. */
#ifndef VV_CLI_IMAGE_IMAGE_LINEAGE_H
#define VV_CLI_IMAGE_IMAGE_LINEAGE_H

#include "cli/base/verb_context.h"

/* After a restore of an epoch that failed with rc: for damage, the message also names the newest
 * intact older epoch. To find it, all the data that the epoch needs is read. */
int vv_image_lineage_advise(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, int rc);
/* Removes a lineage without epochs from the store, unless a process is writing it. */
void vv_image_lineage_tidy(struct vv_verb_context *job, const char *url, const char *lineage);

#endif
