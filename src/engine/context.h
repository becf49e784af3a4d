/* A session: one process's attachment to a lineage, and what it knows of its regions since the last epoch. */
#ifndef VV_ENGINE_CONTEXT_H
#define VV_ENGINE_CONTEXT_H

#include "base/event.h"
#include "base/conf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/pool.h"
#include "core/plan/interval.h"
#include "core/plan/cheaper_way.h"
#include "core/plan/write_order.h"
#include "engine/write/codec_choice.h"
#include "engine/write/block_writer.h"
#include "engine/write/referenced_layers.h"
#include "engine/write/index_cache.h"
#include "engine/session/rehearse.h"
#include "engine/lineage/run_table.h"
#include "engine/session/commit_ranks.h"
#include "track/calls.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <varve/varve.h>

struct vv_fence;
struct vv_fine;
struct vv_grain_sets;
struct vv_layer_writer;
struct vv_group;
struct vv_scan;
struct vv_space;
struct vv_tile;

/* What a chunk held in the parent epoch: nothing we know, zeros, or entry number + FIRST of the index. */
enum { VV_CHUNK_UNKNOWN = 0, VV_CHUNK_ZERO = 1, VV_CHUNK_FIRST = 2 };

/* What one more layer in the chain costs a restart, in bytes read: see choose_keyframe. */
enum { VV_LAYER_COST = 4096 };

/* How a region's changes are found. */
enum vv_region_how { VV_BY_DIGEST, VV_BY_SCAN, VV_BY_FENCE };

struct vv_region {
	char *name;
	uint8_t *p;
	struct vv_shape shape;
	void *owned;      /* memory of varve_alloc, or NULL */
	uint32_t parent;  /* 1 + its index in the parent epoch's layer, or 0 */
	bool adopted;     /* `was` says what the parent epoch holds */
	bool restored;    /* a restart has read the parent epoch's content of it */
	uint32_t *was;    /* per chunk */
	uint32_t *now;    /* per chunk that the checkpoint under way looks at */
	size_t n_chunks;
	struct vv_digest zero, zero_tail; /* digests of a whole and of the last chunk, if they are zero */

	/* engine/memory/tiles.c */
	bool untracked;    /* varve_untrack */
	bool fresh;        /* everything counts as dirty */
	bool fenced;       /* lo..hi belong to a fence */
	enum vv_region_how how;
	uintptr_t lo, hi;  /* pages that are wholly its own and can be watched; lo == hi: none */
	size_t first_tile, n_tiles, n_groups, first_word;
	uint32_t *cell;    /* per group: 1 + the cell of its copy, or 0 */
	unsigned patience; /* auto: epochs to go before watching is tried again */
	unsigned backoff;
	uint64_t changed;  /* bytes found changed in the last epoch */
	struct vv_fence *fence; /* that lo..hi belong to, if fenced */
	bool scattered;    /* so many single pages of it are written that it may be cheaper to fence it whole before they are looked for, */
	bool shut_first;   /* as was done for the epoch under way; */
	struct vv_cheaper_way ways; /* whether it is, and */
	double seconds_found; /* what finding and fencing them took this time */
	double seconds_fenced; /* what its fence has taken beside that, shutting and opening, since they were found, */
	double pages_found;    /* and how many they were */
	double collect_cost; /* seconds that it takes for each written page to be found and watched anew */

	bool refined;      /* varve_refine, with the next two */
	uint8_t method;
	uint32_t grain;
	struct vv_fine *fine; /* engine/grains/grain_sets.h; NULL: it is deduped in chunks. One that is not has no chunks. */
	const struct vv_space *space; /* of a region in grains: whose memory it is, */
	int device;                   /* and on which device */
};

