/* A session: one process's attachment to a lineage, and what it knows of its regions since the last epoch. */
#ifndef VV_ENGINE_SESSION_H
#define VV_ENGINE_SESSION_H

#include "base/conf.h"
#include "base/map.h"
#include "base/pool.h"
#include "core/due.h"
#include "engine/flush.h"
#include "engine/history.h"
#include "engine/table.h"
#include <pthread.h>
#include <sys/types.h>
#include <varve/varve.h>

/* What a chunk held in the parent epoch: nothing we know, zeros, or entry number + FIRST of the index. */
enum { VV_CHUNK_UNKNOWN = 0, VV_CHUNK_ZERO = 1, VV_CHUNK_FIRST = 2 };

/* What one more layer in the chain costs a restart, in bytes read: see choose_keyframe. */
enum { VV_LAYER_COST = 4096 };

struct vv_region {
	char *name;
	uint8_t *p;
	struct vv_shape shape;
	void *owned;      /* memory of varve_alloc, or NULL */
	size_t owned_len;
	uint32_t parent;  /* 1 + its index in the parent epoch's layer, or 0 */
	bool adopted;     /* `was` says what the parent epoch holds */
	bool restored;    /* a restart has read the parent epoch's content of it */
	uint32_t *was;    /* per chunk */
	uint32_t *now;    /* per chunk, of the checkpoint under way */
	size_t n_chunks;
	struct vv_digest zero, zero_tail; /* digests of a whole and of the last chunk, if they are zero */
};

struct varve {
	pthread_mutex_t lock;
	pid_t pid;
	struct vv_conf conf;
	struct vv_store *store;
	struct vv_lock *writer;
	struct vv_lineage lineage;
	uint32_t rank, ranks;
	struct vv_pool *pool; /* started with the first need */
	struct vv_flush_options coding;
	uint8_t digest_kind;
	vv_digest_fn digest;
	struct vv_due due;

	struct vv_region **region;
	size_t n_regions;
	struct vv_map by_name; /* of the first by_name.n regions; a removal leaves the numbers above it too high */

	uint64_t epoch;   /* what the next checkpoint continues: the newest epoch, or the one restarted from; 0 = none */
	uint64_t highest; /* the highest number used */
	uint64_t failed;  /* epochs from here to the highest failed and may have left something; 0 = none did */
	bool own;         /* `epoch` was laid down by this session, so the regions know their parents */
	struct vv_table table; /* of `epoch`, until the first checkpoint has adopted it */
	bool has_table;
	struct vv_history history;
	bool has_history;
	uint8_t depth;       /* of the parent layer */
	uint64_t chain_cost; /* what reading the deltas since the keyframe costs, in bytes */
	uint64_t full_runs;  /* an estimate of the runs in a full table */

	struct vv_listing live; /* for retention */
	bool has_live;
	uint64_t bytes_dropped, bytes_total; /* in layers of dropped epochs since the last gc; in all */

	double last_end, last_cost; /* of the last checkpoint, for varve_due */
	struct varve_stats stats;
};

/* Every call on a session begins and ends with these: is it a session, is it this process's? Then it is locked. */
int vv_session_enter(struct varve *v, const char *call);
int vv_session_leave(struct varve *v, int rc); /* returns rc */

/* The session's pool, started now if it has not been. */
int vv_session_pool(struct varve *v);
/* Everything the next checkpoint compares with is in memory: the index, the parent's table, the regions' chunks. */
int vv_session_prepare(struct varve *v);
/* `epoch` is now what the next checkpoint continues; takes over the table. */
void vv_session_continue(struct varve *v, uint64_t epoch, struct vv_table *table);

/* engine/region.c. Finds what the regions' chunks held in the parent's table. */
void vv_region_adopt_all(struct varve *v);
/* Reads the index anew and finds the chunks in it: after gc. If that fails, all is forgotten. */
int vv_region_reindex(struct varve *v);
/* The index and what it says of the chunks are not to be trusted any more; the next checkpoint reads it anew. */
void vv_region_forget(struct varve *v);
void vv_region_free(struct vv_region *r);

/* engine/checkpoint.c, engine/retain.c: the caller holds the lock. */
int vv_checkpoint_run(struct varve *v);
void vv_retain_run(struct varve *v);

#endif
