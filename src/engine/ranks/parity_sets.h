/* The parity sets of a lineage: their lost objects, and the jobs that make these again. The same
 * for ranks that have stores of their own, and for a process that sees all stores. */
#ifndef VV_ENGINE_RANKS_PARITY_SETS_H
#define VV_ENGINE_RANKS_PARITY_SETS_H

#include "engine/lineage/catalog.h"
#include "engine/ranks/parity_build.h"

struct vv_parity_holder { /* an object in a store */
	uint64_t layer; /* the epoch and rank of the layer, or of its parity */
	uint32_t ranks; /* of the epoch, if it is parity; 0: it is a layer */
	uint32_t place;
};

#define VV_PARITY_NO_PLACE UINT32_MAX

struct vv_parity_chain { /* the layers of a rank; places may be VV_PARITY_NO_PLACE */
	uint32_t place;  /* of the newest layer so far */
	uint32_t newest; /* of its newest layer of all */
	char domain[VV_PARITY_DOMAIN]; /* of the rank when it wrote that layer; "": not known */
};

struct vv_parity_sets {
	struct vv_parity_io io;
	struct vv_parity_holder *v; /* by epoch, layers before parity, then by rank and place */
	size_t n, cap;
	/* The place for a rank of the epoch, by the storage node that it had. Lost objects go there
	 * if no other rule applies: choose_place of parity_rebuild.c has them all. */
	uint32_t (*target)(void *arg, uint64_t epoch, const struct vv_parity_layer *l);
	/* After the sets of an epoch: places that lack its commit record get it. */
	int (*spread)(void *arg, uint64_t epoch, bool rebuilt);
	void *arg;
	uint32_t places, *domain; /* of each place: its failure domain, or VV_PARITY_NO_PLACE */
	/* Of each rank, during a rebuild (engine/ranks/parity_rebuild.h). */
	uint32_t n_chains;
	struct vv_parity_chain *chain;
	size_t seen; /* holders that `chain` takes into account */
};

/* Adds the objects of a store. */
int vv_parity_sets_add(struct vv_parity_sets *s, const struct vv_listing *l, uint32_t place);
void vv_parity_sets_sort(struct vv_parity_sets *s);
void vv_parity_sets_fini(struct vv_parity_sets *s);
bool vv_parity_sets_has_layer(const struct vv_parity_sets *s, uint64_t layer);
/* Does this place have the layer? */
bool vv_parity_sets_holds(const struct vv_parity_sets *s, uint64_t layer, uint32_t place);
/* The number of ranks of an epoch that has parity; 0: it has none. *missing: objects that no place
 * has. */
uint32_t vv_parity_sets_epoch(const struct vv_parity_sets *s, uint64_t epoch, size_t *missing);
/* Has an epoch from this one on layers without parity, or only a part of its objects? */
bool vv_parity_sets_is_partial(const struct vv_parity_sets *s, uint64_t from);
/* The next epoch with parity above this one; 0: there is none. */
uint64_t vv_parity_sets_next(const struct vv_parity_sets *s, uint64_t epoch);

/* Without a rebuild, or for a rank without layers: no place is known. */
const struct vv_parity_chain *vv_parity_sets_chain(const struct vv_parity_sets *s, uint32_t rank);
/* The sets of an epoch, with all that is there. The caller ends each job, and frees the list. */
int vv_parity_sets_load(const struct vv_parity_sets *s, uint64_t epoch, struct vv_parity_job **out, size_t *n);
/* "partner", "xor:8" or "rs:6+2" */
enum { VV_PARITY_SCHEME = 32 };
void vv_parity_sets_scheme(unsigned k, unsigned m, char out[VV_PARITY_SCHEME]);

#endif