/* The memory of all regions, cut up: engine/memory/tiles.h. */
struct vv_tiles {
	pthread_mutex_t lock;
	pthread_cond_t bell;  /* for the flusher: something to do */
	pthread_cond_t freed; /* for who waits at a fence: a tile is stored, a cell is free */
	bool stale;           /* the regions have changed */
	bool fine;            /* small tiles */
	unsigned votes;       /* epochs that asked for the other kind */
	size_t group_chunks, group_len, tile_groups;
	struct vv_tile *tile;
	size_t n;
	uint64_t *dirty, *todo; /* a bit per group; each region begins with a word of its own */
	size_t n_words;
	struct vv_write_order order;
	struct vv_region **region; /* as laid out */
	size_t n_regions;
	struct vv_region **by_address; /* those with pages that can be watched */
	size_t n_by_address;
	uint32_t *queue;      /* dirty tiles in the order they are expected to be written */
	size_t n_queue, n_queue_last, n_copied; /* its beginning is copied before the checkpoint returns, and then in the order of memory */
	uint32_t *place;      /* per tile: where in the queue it was expected */
	size_t front, reach;  /* in the queue: what comes before is open, or could be; engine/memory/open_ahead.c */
	bool learning;        /* every first write is watched, so that the order is known; else what was learned is relied on */
	unsigned relapses;    /* times that what was learned was of no use the next time */
	size_t n_seen, n_hits, n_surprises; /* first writes: watched; where they were expected; far from there */
	uint8_t *cells;
	size_t cells_len, buffer_len, wide_len, n_cells;
	uint64_t buffer;      /* bytes, as asked for */
	size_t n_granted;     /* cells that the epoch under way may use */
	uint32_t *free_cell;
	size_t n_free;
	size_t n_more, max_more; /* cells beyond the buffer, for what changes even now: in use, and room for */
	struct vv_scan *scan;
	struct vv_calls calls; /* when it was last looked at what is written */
	double hashed_s, hashed_pages; /* what hashing takes here: processor time, in all, and of how many pages; the newest count most */
	struct vv_fence *fence;
	uint64_t serial;      /* of the checkpoint */
	bool fencing;         /* tiles are shut for the flush under way */
	bool overflowed;      /* they were for the newest one, even if it is over */
	bool broken;          /* the flush under way has failed */
	bool spoiled;         /* it must fail: somebody who could not wait for it has written what it needs */
	bool rescue;          /* who waits takes a cell as soon as one is free; the paper does not */
	size_t waiting;       /* threads that wait at a fence */
	unsigned quiets;      /* times that one of them has heard nothing for a while, with a thread in the allocator: in a row, */
	unsigned quiet_outs;  /* since one had last come out of it: vv_mem_is_inside */
	size_t copying;       /* threads that copy a tile */
	size_t asking;        /* threads in vv_write_fault_ask */
	size_t must;          /* tiles that the caller waits for */
	size_t cells_in_blocks; /* cells that are being stored, */
	size_t groups_in_blocks; /* and groups, from their cells or from where they lie */
	bool talking;         /* the ranks are asked, and nothing is stored before they have answered */
	/* Since the last checkpoint: */
	struct varve_access seen[VV_ACCESS_KINDS];
	uint64_t fault_ns, wait_ns, blocked_ns;
	uint64_t fault_told_ns;  /* of fault_ns: in the epoch's statistics; what comes later is in the next one's, */
	uint64_t fault_after_ns; /* as this is, of the epoch before */
	struct vv_fence *fence_fine; /* of userfaultfd, for regions that are opened page by page; NULL: not needed yet, or */
	bool no_fence_fine;          /* not to be had */
};

/* The thread that stores epochs behind the program's back, and what became of them: engine/session/background.c. */
struct vv_fate {
	uint64_t epoch;
	bool told;
	struct vv_err_state error;
};

struct vv_flusher {
	pthread_mutex_t lock; /* never held while a handler of the program's may run: engine/session/background.c */
	struct vv_event change;
	pthread_t thread;
	bool started, stop;
	struct vv_layer_writer *pass;  /* under way; NULL = none */
	struct varve *recall;  /* the session, if it learns what its regions held at a restart: engine/grains/relearn.c; else NULL */
	uint64_t first, last;  /* epochs of this session whose fate is known */
	struct vv_fate *failed;
	size_t n_failed, failed_cap;
	varve_done_fn done;
	void *done_arg;
};

