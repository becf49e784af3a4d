/* Redundancy among ranks with stores of their own: parity for a new epoch, and the return of lost
 * layers. All ranks call each of these together. */
#ifndef VV_ENGINE_RANKS_PARITY_RANKS_H
#define VV_ENGINE_RANKS_PARITY_RANKS_H

#include "engine/ranks/parity_rebuild.h"

struct vv_parity_domains {
	unsigned k, m; /* of stripes */
	char (*name)[VV_PARITY_DOMAIN]; /* of each rank's failure domain */
	uint32_t *first; /* of each rank: the lowest rank in its domain */
	uint32_t *number; /* of each rank: its domain, counted from 0 in the order of their lowest ranks */
	uint32_t n;      /* domains */
};

/* All ranks learn the failure domains of all. */
int vv_parity_ranks_domains(struct vv_group *g, const char mine[VV_PARITY_DOMAIN], struct vv_parity_domains *out);
void vv_parity_ranks_fini(struct vv_parity_domains *d, const struct vv_group *g);
/* Writes the parity of a committed epoch. since: see core/format/parity.h. */
int vv_parity_ranks_protect(struct vv_context *ctx, struct vv_comm *c, const struct vv_parity_domains *d, uint64_t epoch, uint64_t since,
			    struct vv_parity_built *out);
/* Writes the lost objects of all epochs up to `last` again; with `scan` also those with damaged
 * blocks. */
int vv_parity_ranks_rebuild(struct vv_context *ctx, const struct vv_parity_domains *d, uint64_t last, bool scan,
			    struct vv_parity_report *out);
struct vv_parity_answer {
	/* As in the epoch's parity, or 1 for no epoch. 0: some layers from there on have no parity,
	 * or the epoch bears fewer losses than new ones will. */
	uint64_t since;
	uint64_t complete; /* the newest epoch with all layers and parity; 0: none */
};

int vv_parity_ranks_ask(struct vv_context *ctx, const struct vv_parity_domains *d, uint64_t epoch, struct vv_parity_answer *out);

#endif
