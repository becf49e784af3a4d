/* A region's bytes to a file descriptor: raw, or as NumPy's .npy. */
#ifndef VV_ENGINE_EXPORT_H
#define VV_ENGINE_EXPORT_H

#include "base/pool.h"
#include "base/progress.h"
#include "engine/table.h"

/* Untyped regions become arrays of u1 in .npy. */
int vv_export_region(const struct vv_lineage *lin, const struct vv_table_region *r, struct vv_pool *pool, int fd,
		     bool npy, const struct vv_progress *progress);

#endif
