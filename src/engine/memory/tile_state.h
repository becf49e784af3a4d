/* The state behind tiles.h: the geometry of the regions' memory, copies, order, write protection,
 * waiting threads and meters. While an epoch is in progress, the lock protects everything in struct
 * vv_tiles. Only bytes are read and copied without the lock, which flags announce. */
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
	uintptr_t lo, hi;   /* pages that belong only to it and can be watched; lo == hi: none */
	size_t first_tile, n_tiles, n_groups, first_word;
	uint32_t *cell;     /* per group: 1 + the cell of its copy, or 0 */
	unsigned retry_in;  /* automatic: epochs left before watching is tried again */
	unsigned backoff;
	uint64_t changed;   /* bytes found changed in the last epoch */
	struct vv_write_protect *write_protect; /* of lo..hi, if write_protected */
	bool write_protected;        /* lo..hi belong to write_protect */
	/* Seconds spent on protecting and unprotecting since written pages were last found. */
	double seconds_protected;
	double pages_found;    /* the number of written pages found then */
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
	struct vv_region **by_address; /* regions with watchable pages: ascending, disjoint */
	size_t n_by_address;
};

/* The buffer that groups are copied to, in cells of one group each. */
struct vv_tile_copies {
	uint8_t *cells;
	size_t cells_len, buffer_len, wide_len, n_cells;
	uint64_t buffer;      /* bytes, as requested */
	size_t n_usual;       /* cells that every epoch may use, at most */
	size_t n_granted;     /* cells that the epoch in progress may use */
	uint32_t *free_cell;
	size_t n_free;
	/* Cells beyond the buffer, for groups that are being changed: in use, and available. */
	size_t n_more, max_more;
};

/* The order in which tiles are expected to be written by the program. */
struct vv_tile_plan {
	struct vv_write_order order;
	uint32_t *queue;      /* dirty tiles in that order */
	/* n_copied: the first tiles of the queue, copied before the checkpoint returns and then in
	 * the order of memory */
	size_t n_queue, n_queue_last, n_copied;
	uint32_t *queue_position;      /* per tile: its expected position in the queue */
	/* Positions in the queue: tiles before them are unprotected, or could be; see
	 * open_ahead.c. */
	size_t front, reach;
	size_t n_skip; /* steps of open_ahead.c that would again find nothing to copy */
	/* Every first write is seen to learn the order; otherwise the learned order is relied
	 * on. */
	bool learning;
	unsigned relapses;    /* times that the learned order proved useless */
	/* First writes: seen; at the expected position; far from it. */
	size_t n_seen, n_hits, n_surprises;
};

struct vv_tile_protection {
	struct vv_write_protect *write_protect;
	/* By userfaultfd, for regions that are unprotected page by page; NULL: not needed yet, or
	 * not available. */
	struct vv_write_protect *write_protect_fine;
	bool no_write_protect_fine;          /* write_protect_fine is not available */
	bool is_protecting;         /* tiles are write-protected for the epoch in progress */
	bool to_open;         /* the last epoch is stored, and its tiles are still write-protected */
	uint64_t serial;      /* of the checkpoint */
	struct vv_scan *scan; /* as in vv_tracking */
	struct vv_calls calls; /* in progress at the last search for written memory */
};

struct vv_tile_waiters {
	size_t waiting;       /* threads that wait at a write fault */
	/* Consecutive waits of such a thread that timed out while a thread was in the allocator. */
	unsigned idle_waits;
	/* The count of exits from the allocator at that time: vv_mem_is_inside. */
	unsigned idle_waits_outside;
	size_t copying;       /* threads that copy a tile */
	size_t in_handler;        /* threads in vv_write_fault_handle */
	size_t caller_waits_for;          /* tiles that the caller waits for */
	size_t cells_in_blocks;  /* cells in blocks that are being stored */
	size_t groups_in_blocks; /* groups in these blocks, from cells or in place */
	bool broken;          /* storing the epoch in progress has failed */
	/* The epoch must fail: a thread that could not wait has written memory that the epoch
	 * needs. */
	bool must_fail;
	/* A waiting thread takes a cell as soon as one is free, unlike in Nicolae and Cappello
	 * 2013. */
	bool copy_when_freed;
	/* The ranks are being asked, and nothing is stored before they have answered. */
	bool asking_ranks;
};

/* Since the last checkpoint. */
struct vv_tile_meters {
	struct varve_access seen[VV_ACCESS_KINDS];
	uint64_t fault_ns, wait_ns, blocked_ns;
	/* The part of fault_ns in the epoch's statistics; the rest is reported for the next
	 * epoch. */
	uint64_t fault_reported_ns;
	uint64_t fault_after_ns; /* the unreported rest of the previous epoch */
	/* Processor seconds of hashing, and the number of pages; recent ones weigh more. */
	double hashed_s, hashed_pages;
};

struct vv_tiles {
	pthread_mutex_t lock;
	pthread_cond_t work_cond;  /* for the background thread: there is work */
	pthread_cond_t fault_cond; /* for waiting threads: a tile is stored or a cell is free */
	pthread_cond_t caller_cond; /* for the caller of the checkpoint: all tiles that it waits for are stored */
	bool stale;           /* the regions have changed */
	bool resize;          /* tiles of another size are due */
	bool sized;           /* the size of the tiles was chosen once */
	bool fine;            /* small tiles */
	unsigned votes;       /* consecutive epochs that asked for the other size */
	struct vv_tile_geometry geometry;
	struct vv_tile_copies copies;
	struct vv_tile_plan plan;
	struct vv_tile_protection protection;
	struct vv_tile_waiters waiters;
	struct vv_tile_meters meters;
};

#endif
