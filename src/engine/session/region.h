/* Regions: the calls that declare and release memory. */
#ifndef VV_ENGINE_SESSION_REGION_H
#define VV_ENGINE_SESSION_REGION_H

#include "engine/context.h"

/* Declares a region in a public call, which is named in errors. part may be NULL. */
int vv_region_protect(struct varve *v, const char *call, const char *name, void *p, const struct vv_shape *s, const struct vv_distribution *part);
/* The shape of an array with that type and those lengths. */
int vv_region_shape(const char *call, const char *name, enum varve_type type, int ndim, const size_t *shape, struct vv_shape *out);

void vv_region_free(struct vv_region *r);

#endif
