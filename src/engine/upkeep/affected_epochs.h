/* The epochs that need damaged bytes. */
#ifndef VV_ENGINE_UPKEEP_AFFECTED_EPOCHS_H
#define VV_ENGINE_UPKEEP_AFFECTED_EPOCHS_H

#include "core/format/payload.h"
#include "engine/lineage/catalog.h"

struct vv_affected_epochs {
	uint64_t *v; /* ascending, each once */
	size_t n, cap;
	uint64_t intact; /* the newest epoch that is not affected; 0: none */
	struct vv_affected_epochs_piece { /* damaged positions of a layer */
		uint64_t layer;
		struct vv_extent at; /* of length 0: the whole layer */
	} *piece;
	size_t n_pieces, pieces_cap;
};

void vv_affected_epochs_fini(struct vv_affected_epochs *a);
int vv_affected_epochs_add(struct vv_affected_epochs *a, uint64_t epoch);
/* Notes damage, for vv_affected_epochs_find. A NULL extent means the whole layer. */
int vv_affected_epochs_damage(struct vv_affected_epochs *a, uint64_t layer, const struct vv_extent *at);
/* Adds those of the epochs `live` that need one of the damaged pieces, and finds the newest intact
 * one. */
int vv_affected_epochs_find(struct vv_affected_epochs *a, const struct vv_lineage *lin, const struct vv_listing *live);

#endif
