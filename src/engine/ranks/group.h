/* The ranks of a session that is one of many: who they are, where they store, and how they come to one mind. */
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

/* What all ranks call together. */
enum vv_group_call { VV_GROUP_OPEN = 1, VV_GROUP_CHECKPOINT, VV_GROUP_RESTART, VV_GROUP_DUE, VV_GROUP_WAIT, VV_GROUP_CLOSE, VV_GROUP_PACK };

struct vv_group {
	struct vv_comm *comm; /* for calls that all ranks make */
	struct vv_comm *side; /* for what goes on behind them */
	bool threaded;          /* other threads may use it */
	uint32_t rank, size;
	enum vv_group_dedup dedup;
	size_t threshold;
	unsigned copies;
	uint32_t aggregate;
	uint32_t *host;  /* of each rank: the lowest rank on the same machine */
	uint32_t *storage_node; /* of each rank: the lowest rank with the same store */
	bool has_local_stores;      /* there is more than one place */
	struct { /* engine/write/shared_file.c */
		uint32_t first, last; /* ranks that write one file */
		uint64_t *room;       /* of each rank, in the epoch under way */
		uint64_t *len;        /* of each rank's layer, once all are stored */
		uint64_t epoch;
		bool open; /* by this rank, and not sealed yet */
		char token[VV_STORE_TOKEN];
	} bundle;
	struct vv_owner_index owners;
	struct vv_rank_dedup_priv *dedup_epoch; /* engine/write/rank_dedup.c: what was said of the epoch under way */
	bool owners_loaded; /* the judges know what this rank stored before the session */
};

int vv_group_open(const struct varve_comm *plug, double patience, struct vv_group **out);
void vv_group_close(struct vv_group *g); /* NULL is fine */

/* All ranks make this call? Tells those that do not from each other. */
int vv_group_check_call(struct vv_group *g, enum vv_group_call call, uint64_t detail);
/* The same check; *value becomes the highest value of all ranks. */
int vv_group_check_call_max(struct vv_group *g, enum vv_group_call call, uint64_t *value);
/* What failed on one has failed on all: the error of the lowest rank that has one, the same code everywhere. Returns 0 only if all
 * ranks say 0. */
int vv_group_agree(struct vv_group *g, struct vv_comm *c, int rc);
/* The same, and the sums over all ranks of n numbers. */
int vv_group_sum(struct vv_group *g, struct vv_comm *c, int rc, uint64_t *v, size_t n);
/* What rank `who` told, as this rank's error: in the name of the rank that it came from first. Returns its code. */
int vv_group_adopt_error(const struct vv_group *g, uint32_t who, struct vv_err_state *told);

/* The record of an epoch that some place lacks is given to it by one that has it. */
int vv_group_spread_commit(struct vv_context *ctx, uint64_t epoch);

static inline bool vv_group_leads_storage_node(const struct vv_group *g)
{
	return g->storage_node[g->rank] == g->rank;
}

#endif
