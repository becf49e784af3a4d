/* What runs on the device, as plain C functions that begin it on a stream: 0, or an error of the runtime as in gpu/cuda.h.
 *
 * A pass is made of: fused (digests, and what has changed), then for a batch of slices kinds (where each grain that has changed comes
 * from), for the method run repeats, for tree nodes, and pieces. Numbers within a batch are relative to its first. */
#ifndef VV_GPU_KERNELS_H
#define VV_GPU_KERNELS_H

#include "gpu/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	VV_GPU_GROUP = 256,                                               /* tiles that are counted together */
	VV_GPU_GROUP_NUMBERS = VV_GPU_GROUP * VV_GRAIN_TILE,
	VV_GPU_GROUPS = VV_GRAIN_SLICE / VV_GPU_GROUP_NUMBERS,            /* in a slice */
	VV_GPU_BLOCK = 256,                                               /* threads */
	VV_GPU_EACH = 8,                                                  /* items of a thread */
	VV_GPU_PORTION = VV_GPU_BLOCK * VV_GPU_EACH,                      /* items of a block */
	VV_GPU_AHEAD = 16,                                                /* slices that the fused pass may be ahead, and a batch may have */
};

/* A grain that has changed: its number in the batch, and these bits. */
#define VV_GPU_ZERO (1u << 31)
#define VV_GPU_ASIDE (1u << 30) /* takes no part in the map: there is no room for it */
#define VV_GPU_SHARED (1u << 29) /* another item of the batch may have its digest; after vv_origins_judge */
#define VV_GPU_NUMBER (VV_GPU_SHARED - 1)

struct vv_gpu_span {
	const uint8_t *p;
	uint32_t first, n;
	uint32_t had; /* so many of its grains, the first, have a digest from the last epoch */
};

/* What is remembered of all numbers, and what the fused pass found out. */
struct vv_gpu_numbers {
	struct vv_gpu_span *span; /* ascending */
	uint32_t n_span;
	uint32_t chunk;
	struct vv_digest blank;  /* that of a grain of zeros */
	struct vv_digest *digest;
	struct vv_digest *tile;  /* a sum of the tile's digests; its first bit is set, or all are 0: none */
	uint32_t *changed;       /* a bit per number */
	uint32_t *zero;          /* of those that have changed */
	uint64_t *count;         /* per group: changed, << 32: not zero. After vv_fused_tally: the sums over the groups before it in its slice */
};

/* A generation of the known map. A slot is free (place = VV_GPU_FREE), claimed by an item of the batch, or holds a key and its place. */
#define VV_GPU_FREE UINT64_MAX
#define VV_GPU_CLAIM (1ull << 63)

struct vv_gpu_table {
	struct vv_digest *key;
	uint64_t *place;
	uint32_t slots; /* 0: no table */
};

struct vv_gpu_counts { /* of a batch */
	uint32_t fresh;    /* NEW */
	uint32_t copies;   /* COPY */
	uint32_t promoted; /* of them, those found in the aged generation */
	uint32_t entered;  /* digests that came into the young one, those included */
	uint32_t shared;   /* items with VV_GPU_SHARED */
	uint32_t here;     /* COPY of this epoch's data; after vv_origins_resolve */
	uint32_t pieces;   /* after vv_found_pieces_emit, or vv_nodes_emit */
	uint32_t nodes, nodes_promoted; /* as entered and promoted, in the map of nodes; after vv_nodes_* */
	/* after vv_repeat_compare: ~(number << 32 | back) of the first item whose bytes are not what its digest says; 0: there is none */
	uint64_t differ;
};

struct vv_gpu_sorting { /* each as large as the slots; slot and order after vv_origins_place: of the items that are shared */
	uint32_t *slot, *order, *order_too;
	void *temp; /* vv_sort_bytes */
};

/* Which slots more than one item has come to: a bit for all slots that are alike modulo the bits, so it says yes too often, but never no. */
struct vv_gpu_filter {
	uint32_t *once, *twice; /* in the place of `piece`, which is not needed yet */
	uint32_t bits;          /* a power of two; 0: nobody wants to know */
};

/* The work on a batch of at most VV_GRAIN_SLICE items. */
struct vv_gpu_batch {
	struct vv_gpu_numbers of;
	uint32_t first;        /* number; the first of a slice */
	uint32_t n;            /* items */
	uint32_t take;         /* of those that are not zero, the first so many take part in the map */
	uint32_t ordinal;
	bool by_number;        /* places are numbers, not ranks among the data (adopt) */
	uint64_t base;         /* grains that the data has already */
	struct vv_gpu_table young, aged;
	struct vv_gpu_table young_nodes, aged_nodes; /* of the method tree */

	uint32_t *item;
	uint32_t *slot;        /* per item, in young; for those that take no part, one more than the last */
	uint64_t *from;        /* per item, as in vv_piece */
	uint32_t *fresh;       /* numbers (not in the batch) of the items that are NEW */
	uint32_t *back;        /* per item, as in REPEAT; 0: none */
	uint64_t *portion;     /* per block of VV_GPU_PORTION items */
	struct vv_gpu_counts *counts;
	struct vv_piece *piece;
	struct vv_gpu_filter filter;
	struct vv_gpu_sorting sorting;
	uint8_t *height;        /* tree, per item; in the place of `back`, which is not needed any more then */
	struct vv_digest *node; /* tree, per item; in the place of `piece`, which is not needed yet */
};

