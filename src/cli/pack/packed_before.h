/* The files that a lineage holds from earlier packing. */
#ifndef VV_CLI_PACK_PACKED_BEFORE_H
#define VV_CLI_PACK_PACKED_BEFORE_H

#include "cli/base/verb_context.h"
#include "engine/files/unpack.h"
#include <stdatomic.h>
#include <sys/stat.h>

/* Calls fn for each epoch of files, the oldest first, until *stop is set (NULL: it never is).
 * Epochs without files, and damaged epochs, are skipped; a missing store or lineage has none. The
 * function opens the store and the pool of the job. With `lock`, no other process drops or adds
 * epochs in the meantime; VV_EBUSY: a process does. */
int vv_packed_before_each(struct vv_verb_context *job, const char *lineage, bool lock, const atomic_bool *stop, int (*fn)(void *arg, const struct vv_unpack *u), void *arg);
/* Is it the packed file, by its size and time of modification? */
bool vv_packed_before_is(const struct vv_unpack_file *f, uint64_t len, struct timespec mtime);

#endif
