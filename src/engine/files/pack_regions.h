/* Writes packed files as the regions of their layer. */
#ifndef VV_ENGINE_FILES_PACK_REGIONS_H
#define VV_ENGINE_FILES_PACK_REGIONS_H

#include "engine/files/file_set.h"
#include "engine/write/layer_writer.h"

/* Writes a region with its runs for each file, and one for the manifest. Takes ownership of all
 * runs. */
int vv_pack_regions_write(struct vv_file_set *c, struct vv_runs *manifest, size_t manifest_len, size_t chunk, struct vv_layer_writer *p);

#endif
