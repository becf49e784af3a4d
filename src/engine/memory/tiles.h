/* The regions' memory in tiles, and the coordination of the program's writes with the flush of an
 * epoch. A region is divided into chunks, groups and tiles. A chunk is the unit of dedup. A group
 * of chunks is about a page and is the unit of copying. A copy lies in a cell of the buffer. A tile
 * has up to 64 groups and is the unit of order, write protection and history.
 *
 * A region need not begin at a page. So the page at the border of two tiles is unprotected only
 * when both may be written. The groups at a region's ends share pages with other memory. They are
 * never write-protected and always copied.
 *
 * A tile to be stored is SCHEDULED (core/plan/write_order.c), hashed, deduped, and placed into
 * blocks. Known content is dropped. The tile is PROCESSED when its blocks are written. A write to a
 * protected tile calls engine/memory/write_fault.c, which copies the tile or waits. One lock
 * protects everything here. Only bytes are read and copied without the lock, which flags
 * announce. */
#ifndef VV_ENGINE_MEMORY_TILES_H
#define VV_ENGINE_MEMORY_TILES_H

#include "engine/memory/tile_state.h"

enum {
	VV_TILE_OPEN = 1,     /* unprotected: the program may write it */
	VV_TILE_HASHING = 2,  /* being read */
	VV_TILE_HASHED = 4,
	VV_TILE_COPYING = 8,  /* being copied */
	VV_TILE_READ_IN_PLACE = 16,  /* being stored in place: must not change */
	VV_TILE_PLACED = 32,
	VV_TILE_CALLER_WAITS = 64,    /* the caller of the checkpoint waits for it */
};

struct vv_tile {
	/* 1 + the slot with the digests of its dirty groups' chunks, from hashing to placing */
	uint32_t digest_slot;
	uint32_t in_blocks; /* chunks handed to the flush and not yet written */
	uint32_t region;    /* its number in the list of the layout */
	uint8_t flags;
	uint8_t queue_flags;        /* flags that only the flush uses */
	/* Hashed: nothing changed, and nothing in it is older than the session. */
	bool is_unchanged;
};

enum {
	VV_TILE_QUEUED = 1, /* a task will hash it */
	VV_TILE_DEDUPED = 2,
};

/* Creates and destroys only the locks. The rest starts as zero, and vv_layout_fini frees it. */
void vv_tiles_init(struct vv_tiles *t);
void vv_tiles_fini(struct vv_tiles *t);
/* Under the lock, with no flush in progress. Waits until no thread is in vv_write_fault_handle. */
void vv_tiles_wait_handlers(struct vv_tiles *t);
/* Removes the write protection of the region. A thread with a pending fault in the region
 * continues. */
void vv_tiles_unprotect(struct vv_tiles *t, struct vv_region *r);
/* The region's memory is about to be freed, moved or resized. Removes its write protection and
 * marks the layout stale. No flush may be in progress. */
void vv_tiles_detach(struct varve *v, struct vv_region *r);
/* Removes all write protection and marks everything dirty, before a restart writes to the regions.
 * No flush may be in progress. */
void vv_tiles_unprotect_all(struct varve *v);

static inline size_t vv_tiles_chunk(const struct vv_tiles *t, size_t group)
{
	return group * t->geometry.group_chunks;
}

static inline size_t vv_tiles_chunk_end(const struct vv_tiles *t, const struct vv_region *r, size_t group)
{
	size_t end = (group + 1) * t->geometry.group_chunks;

	return end < r->n_chunks ? end : r->n_chunks;
}

static inline size_t vv_tiles_group_len(const struct vv_tiles *t, const struct vv_region *r, size_t group)
{
	uint64_t left = r->shape.len - (uint64_t)group * t->geometry.group_len;

	return left < t->geometry.group_len ? (size_t)left : t->geometry.group_len;
}

static inline bool vv_tiles_is_dirty(const struct vv_tiles *t, const struct vv_region *r, size_t group)
{
	return t->geometry.dirty[r->tracked->first_word + group / 64] >> group % 64 & 1;
}

