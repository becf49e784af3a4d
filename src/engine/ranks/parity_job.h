/* A set of layers and their parity, parts of which are to be written: parity of a new epoch, or
 * objects that were lost. The same for jobs of ranks, and for a command that sees all stores. */
#ifndef VV_ENGINE_RANKS_PARITY_JOB_H
#define VV_ENGINE_RANKS_PARITY_JOB_H

#include "core/ranks/parity_plan.h"

struct vv_parity_object { /* a layer of the set, or the parity of its rank */
	bool there;     /* `place` can read it */
	bool wanted;    /* place `to` writes it */
	bool continues; /* a layer: the place of the rank's layer before can read it */
	bool has_other; /* place `other` has one of the same name that does not match */
	uint8_t match;    /* of the one at `place`: enum vv_parity_match */
	uint32_t place, to, other;
	uint8_t *bad;   /* of each of its blocks: it is damaged; or NULL */
	size_t n_blocks;
};

struct vv_parity_job {
	struct vv_parity_head head; /* of any object of the set */
	uint64_t head_len;
	struct vv_parity_plan plan;
	/* Of each layer of the set. */
	struct vv_parity_object *data, *parity;
	struct vv_digest *digest;
	bool has_digests; /* else they are found while the layers are read */
	bool is_recorded; /* the layers are those of the epoch's commit record */
};

/* Takes ownership of the head. No object is there, and none is wanted. */
int vv_parity_job_init(struct vv_parity_job *j, struct vv_parity_head *head);
/* To read one object of `most` bytes: only the stripes with its own parity. */
int vv_parity_job_init_own(struct vv_parity_job *j, struct vv_parity_head *head, uint64_t most);
void vv_parity_job_fini(struct vv_parity_job *j);
/* The place of a rank's layer in the set; n_layers: it is not of this set. */
size_t vv_parity_job_find(const struct vv_parity_job *j, uint32_t rank);
/* Object `block` of a stripe: a layer, or parity. */
struct vv_parity_object *vv_parity_job_object(const struct vv_parity_job *j, const struct vv_parity_block *stripe, unsigned block);
/* Is block `block` of the stripe to be written? */
bool vv_parity_job_is_wanted(const struct vv_parity_job *j, const struct vv_parity_block *stripe, unsigned block);
/* The blocks of the stripe from which block `block` is made, and their number. It is 0 if too many
 * are lost. */
unsigned vv_parity_job_sources(const struct vv_parity_job *j, const struct vv_parity_block *stripe, unsigned block,
			       uint8_t from[VV_ERASURE_BLOCKS]);
/* Can all wanted objects be made? */
bool vv_parity_job_is_possible(const struct vv_parity_job *j);
/* A block of an object is damaged. */
int vv_parity_job_add_bad(struct vv_parity_object *o, uint64_t block);
/* The number of failure domains, any of which may be lost now. domain: of each place. -1: the set
 * is incomplete. */
int vv_parity_job_survives(const struct vv_parity_job *j, const uint32_t *domain);

#endif
