/* Checks a parity object of a store: its head, its end and all its blocks. */
#ifndef VV_ENGINE_UPKEEP_VERIFY_PARITY_H
#define VV_ENGINE_UPKEEP_VERIFY_PARITY_H

#include "engine/lineage/catalog.h"

/* VV_EDAMAGED, VV_ENOENT, or an error of the store. */
int vv_verify_parity_object(const struct vv_lineage *lin, const struct vv_parity_name *p);

#endif