struct varve {
	pthread_mutex_t lock;
	int cancel; /* whether the thread that holds the lock could be cancelled before */
	bool hushed;   /* it hears no signals that the program handles; these it did not hear before: */
	sigset_t deaf;
	pid_t pid;
	struct vv_conf conf;
	struct vv_store *store;
	struct vv_lock *writer;
	struct vv_lineage lineage;
	uint32_t rank, ranks;
	struct vv_group *group; /* the others; NULL: alone */
	struct vv_commit_ranks verdict;
	struct vv_pool *pool; /* started with the first need */
	struct vv_block_writer_options coding;
	struct vv_costs costs;
	uint8_t digest_kind;
	vv_digest_fn digest;
	struct vv_interval due;
	struct vv_rehearse rehearse;
	int signal;        /* that asks for a checkpoint; 0 = none */
	uint64_t requests; /* that were served */
	bool async, dedup;
	bool watch_auto;   /* each region chooses between `tracker` and digests, */
	bool watch_late;   /* and is watched only after a checkpoint in which little of it had changed */
	enum vv_region_how tracker;
	unsigned audit;

	struct vv_region **region;
	size_t n_regions;
	struct vv_map by_name; /* of the first by_name.n regions; a removal leaves the numbers above it too high */

	struct vv_tiles tiles;
	struct vv_grain_sets *grains; /* NULL: no region needs them */
	struct vv_device_buffers *dock;     /* that the last restart came through, which may be on its way out; NULL: none has */
	struct vv_flusher flusher;
	atomic_uint_least64_t newest; /* for varve_epoch: `epoch`, or the one being stored */

	uint64_t epoch;   /* what the next checkpoint continues: the newest epoch, or the one restarted from; 0 = none */
	uint64_t highest; /* the highest number used */
	uint64_t found;   /* what that was when the session began */
	uint64_t era;     /* the first epoch of the era (core/format/era_table.h) of what it lays down, */
	uint64_t token;   /* and that one's token */
	uint64_t failed;  /* epochs from here to the highest failed and may have left something; 0 = none did */
	bool own;         /* `epoch` was laid down by this session, so the regions know their parents */
	struct vv_run_table table; /* of `epoch`, until the first checkpoint has adopted it */
	bool has_table;
	bool tried;   /* a restart has read all that it refers to */
	bool settled; /* engine/session/load_parent.c: the ranks have compared what their stores hold, */
	bool mixed;   /* and it is not of one copy of the lineage */
	struct vv_run_table view; /* what varve_region and varve_restart_region last looked at, until there is a new epoch */
	struct vv_index_cache history;
	bool has_history;
	struct vv_referenced_layers footing;
	uint8_t depth;       /* of the parent layer */
	uint64_t chain_cost; /* what reading the deltas since the keyframe costs, in bytes */
	uint64_t chain_weighed; /* and what it was when the runs were counted last */
	uint64_t full_runs;  /* an estimate of the runs in a full table */

	struct vv_listing live; /* for retention */
	struct vv_spared { /* epochs that a restart has passed over */
		uint64_t *epoch;
		size_t n, cap;
	} spared;
	bool has_live;
	uint64_t cargo; /* counts as memory where bounds are shares of it: engine/files/pack.c */
	uint64_t bytes_dropped, bytes_total; /* in layers of dropped epochs since the last gc; in all */

	double fault_cost; /* of the program's threads since the last checkpoint */
	double last_end, last_cost; /* of the last checkpoint, for varve_due */
	struct varve_stats stats;
};

/* While an epoch is being stored (v->flusher.pass), or regions are being learned (v->flusher.recall), everything from `tiles` on but the
 * flusher's own lock belongs to its thread, and so do the store and the regions; calls that need them wait for its end first. */

/* Opens a session; comm: the ranks of the program, or NULL. */
int vv_session_open(const struct varve_comm *comm, const char *store, const char *lineage, const char *options, varve **out);

static inline size_t vv_region_chunk_len(const struct vv_region *r, size_t i)
{
	uint64_t left = r->shape.len - (uint64_t)i * r->shape.chunk;

	return left < r->shape.chunk ? (size_t)left : r->shape.chunk;
}

/* The digest of the chunk if it is all zero. */
static inline const struct vv_digest *vv_region_zero(const struct vv_region *r, size_t i)
{
	return i + 1 == r->n_chunks ? &r->zero_tail : &r->zero;
}

/* What the chunk's digest was in the parent epoch; NULL if that is not known. */
static inline const struct vv_digest *vv_region_digest(const struct varve *v, const struct vv_region *r, size_t i)
{
	if (r->was[i] >= VV_CHUNK_FIRST)
		return &v->history.index.digest[r->was[i] - VV_CHUNK_FIRST];
	return r->was[i] == VV_CHUNK_ZERO ? vv_region_zero(r, i) : NULL;
}

#endif
