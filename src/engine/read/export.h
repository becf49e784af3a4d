/* Writes a region's bytes to a file descriptor: raw, or as NumPy's .npy. */
#ifndef VV_ENGINE_READ_EXPORT_H
#define VV_ENGINE_READ_EXPORT_H

#include "base/pool.h"
#include "base/progress.h"
#include "engine/lineage/run_table.h"

/* Untyped regions become arrays of u1 in .npy. */
int vv_export_region(const struct vv_lineage *lin, const struct vv_run_table_region *r, struct vv_pool *pool, int fd,
		     bool npy, const struct vv_progress *progress);

/* For other writers of arrays. Writes all bytes, or fails. */
int vv_export_write(int fd, const uint8_t *p, size_t n);
int vv_export_npy_header(int fd, const char *descr, bool columns, unsigned ndim, const uint64_t *dim);
enum { VV_EXPORT_NPY = 18 << 10 }; /* bytes of a header, at most: 128 fields of 63 characters */
/* The same for a region, into memory; returns the length. A region without a type is an array of
 * u1. */
size_t vv_export_npy_shape(const struct vv_shape *s, uint8_t out[VV_EXPORT_NPY]);
const char *vv_export_npy_type(unsigned type); /* "<f8" */

#endif
