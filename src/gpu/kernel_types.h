/* What kernels work on: spans of memory as numbered grains, the table of known digests, and a batch of changed grains. */
#ifndef VV_GPU_KERNEL_TYPES_H
#define VV_GPU_KERNEL_TYPES_H

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

#ifdef __cplusplus
}
#endif

#endif
