/* A session: one process's attachment to a lineage. Every file of engine/ may include this header,
 * and it includes none of the folders below. A part that one folder alone defines is a pointer
 * here, so that the compiler enforces the access.
 *
 * While the background thread stores an epoch or hashes restored regions (epoch/background.h), it
 * owns the store and the session from `region` on. A call that needs one of them waits for the
 * thread first. */
#ifndef VV_ENGINE_CONTEXT_H
#define VV_ENGINE_CONTEXT_H

#include "base/conf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/pool.h"
#include "core/plan/interval.h"
#include "engine/lineage_handle.h"
#include "engine/memory_region.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

struct vv_background;
struct vv_block_writer_options;
struct vv_commit_ranks;
struct vv_costs;
struct vv_device_buffers;
struct vv_grain_sets;
struct vv_index_cache;
struct vv_layer_writer;
struct vv_referenced_layers;
struct vv_rehearse;
struct vv_retention;
struct vv_run_table;
struct vv_scan;
struct vv_tiles;

/* Set when the session is opened and read-only afterwards, except the pool, which starts at first
 * use (engine/threads.h). */
struct vv_context {
	struct vv_conf conf;
	struct vv_store *store;
	struct vv_tiers *tiers; /* further stores of the lineage; NULL: none */
	struct vv_lock *writer;
	struct vv_lineage lineage;
	uint32_t rank, ranks;
	struct vv_group *group; /* the other ranks; NULL: a single rank */
	struct vv_pool *pool;
	vv_digest_fn digest;
	uint8_t digest_kind;
	bool async, dedup;
	uint32_t chunk, grain; /* the options of these names, */
	uint8_t method;        /* and this one: thousands of regions ask for them */
};

/* The public call in progress: session/enter.c. */
struct vv_entry {
	pthread_mutex_t lock;
	int cancel;           /* cancellation state of the calling thread before the call */
	/* the program's handlers do not run on the calling thread; its previous mask: */
	bool signals_blocked;
	sigset_t mask_before;
	pid_t pid;            /* of the process that opened the session */
};

/* How written memory is found; grains/ and memory/ share it. */
struct vv_tracking {
	enum vv_region_how tracker;
	bool automatic; /* each region chooses between the tracker and digests, */
	bool late; /* and is tracked only after a checkpoint in which little of it had changed */
	unsigned audit;
	struct vv_scan *scan; /* the kernel's record of written pages, or NULL */
};

/* When the next checkpoint is due. */
struct vv_pacing {
	struct vv_interval interval;
	int signal;        /* requests a checkpoint; 0 = none */
	uint64_t requests; /* served requests by signal */
	double last_end, last_cost; /* of the last checkpoint */
	double fault_cost; /* of the program's threads since the last checkpoint */
};

enum { VV_TIP_FAILED = 16 };

/* The epoch that the next checkpoint continues: epoch/tip.c alone assigns these. */
struct vv_tip {
	uint64_t epoch;   /* the newest epoch, or the one restarted from; 0 = none */
	/* if `epoch` is 0: the epoch that other ranks, or other parts, had before; 0 = none */
	uint64_t continued;
	uint64_t highest; /* the highest number used */
	uint64_t highest_at_open;
	uint64_t era;     /* the first epoch of this session's era (core/format/era_table.h), */
	uint64_t token;   /* and that era's token */
	uint64_t oldest;  /* new layers refer to no content of older epochs that the index has */
	uint64_t failed[VV_TIP_FAILED]; /* epochs whose commit record the store refused to remove */
	size_t n_failed;
	bool written_here; /* this session wrote `epoch`, so the regions know their parents */
	struct vv_run_table *table; /* of `epoch`, until the first checkpoint has adopted it */
	bool has_table;
	uint64_t eras;    /* vv_provenance_serial when a restart had read the table */
	bool all_read;    /* a restart has read everything that `epoch` refers to */
	bool compared;    /* the ranks have compared their stores, */
	bool mixed;       /* which are not all of one copy of the lineage */
	uint8_t depth;    /* of the parent layer */
	uint64_t chain_cost;    /* bytes to read for the deltas since the keyframe, */
	uint64_t chain_counted; /* and its value when runs were last counted */
	uint64_t full_runs;     /* an estimate of the runs in a full table */
};

/* The label of the next epoch, and of the one being stored; "" if there is none. */
struct vv_label_choice {
	struct vv_label_text {
		char text[VV_NAME_LABEL_MAX + 1];
	} next, taken;
};

struct varve {
	struct vv_entry entry;
	struct vv_context ctx;
	struct vv_tracking tracking;
	struct vv_pacing pacing;
	struct vv_label_choice label;
	struct vv_rehearse *rehearse;

	struct vv_region **region;
	size_t n_regions;
	struct vv_map by_name; /* their numbers, which ascend in `region` */
	struct vv_tiles *tiles;
	struct vv_grain_sets *grains;     /* NULL: no region needs them */
	/* of the last restart to a device, maybe still being released; or NULL */
	struct vv_device_buffers *device_buffers;
	struct vv_tip tip;
	/* the table that varve_region and varve_restart_region read last, until the next epoch */
	struct vv_run_table *view;
	struct vv_index_cache *index_cache;
	bool has_index_cache;
	struct vv_referenced_layers *referenced;
	struct vv_block_writer_options *coding;
	struct vv_costs *costs;
	struct vv_commit_ranks *commit;
	struct vv_retention *retention;
	struct vv_background *background;
	atomic_uint_least64_t newest; /* for varve_epoch: tip.epoch, or the epoch being stored */
	/* counts as memory where limits are shares of the memory: files/pack.c */
	uint64_t packed_bytes;
	struct varve_stats stats;
};

#endif
