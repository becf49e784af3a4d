/* The commit of an epoch by all ranks. Each rank stores its layer. When all have succeeded, the
 * commit record is written, and the epoch is committed on all ranks. If one rank failed, the epoch
 * is discarded on all ranks. */
#ifndef VV_ENGINE_EPOCH_COMMIT_RANKS_H
#define VV_ENGINE_EPOCH_COMMIT_RANKS_H

#include "base/err.h"
#include "comm/comm.h"
#include "core/format/commit.h"
#include "engine/epoch/redundancy.h"
#include "engine/tiers/tiers_ranks.h"
#include <stddef.h>
#include <varve/varve.h>

struct varve;
struct vv_layer_writer;

struct vv_commit_report { /* of one rank, to all */
	int64_t rc;
	uint64_t parent; /* the epoch that it continues; 0: none */
	uint64_t time_ns;
	struct vv_commit_rank layer;
	uint64_t lost; /* layers that it refers to are gone */
	struct vv_tiers_fate tiers;
	/* Bytes and time of its store and its compression, see engine/write/codec_choice.h. */
	uint64_t written_bytes, written_ns, coded_bytes, coded_ns;
	uint64_t seal; /* of the comm */
};

struct vv_commit_decision { /* of one rank, to all: the decision, or the reason of the failure */
	uint64_t reclaimed; /* gc has run */
	uint64_t cutoff, every; /* see engine/epoch/retention.c; if ranks have local stores */
	struct vv_tiers_plan tiers; /* the same */
	struct vv_err_state error;
	uint64_t seal; /* of the comm */
};

_Static_assert(offsetof(struct vv_commit_report, seal) + VV_COMM_SEAL == sizeof(struct vv_commit_report), "the seal is at the end");
_Static_assert(offsetof(struct vv_commit_decision, seal) + VV_COMM_SEAL == sizeof(struct vv_commit_decision), "the seal is at the end");

struct vv_commit_ranks {
	bool pending;
	unsigned phase;
	uint64_t epoch, before; /* before: the epoch that the session continued */
	uint64_t time_ns;
	struct varve_stats st, stats_before; /* of this epoch, and of the last accepted one */
	struct vv_err_state error; /* of this rank's part */
	struct vv_comm_op op;
	struct vv_commit_report own, *all; /* all: of each rank, and after them this rank's as it was sent */
	struct vv_commit_decision *decision;
	struct vv_redundancy redundancy;
};

int vv_commit_ranks_init(struct varve *v);
void vv_commit_ranks_fini(struct varve *v);
/* This rank's part of the epoch has ended, well or not. */
void vv_commit_ranks_begin(struct vv_layer_writer *p, int rc);
/* Advances the commit as far as possible. Returns 1 if the result of the last epoch is known and
 * applied to the session. Returns 0 if not yet (never with `wait`). */
int vv_commit_ranks_step(struct varve *v, bool wait);
/* The work of all ranks that follows a commit: parity, and copies to the tiers. Failures are
 * warnings. */
void vv_commit_ranks_follow_up(struct varve *v);

#endif
