/* Reads all intact bytes: engine/read/restore.c stops at the first damage, this continues and
 * reports the bad bytes, chunk by chunk. Slow, and useful only if there is another copy. */
#ifndef VV_ENGINE_READ_SALVAGE_H
#define VV_ENGINE_READ_SALVAGE_H

#include "base/err.h"
#include "engine/lineage/catalog.h"

struct vv_salvage_need { /* bytes pos..pos+len of a layer's payload, to `to` */
	uint64_t layer, pos, len;
	uint8_t *to;
	/* their position in the run table: another copy may be in use now */
	uint64_t home, home_pos;
	unsigned copies_tried;          /* number of other copies */
	uint32_t holders_tried;  /* of the layer's holders, the first ones, which failed */
	uint32_t want;           /* the caller's number, */
	uint32_t rank;           /* and the rank that gets the request */
};

struct vv_salvage_needs {
	struct vv_salvage_need *v;
	size_t n, cap;
};

struct vv_warned { /* layers with a warning */
	uint64_t *layer;
	size_t n, cap;
	/* The first error that is no damage: the state of those bytes is unknown. */
	struct vv_err_state outage;
};

/* Keeps the thread's error in w if rc is VV_EIO or VV_EDENIED and none is kept yet. */
void vv_salvage_note_outage(struct vv_warned *w, int rc);
void vv_salvage_fini(struct vv_salvage_needs *n);
int vv_salvage_add(struct vv_salvage_needs *n, const struct vv_salvage_need *need);
/* Bytes from..to of a need, as a need. */
struct vv_salvage_need vv_salvage_part(const struct vv_salvage_need *need, uint64_t from, uint64_t to);

/* Is it an error that another copy may repair? */
bool vv_salvage_is_damage(int rc);
/* Is this the first warning for the layer? */
bool vv_salvage_is_first_warning(struct vv_warned *w, uint64_t layer);
/* Reads all intact bytes. Others are added to `bad`, with one warning for each of their layers.
 * Sorts the needs. Fails only for lack of memory. */
int vv_salvage_read(const struct vv_lineage *lin, struct vv_salvage_needs *need, struct vv_salvage_needs *bad, struct vv_warned *warned);

#endif
