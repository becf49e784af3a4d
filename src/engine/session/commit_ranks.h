/* What all ranks together make of an epoch. Each stores its layer; when all have, the commit record is written and the epoch
 * counts everywhere; if one could not, it counts nowhere. */
#ifndef VV_ENGINE_SESSION_COMMIT_RANKS_H
#define VV_ENGINE_SESSION_COMMIT_RANKS_H

#include "base/err.h"
#include "comm/comm.h"
#include "core/format/commit.h"
#include <stddef.h>
#include <varve/varve.h>

struct varve;
struct vv_layer_writer;

struct vv_commit_report { /* of one rank, to all */
	int64_t rc;
	uint64_t parent; /* that it continues; 0: none */
	uint64_t time_ns;
	struct vv_commit_rank layer;
	uint64_t lost; /* layers that it refers to are gone */
	uint64_t written_bytes, written_ns, coded_bytes, coded_ns; /* what its store and its coder took: engine/write/codec_choice.h */
	uint64_t seal; /* of the comm */
};

struct vv_commit_decision { /* of one rank, to all: what is decided, or why it failed */
	uint64_t reclaimed; /* gc has been at work */
	uint64_t cutoff, every; /* engine/session/retention.c, where ranks have stores of their own */
	struct vv_err_state error;
	uint64_t seal; /* of the comm */
};

_Static_assert(offsetof(struct vv_commit_report, seal) + VV_COMM_SEAL == sizeof(struct vv_commit_report), "the seal is at the end");
_Static_assert(offsetof(struct vv_commit_decision, seal) + VV_COMM_SEAL == sizeof(struct vv_commit_decision), "the seal is at the end");

struct vv_commit_ranks {
	bool pending;
	unsigned phase;
	uint64_t epoch, before; /* and what the session continued before it */
	uint64_t time_ns;
	struct varve_stats st;
	struct vv_err_state error; /* of this rank's part */
	struct vv_comm_op op;
	struct vv_commit_report own, *all;
	struct vv_commit_decision *decision;
};

int vv_commit_ranks_init(struct varve *v);
void vv_commit_ranks_fini(struct varve *v);
/* This rank's part of the epoch is done, well or not. */
void vv_commit_ranks_begin(struct vv_layer_writer *p, int rc);
/* Goes on as far as can be. 1: the fate of the last epoch is known, and the session has drawn the consequences; 0: not yet (never
 * with `wait`). */
int vv_commit_ranks_step(struct varve *v, bool wait);

#endif
