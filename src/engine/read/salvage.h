/* Reading what can be read: where engine/read/restore.c gives up at the first damage, this goes on and tells what is bad, chunk by
 * chunk. Slow, and of use only where there is another copy. */
#ifndef VV_ENGINE_READ_SALVAGE_H
#define VV_ENGINE_READ_SALVAGE_H

#include "base/err.h"
#include "engine/lineage/catalog.h"

struct vv_salvage_need { /* bytes pos..pos+len of a layer's payload, to `to` */
	uint64_t layer, pos, len;
	uint8_t *to;
	uint64_t home, home_pos; /* where the run table has them: another copy may be asked for now */
	unsigned copies_tried;          /* other copies */
	uint32_t want;           /* the caller's number, */
	uint32_t rank;           /* and whom he asks */
};

struct vv_salvage_needs {
	struct vv_salvage_need *v;
	size_t n, cap;
};

struct vv_warned { /* layers that were warned of */
	uint64_t *layer;
	size_t n, cap;
	struct vv_err_state outage; /* the first error that is no damage: of what lies there nothing is known */
};

void vv_salvage_fini(struct vv_salvage_needs *n);
int vv_salvage_add(struct vv_salvage_needs *n, const struct vv_salvage_need *need);
/* Bytes from..to of a need, as a need. */
struct vv_salvage_need vv_salvage_part(const struct vv_salvage_need *need, uint64_t from, uint64_t to);

/* Is it what another copy may help with? */
bool vv_salvage_is_damage(int rc);
/* Is the layer warned of for the first time? */
bool vv_salvage_is_first_warning(struct vv_warned *w, uint64_t layer);
/* Reads all that is whole; what is not is added to `bad`, and each layer that has such is warned of once. Sorts the needs. Fails only
 * for want of memory. */
int vv_salvage_read(const struct vv_lineage *lin, struct vv_salvage_needs *need, struct vv_salvage_needs *bad, struct vv_warned *warned);

#endif