/* ---- fused.cu */

/* Digests of the grains of these tiles; what differs from the last epoch is marked and remembered. All spans that they are in lie at multiples
 * of 16 bytes (aligned), or anywhere. */
int vv_fused_run(const struct vv_gpu_numbers *g, uint32_t tile, uint32_t tiles, bool aligned, cudaStream_t stream);
/* Sums up a slice's counts; the total also goes to *total, memory of the host. */
int vv_fused_tally(const struct vv_gpu_numbers *g, uint32_t slice, uint64_t *total, cudaStream_t stream);
/* Marks the grains of `range`, ascending, instead of those that have changed. */
int vv_fused_mark(const struct vv_gpu_numbers *g, uint32_t tiles, const struct vv_range *range, uint32_t n, cudaStream_t stream);

/* ---- digest_table.cu */

struct vv_gpu_moved {
	uint32_t n, both; /* entries; those of them that are in `also`, too */
};

/* The entries of `from` that are of none of the ordinals in dead (ascending, in device memory) go into the empty table `to`; claims of a batch
 * that came to no end do not. Adds to *moved. */
int vv_digest_table_move(const struct vv_gpu_table *from, const struct vv_gpu_table *to, const struct vv_gpu_table *also, const uint32_t *dead,
		  uint32_t n_dead, struct vv_gpu_moved *moved, cudaStream_t stream);

/* ---- origins.cu; one after the other */

struct vv_gpu_starts {
	uint32_t item[VV_GPU_AHEAD]; /* the first of each slice of the batch */
};

/* The items of numbers b->first..end-1. */
int vv_origins_expand(const struct vv_gpu_batch *b, uint32_t end, const struct vv_gpu_starts *starts, cudaStream_t stream);
int vv_origins_plain(const struct vv_gpu_batch *b, cudaStream_t stream);   /* basic: all are NEW, and nothing more is needed */
int vv_origins_claim(const struct vv_gpu_batch *b, cudaStream_t stream);   /* slots */
int vv_origins_judge(const struct vv_gpu_batch *b, cudaStream_t stream);   /* counts */
int vv_origins_place(const struct vv_gpu_batch *b, cudaStream_t stream);   /* fresh, and what is shared */
int vv_origins_resolve(const struct vv_gpu_batch *b, cudaStream_t stream); /* from, and the map is complete */

/* ---- sort.cu */

/* Sorts n pairs by the key's lowest bits, stable. They are in key[0] and value[0], before and after: with the arrays [1] they change places
 * on the way. temp: device memory of vv_sort_bytes(n). */
int vv_sort_pairs(uint32_t *key[2], uint32_t *value[2], uint32_t n, unsigned bits, void *temp, cudaStream_t stream);
size_t vv_sort_bytes(uint32_t n);

/* ---- repeat.cu */

/* back: how far before it the nearest item lies that is in its slice and has the same digest; of so many items that are shared, all others have
 * none. The slots are in disorder afterwards. */
int vv_repeat_back(const struct vv_gpu_batch *b, uint32_t shared, cudaStream_t stream);
/* Compares the bytes of ZERO with zero, and those of COPY with what `back` says. */
int vv_repeat_compare(const struct vv_gpu_batch *b, cudaStream_t stream);
/* COPY becomes REPEAT where that makes fewer pieces. */
int vv_repeat_choose(const struct vv_gpu_batch *b, cudaStream_t stream);

/* ---- nodes.cu; when all is resolved */

int vv_nodes_new(const struct vv_gpu_batch *b, cudaStream_t stream);    /* those that are new become known */
int vv_nodes_copies(const struct vv_gpu_batch *b, cudaStream_t stream); /* then: those that are known */
int vv_nodes_emit(const struct vv_gpu_batch *b, cudaStream_t stream);   /* in place of vv_found_pieces_emit */

/* ---- found_pieces.cu */

int vv_found_pieces_emit(const struct vv_gpu_batch *b, cudaStream_t stream);
/* Counts, and with `piece` all pieces, to memory of the host. Not by a copy, which would have to wait behind those of the data. */
int vv_found_pieces_report(const struct vv_gpu_batch *b, struct vv_gpu_counts *counts, struct vv_piece *piece, cudaStream_t stream);
/* The grains of these numbers, one after the other. */
int vv_found_pieces_gather(const struct vv_gpu_numbers *g, const uint32_t *number, uint32_t n, uint8_t *to, cudaStream_t stream);

/* ---- land.cu */

struct vv_gpu_landing { /* a room that has come to the device */
	const uint8_t *bytes;
	const struct vv_device_inlet_move *move;
	const struct vv_device_inlet_check *check;
	uint32_t n_moves, n_checks;
	uint8_t *to;
	uint32_t *differs; /* memory of the host; becomes 1 where a check says so */
};

int vv_land_run(const struct vv_gpu_landing *l, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
