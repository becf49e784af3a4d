/* The regions' memory in tiles, and what stands between the program and the flush of an epoch.
 *
 * A region is cut into chunks (the unit of dedup), groups of chunks (about a page: the unit of copying; a copy lies in a
 * cell of the buffer) and tiles of up to 64 groups (the unit of order, of fences and of history). Pages are the kernel's:
 * a region need not begin on one, so the page at the border of two tiles opens only when both may be written, and the groups
 * at a region's ends, whose pages it does not own, are never write-protected, always copied.
 *
 * A tile that is to be stored is SCHEDULED (core/plan/write_order.c), is hashed and deduped (what is stored already is let go), placed
 * into blocks, and PROCESSED when those are written. A write to a tile that is write-protected asks engine/memory/write_fault.c, which copies it, or
 * waits. Everything here is under one lock, but for the reading and copying of bytes, which flags announce. */
#ifndef VV_ENGINE_MEMORY_TILES_H
#define VV_ENGINE_MEMORY_TILES_H

#include "engine/memory/tile_state.h"

enum {
	VV_TILE_OPEN = 1,     /* writes to it go through */
	VV_TILE_HASHING = 2,  /* being read */
	VV_TILE_HASHED = 4,
	VV_TILE_COPYING = 8,  /* being copied */
	VV_TILE_READ_IN_PLACE = 16,  /* being stored from where it lies: not to be changed */
	VV_TILE_PLACED = 32,
	VV_TILE_CALLER_WAITS = 64,    /* the caller of the checkpoint waits for it */
};

struct vv_tile {
	uint32_t digest_slot;     /* 1 + where the digests of its dirty groups' chunks are, from hashing to placing */
	uint32_t in_blocks; /* chunks handed to the flush and not written yet */
	uint8_t flags;
	uint8_t queue_flags;        /* the flusher's own flags */
	bool is_unchanged;         /* hashed: nothing changed, and nothing in it is older than the session */
};

enum {
	VV_TILE_QUEUED = 1, /* a task is to hash it */
	VV_TILE_DEDUPED = 2,
};

/* Its locks; all else is zero to begin with, and goes with the layout. */
void vv_tiles_init(struct vv_tiles *t);
void vv_tiles_fini(struct vv_tiles *t);
/* Under the lock, with no flush under way: until no thread is in vv_write_fault_handle. */
void vv_tiles_wait_handlers(struct vv_tiles *t);
/* The region, if it is write-protected, no longer is: all of it is open. Who asks for a page of it just now is let through. */
void vv_tiles_unprotect(struct vv_tiles *t, struct vv_region *r);
/* The region's memory is about to go, move or change its size: fences are lifted, the layout is stale. No flush is under way. */
void vv_tiles_detach(struct varve *v, struct vv_region *r);
/* All fences are lifted, and everything counts as dirty: before a restart writes into the regions. No flush is under way. */
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

/* The first group of a tile, within its region. */
static inline size_t vv_tiles_group(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	return (tile - r->tracked->first_tile) * t->geometry.tile_groups;
}

/* The number after that of the last chunk, where chunks are counted in the order of memory. */
static inline uint64_t vv_tiles_end_number(const struct vv_tiles *t)
{
	return (uint64_t)t->geometry.n * t->geometry.tile_groups * t->geometry.group_chunks;
}

struct vv_region *vv_tiles_region(const struct vv_tiles *t, size_t tile);
/* Mask of the groups that the epoch under way looks at; after a failure, that the next one must. */
uint64_t vv_tiles_dirty(const struct vv_tiles *t, const struct vv_region *r, size_t tile);
/* Mask of those of them that are not known to be stored. */
uint64_t vv_tiles_todo(const struct vv_tiles *t, const struct vv_region *r, size_t tile);
void vv_tiles_set_dirty(struct vv_tiles *t, const struct vv_region *r, size_t tile, uint64_t groups);
void vv_tiles_set_todo(struct vv_tiles *t, const struct vv_region *r, size_t tile, uint64_t groups);
/* Tiles that may hold groups that cannot be write-protected: the first two and the last two, or all. */
static inline size_t vv_tiles_next_unprotectable(const struct vv_region *r, size_t tile)
{
	size_t last = r->tracked->first_tile + r->tracked->n_tiles - 2;

	return r->tracked->lo == r->tracked->hi || tile + 1 >= last || tile == r->tracked->first_tile ? tile + 1 : last;
}

/* Mask of the groups that a tile has. */
uint64_t vv_tiles_groups(const struct vv_tiles *t, const struct vv_region *r, size_t tile);
/* Mask of those of its groups that have a copy. */
uint64_t vv_tiles_copied(const struct vv_tiles *t, const struct vv_region *r, size_t tile);
/* Mask of those of its groups that cannot be write-protected. */
uint64_t vv_tiles_unprotectable(const struct vv_tiles *t, const struct vv_region *r, size_t tile);
/* Where a group's bytes are: in its cell, or where they lie. */
const uint8_t *vv_tiles_bytes(const struct vv_tiles *t, const struct vv_region *r, size_t group);
/* Its pages, as far as they can be write-protected; lo == hi if it has none. */
void vv_tiles_pages(const struct vv_tiles *t, const struct vv_region *r, size_t tile, uintptr_t *lo, uintptr_t *hi);

/* Cells for the groups of a mask, all or none. */
bool vv_tiles_take_cells(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups);
/* The same beyond the buffer, for groups that are being changed at this moment. */
bool vv_tiles_take_extra_cells(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups);
/* Copies the bytes of groups whose cells were just taken. */
void vv_tiles_copy(const struct vv_tiles *t, const struct vv_region *r, size_t tile, uint64_t groups);
void vv_tiles_free_cells(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups);

/* Everything of the tile is stored. */
void vv_tiles_done(struct vv_tiles *t, size_t tile);
/* What the program's threads met so far, into the statistics of the epoch under way. */
void vv_tiles_sum(struct varve *v, struct varve_stats *st);
/* The epoch counts: what its tiles hold now is what they held. */
void vv_tiles_accept(struct varve *v);
/* The flush is over, well or not: no tile waits any more, fences that only it needed are lifted. */
void vv_tiles_end(struct varve *v, bool ok);

#endif
