/* Resolves paths of variables through the links of a file. */
#ifndef VV_READER_RESOLVE_H
#define VV_READER_RESOLVE_H

#include "reader/reader.h"

enum { VV_RESOLVE_PATH = 4096 };

/* The path from the root, without links and empty steps. VV_ENOENT: it leads into another file, or
 * in a circle. */
int vv_resolve_path(const struct vv_outline *o, const char *name, char out[VV_RESOLVE_PATH]);

#endif