/* The first dirty group from this one on; n_groups if there is none. */
size_t vv_tiles_next_dirty(const struct vv_tiles *t, const struct vv_region *r, size_t group);

/* The first group of a tile, within its region. */
static inline size_t vv_tiles_group(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	return (tile - r->tracked->first_tile) * t->geometry.tile_groups;
}

/* One more than the number of the last chunk. Chunks are numbered in the order of memory. */
static inline uint64_t vv_tiles_end_number(const struct vv_tiles *t)
{
	return (uint64_t)t->geometry.n * t->geometry.tile_groups * t->geometry.group_chunks;
}

struct vv_region *vv_tiles_region(const struct vv_tiles *t, size_t tile);
/* Mask of the groups to be hashed in the epoch in progress. After a failure: of the groups that the
 * next epoch must hash. */
uint64_t vv_tiles_dirty(const struct vv_tiles *t, const struct vv_region *r, size_t tile);
/* Mask of the dirty groups that are not known to be stored. */
uint64_t vv_tiles_todo(const struct vv_tiles *t, const struct vv_region *r, size_t tile);
void vv_tiles_set_dirty(struct vv_tiles *t, const struct vv_region *r, size_t tile, uint64_t groups);
void vv_tiles_set_todo(struct vv_tiles *t, const struct vv_region *r, size_t tile, uint64_t groups);
/* The next tile that may hold unprotectable groups: the first two and the last three of a region,
 * or all. A tile of one group may be shorter than a page, and the last one may have one byte. */
static inline size_t vv_tiles_next_unprotectable(const struct vv_region *r, size_t tile)
{
	size_t last = r->tracked->first_tile + r->tracked->n_tiles - 3;

	return r->tracked->lo == r->tracked->hi || tile + 1 >= last || tile == r->tracked->first_tile ? tile + 1 : last;
}

/* Mask of the groups of a tile. */
uint64_t vv_tiles_groups(const struct vv_tiles *t, const struct vv_region *r, size_t tile);
/* Mask of its groups with a copy. */
uint64_t vv_tiles_copied(const struct vv_tiles *t, const struct vv_region *r, size_t tile);
/* Mask of its groups that cannot be write-protected. */
uint64_t vv_tiles_unprotectable(const struct vv_tiles *t, const struct vv_region *r, size_t tile);
/* The bytes of a group: in its cell, or in the region. */
const uint8_t *vv_tiles_bytes(const struct vv_tiles *t, const struct vv_region *r, size_t group);
/* Its pages that can be write-protected; lo == hi if there are none. */
void vv_tiles_pages(const struct vv_tiles *t, const struct vv_region *r, size_t tile, uintptr_t *lo, uintptr_t *hi);

/* Under the lock. Takes cells for all groups of a mask, or none and returns false. */
bool vv_tiles_take_cells(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups);
/* Under the lock. The same, but beyond the buffer, for groups that are being changed now. */
bool vv_tiles_take_extra_cells(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups);
/* Copies the bytes of groups whose cells were just taken. */
void vv_tiles_copy(const struct vv_tiles *t, const struct vv_region *r, size_t tile, uint64_t groups);
/* Under the lock. */
void vv_tiles_free_cells(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups);
/* Under the lock. All content of the tile is stored. */
void vv_tiles_done(struct vv_tiles *t, size_t tile);
/* Adds the write faults so far to the statistics of the epoch in progress. */
void vv_tiles_sum(struct varve *v, struct varve_stats *st);
/* The epoch is accepted: the new chunk states of its tiles become the known ones. */
void vv_tiles_accept(struct varve *v);
/* The flush has ended, well or not. No tile waits any more. */
void vv_tiles_end(struct varve *v, bool ok);
/* After vv_tiles_end: removes protection that only the flush needed. This takes long, so it comes
 * after the result of the epoch is reported. */
void vv_tiles_unprotect_stored(struct varve *v);

#endif
