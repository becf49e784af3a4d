/* The state behind tiles.h: the geometry of the regions' memory, copies, order, write protection, waiting threads and meters.
 * Everything in struct vv_tiles is under its lock while an epoch is in progress, but for the bytes themselves, which flags announce. */
#ifndef VV_ENGINE_MEMORY_TILE_STATE_H
#define VV_ENGINE_MEMORY_TILE_STATE_H

#include "core/plan/write_order.h"
#include "engine/context.h"
#include "track/calls.h"

struct vv_write_protect;
struct vv_tile;

/* Knowledge of one region's memory. */
struct vv_tracked {
	enum vv_region_how method;
	uintptr_t lo, hi;   /* pages that are wholly its own and can be watched; lo == hi: none */
	size_t first_tile, n_tiles, n_groups, first_word;
	uint32_t *cell;     /* per group: 1 + the cell of its copy, or 0 */
	unsigned retry_in;  /* automatic: epochs to go before watching is tried again */
	unsigned backoff;
	uint64_t changed;   /* bytes found changed in the last epoch */
	struct vv_write_protect *write_protect; /* that lo..hi belong to, if write-protected */
	bool write_protected;        /* lo..hi belong to a fence */
	double seconds_protected; /* the time of its fence, shutting and opening, since written pages were found, */
	double pages_found;    /* and their number */
	double collect_cost;   /* seconds per written page to find it and watch it again */
};

struct vv_tile_geometry {
	size_t group_chunks, group_len, tile_groups;
	struct vv_tile *tile;
	size_t n;
	uint64_t *dirty, *todo; /* a bit per group; each region begins with a word of its own */
	size_t n_words;
	struct vv_region **region; /* as laid out */
	size_t n_regions;
	struct vv_region **by_address; /* those with pages that can be watched */
	size_t n_by_address;
};

/* The buffer that groups are copied to, in cells of one group each. */
struct vv_tile_copies {
	uint8_t *cells;
	size_t cells_len, buffer_len, wide_len, n_cells;
	uint64_t buffer;      /* bytes, as asked for */
	size_t n_granted;     /* cells that the epoch in progress may use */
	uint32_t *free_cell;
	size_t n_free;
	size_t n_more, max_more; /* cells beyond the buffer, for groups that change just now: in use, and room for */
};

/* The order in which tiles are expected to be written by the program. */
struct vv_tile_plan {
	struct vv_write_order order;
	uint32_t *queue;      /* dirty tiles in that order */
	size_t n_queue, n_queue_last, n_copied; /* its beginning is copied before the checkpoint returns, and then in the order of memory */
	uint32_t *queue_position;      /* per tile: its expected place in the queue */
	size_t front, reach;  /* in the queue: tiles before are open, or could be; open_ahead.c */
	bool learning;        /* every first write is watched, so that the order is known; else the learned order is relied on */
	unsigned relapses;    /* times that the learned order was of no use the next time */
	size_t n_seen, n_hits, n_surprises; /* first writes: watched; at their expected place; far from it */
};

struct vv_tile_protection {
	struct vv_write_protect *write_protect;
	struct vv_write_protect *write_protect_fine; /* of userfaultfd, for regions that are opened page by page; NULL: not needed yet, or */
	bool no_write_protect_fine;          /* not available */
	bool is_protecting;         /* tiles are write-protected for the epoch in progress */
	uint64_t serial;      /* of the checkpoint */
	struct vv_scan *scan; /* as in vv_tracking */
	struct vv_calls calls; /* when written memory was last looked for */
};

struct vv_tile_waiters {
	size_t waiting;       /* threads that wait at a fence */
	unsigned idle_waits;      /* times in a row that one of them heard nothing for a while, with a thread in the allocator, */
	unsigned idle_waits_outside;  /* since a thread last came out of it: vv_mem_is_inside */
	size_t copying;       /* threads that copy a tile */
	size_t in_handler;        /* threads in vv_write_fault_handle */
	size_t caller_waits_for;          /* tiles that the caller waits for */
	size_t cells_in_blocks;  /* cells that are being stored, */
	size_t groups_in_blocks; /* and groups, from their cells or in place */
	bool broken;          /* storing the epoch in progress has failed */
	bool must_fail;         /* it must fail: a thread that could not wait has written memory that it needs */
	bool copy_when_freed;          /* a waiting thread takes a cell as soon as one is free; Nicolae and Cappello 2013 do not */
	bool asking_ranks;         /* the ranks are being asked, and nothing is stored before they have answered */
};

/* Since the last checkpoint. */
struct vv_tile_meters {
	struct varve_access seen[VV_ACCESS_KINDS];
	uint64_t fault_ns, wait_ns, blocked_ns;
	uint64_t fault_reported_ns;  /* of fault_ns: in the epoch's statistics; the rest is in those of the next one, */
	uint64_t fault_after_ns; /* as this is, of the epoch before */
	double hashed_s, hashed_pages; /* processor time of hashing, and of how many pages; the newest count most */
};

struct vv_tiles {
	pthread_mutex_t lock;
	pthread_cond_t work_cond;  /* for the background thread: something to do */
	pthread_cond_t fault_cond; /* for threads at a fence: a tile is stored, a cell is free */
	bool stale;           /* the regions have changed */
	bool fine;            /* small tiles */
	unsigned votes;       /* epochs that asked for the other kind */
	struct vv_tile_geometry geometry;
	struct vv_tile_copies copies;
	struct vv_tile_plan plan;
	struct vv_tile_protection protection;
	struct vv_tile_waiters waiters;
	struct vv_tile_meters meters;
};

#endif
