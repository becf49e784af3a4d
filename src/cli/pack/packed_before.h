/* What a lineage holds of files that were packed before. */
#ifndef VV_CLI_PACK_PACKED_BEFORE_H
#define VV_CLI_PACK_PACKED_BEFORE_H

#include "cli/base/verb_context.h"
#include "engine/files/unpack.h"
#include <stdatomic.h>
#include <sys/stat.h>

/* fn for each epoch of files, the oldest first, until *stop is set (NULL: it never is). Epochs that hold none, or are damaged, are passed over; so is a
 * store, or a lineage, that is not there. The store and the pool of the job are opened for it. lock: nobody
 * else drops or adds epochs meanwhile; VV_EBUSY: somebody does. */
int vv_packed_before_each(struct vv_verb_context *job, const char *lineage, bool lock, const atomic_bool *stop, int (*fn)(void *arg, const struct vv_unpack *u), void *arg);
/* Is it the file that was packed, by its size and time of modification? */
bool vv_packed_before_is(const struct vv_unpack_file *f, uint64_t len, struct timespec mtime);

#endif
