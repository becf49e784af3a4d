/* Regions: protecting memory, and the known content of the parent epoch. The caller holds the
 * session's lock. */
#ifndef VV_ENGINE_SESSION_REGION_H
#define VV_ENGINE_SESSION_REGION_H

#include "engine/context.h"

/* Declares a region in a public call, which is named in errors. part may be NULL. */
int vv_region_protect(struct varve *v, const char *call, const char *name, void *p, const struct vv_shape *s, const struct vv_distribution *part);
/* The shape of an array with that type and those lengths. */
int vv_region_shape(const char *call, const char *name, enum varve_type type, int ndim, const size_t *shape, struct vv_shape *out);

/* Finds the previous content of the regions' chunks in the parent's table. */
void vv_region_adopt_all(struct varve *v);
/* Call it after a restart and before any change. Finds content that other ranks store by its
 * digests. */
int vv_region_adopt_foreign(struct varve *v);
/* Drops the index and the chunk states that depend on it. The next checkpoint reads the index
 * again. */
void vv_region_forget(struct varve *v);
void vv_region_free(struct vv_region *r);

#endif
