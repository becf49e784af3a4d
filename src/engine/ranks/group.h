/* The ranks of a session with several ranks: their identity, their stores, and their agreement. */
#ifndef VV_ENGINE_RANKS_GROUP_H
#define VV_ENGINE_RANKS_GROUP_H

#include "base/err.h"
#include "comm/comm.h"
#include "core/format/commit.h"
#include "core/ranks/owner_index.h"
#include "engine/lineage/catalog.h"

struct vv_context;
struct vv_rank_dedup_priv;

enum vv_group_dedup { VV_GROUP_EXACT, VV_GROUP_TOPK, VV_GROUP_NONE };

/* Calls that all ranks make together. */
enum vv_group_call { VV_GROUP_OPEN = 1, VV_GROUP_CHECKPOINT, VV_GROUP_RESTART, VV_GROUP_DUE, VV_GROUP_WAIT, VV_GROUP_CLOSE, VV_GROUP_PACK,
		     VV_GROUP_LIST };

struct vv_group {
	struct vv_comm *comm; /* for calls that all ranks make */
	struct vv_comm *side; /* for operations in the background */
	bool threaded;          /* other threads may use the group */
	uint32_t rank, size;
	enum vv_group_dedup dedup;
	size_t threshold;
	unsigned copies;
	uint32_t aggregate;
	uint32_t *host;  /* of each rank: the lowest rank on the same machine */
	uint32_t *storage_node; /* of each rank: the lowest rank with the same store */
	bool has_local_stores;      /* there is more than one storage node */
	struct { /* engine/write/shared_file.c */
		uint32_t first, last; /* ranks that write one file */
		uint64_t *room;       /* of each rank, in the epoch in progress */
		uint64_t *len;        /* of each rank's layer, once all are stored */
		uint64_t epoch;
		bool open; /* opened by this rank, and not sealed yet */
		char token[VV_STORE_TOKEN];
	} bundle;
	struct vv_owner_index owners;
	/* engine/write/rank_dedup.c: state of the epoch in progress */
	struct vv_rank_dedup_priv *dedup_epoch;
	bool owners_loaded; /* the owner index has this rank's layers from before the session */
};

int vv_group_open(const struct varve_comm *plug, double patience, struct vv_group **out);
void vv_group_close(struct vv_group *g); /* NULL is fine */
/* Frees memory that operations of either channel used; keeps it if other ranks may still access
 * it. */
void vv_group_free(const struct vv_group *g, void *p);

/* Do all ranks make this call? The error names those that differ. */
int vv_group_check_call(struct vv_group *g, enum vv_group_call call, uint64_t detail);
/* The same check; *value becomes the highest value of all ranks. */
int vv_group_check_call_max(struct vv_group *g, enum vv_group_call call, uint64_t *value);
/* A failure on one rank is a failure on all. All get the error of the lowest rank that failed, with
 * the same code. Returns 0 only if all ranks pass 0. */
int vv_group_agree(struct vv_group *g, struct vv_comm *c, int rc);
/* The same, with the sums over all ranks of n numbers, at most VV_GROUP_SUM_MOST. */
enum { VV_GROUP_SUM_MOST = 8 };
int vv_group_sum(struct vv_group *g, struct vv_comm *c, int rc, uint64_t *v, size_t n);
/* Makes the error reported by rank `who` this rank's error, in the name of the rank where it began.
 * Returns its code. */
int vv_group_adopt_error(const struct vv_group *g, uint32_t who, struct vv_err_state *error);

/* A storage node that lacks the record of an epoch gets it from one that has it. */
int vv_group_spread_commit(struct vv_context *ctx, uint64_t epoch);

static inline bool vv_group_leads_storage_node(const struct vv_group *g)
{
	return g->storage_node[g->rank] == g->rank;
}

#endif
