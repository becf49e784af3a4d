/* Stretches of files in memory, on their way from one rank to another that is to place them (engine/files/rank_handover.h), as a message of bytes nobody trusts. */
#ifndef VV_ENGINE_PARCEL_H
#define VV_ENGINE_PARCEL_H

#include "engine/files/file_set.h"

struct vv_parcel {
	uint64_t at, len;
	uint32_t file; /* the number that it has with its owner */
	uint32_t kind; /* the number that it has here */
};

struct vv_parcels { /* by file and place, disjoint */
	struct vv_parcel *v;
	size_t n, cap;
	uint64_t bytes; /* of all */
};

int vv_parcel_add(struct vv_parcels *p, struct vv_parcel x);

/* A message is a head, and so many bytes besides, which the cargo holds. */
int vv_parcel_put_head(const struct vv_parcels *p, const struct vv_cargo *c, struct vv_buf *out);
size_t vv_parcel_besides(const struct vv_parcels *p);
int vv_parcel_put(const struct vv_parcels *p, const struct vv_cargo *c, const struct vv_buf *head, uint8_t *out);
/* p starts empty, and is to be freed whatever comes of it; kinds that are new are the cargo's then. *bytes are in the message. VV_EPEER: it cannot be one. */
int vv_parcel_get(struct vv_parcels *p, struct vv_cargo *c, const struct vv_pack_options *opt, const uint8_t *message, size_t n, const uint8_t **bytes);

#endif
