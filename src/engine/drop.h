/* Taking an epoch out of a lineage: its commit record goes, and with it the epoch. Others may still need its layers, so
 * those stay until gc. */
#ifndef VV_ENGINE_DROP_H
#define VV_ENGINE_DROP_H

#include "engine/lineage/catalog.h"

/* *bytes (may be NULL) gets the length of its layers when they were written. A damaged record is dropped too. */
int vv_drop_epoch(const struct vv_lineage *lin, uint64_t epoch, uint64_t *bytes);

#endif
