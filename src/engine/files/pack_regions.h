/* The bill of lading: packed files as the regions of their layer. */
#ifndef VV_ENGINE_LADING_H
#define VV_ENGINE_LADING_H

#include "engine/files/file_set.h"
#include "engine/write/layer_writer.h"

/* A region for each file, with its runs, and one for the manifest; takes over the runs of all. */
int vv_lading_write(struct vv_cargo *c, struct vv_runs *manifest, size_t manifest_len, size_t chunk, struct vv_pass *p);

#endif
