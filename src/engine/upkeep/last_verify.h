/* The result of the last verify of a whole lineage, which the lineage keeps for its reports. */
#ifndef VV_ENGINE_UPKEEP_LAST_VERIFY_H
#define VV_ENGINE_UPKEEP_LAST_VERIFY_H

#include "engine/lineage/catalog.h"

struct vv_last_verify {
	uint64_t time_ns; /* 0: not known */
	uint64_t problems, epochs, newest;
};

/* A store that cannot be written keeps no result, which is no error. */
void vv_last_verify_write(const struct vv_lineage *lin, const struct vv_last_verify *r);
/* Empty if there is no result, or none that can be read. */
struct vv_last_verify vv_last_verify_read(const struct vv_lineage *lin);

#endif
