/* The data of kernels: spans of memory as numbered grains, the table of known digests, and a batch
 * of changed grains. */
#ifndef VV_GPU_KERNEL_TYPES_H
#define VV_GPU_KERNEL_TYPES_H

#include "gpu/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	/* tiles that are counted together */
	VV_GPU_GROUP = 256,
	VV_GPU_GROUP_NUMBERS = VV_GPU_GROUP * VV_GRAIN_TILE,
	VV_GPU_GROUPS = VV_GRAIN_SLICE / VV_GPU_GROUP_NUMBERS,            /* in a slice */
	VV_GPU_BLOCK = 256,                                               /* threads */
	VV_GPU_EACH = 8,                                                  /* items of a thread */
	VV_GPU_PORTION = VV_GPU_BLOCK * VV_GPU_EACH,                      /* items of a block */
	/* slices that the fused pass may be ahead, and a batch may have */
	VV_GPU_AHEAD = 16,
};

/* An item is a changed grain: its number in the batch, and these bits. */
#define VV_GPU_ZERO (1u << 31)
#define VV_GPU_ASIDE (1u << 30) /* has no entry in the map: no room */
/* another item of the batch may have its digest; after vv_origins_judge */
#define VV_GPU_SHARED (1u << 29)
#define VV_GPU_NUMBER (VV_GPU_SHARED - 1)

struct vv_gpu_span {
	const uint8_t *p;
	uint32_t first, n;
	uint32_t had; /* number of its first grains that have a digest from the last epoch */
};

/* The state of all numbers across epochs, and the findings of the fused pass. */
struct vv_gpu_numbers {
	struct vv_gpu_span *span; /* ascending */
	uint32_t n_span;
	uint32_t chunk;
	struct vv_digest blank;  /* digest of a grain of zeros */
	struct vv_digest *digest;
	/* A sum of the tile's digests with its first bit set; all bits 0: none. */
	struct vv_digest *tile;
	uint32_t *changed;       /* a bit per number */
	uint32_t *zero;          /* of those that have changed */
	/* Per group: changed, << 32: not zero. After vv_fused_tally: the sums over the groups
	 * before it in its slice. */
	uint64_t *count;
};

/* A generation of the known map. A slot is free (place = VV_GPU_FREE), claimed by an item of the
 * batch, or holds a key and its place. */
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
	uint32_t entered;  /* digests entered into the young generation, promoted ones included */
	uint32_t shared;   /* items with VV_GPU_SHARED */
	uint32_t here;     /* COPY of this epoch's data; after vv_origins_resolve */
	uint32_t pieces;   /* after vv_found_pieces_emit, or vv_nodes_emit */
	/* as entered and promoted, in the map of nodes; after vv_nodes_* */
	uint32_t nodes, nodes_promoted;
	/* After vv_repeat_compare: ~(number << 32 | back) of the first item whose bytes contradict
	 * its digest. 0: there is none. */
	uint64_t differ;
};

/* Each as large as the slots. slot and order are of the shared items, after vv_origins_place. */
struct vv_gpu_sorting {
	uint32_t *slot, *order, *order_too;
	void *temp; /* vv_sort_bytes */
};

/* Slots that more than one item has come to. One bit stands for all slots equal modulo `bits`:
 * false positives occur, false negatives do not. */
struct vv_gpu_filter {
	uint32_t *once, *twice; /* share the memory of `piece`, which is not needed yet */
	uint32_t bits;          /* a power of two; 0: no filter */
};

/* The work on a batch of at most VV_GRAIN_SLICE items. */
struct vv_gpu_batch {
	struct vv_gpu_numbers of;
	uint32_t first;        /* number; the first of a slice */
	uint32_t n;            /* items */
	uint32_t take;         /* number of the first items, of those not zero, that use the map */
	uint32_t ordinal;
	bool by_number;        /* places are numbers, not ranks among the data (adopt) */
	uint64_t base;         /* number of grains in the data so far */
	struct vv_gpu_table young, aged;
	struct vv_gpu_table young_nodes, aged_nodes; /* of the method tree */

	uint32_t *item;
	/* Per item, in young; for items without an entry, one more than the last. */
	uint32_t *slot;
	uint64_t *from;        /* per item, as in vv_piece */
	uint32_t *fresh;       /* absolute numbers of the NEW items */
	uint32_t *back;        /* per item, as in REPEAT; 0: none */
	uint64_t *portion;     /* per block of VV_GPU_PORTION items */
	struct vv_gpu_counts *counts;
	struct vv_piece *piece;
	struct vv_gpu_filter filter;
	struct vv_gpu_sorting sorting;
	/* tree, per item; shares the memory of `back`, which is no longer needed then */
	uint8_t *height;
	/* tree, per item; shares the memory of `piece`, which is not needed yet */
	struct vv_digest *node;
};

#ifdef __cplusplus
}
#endif

#endif
