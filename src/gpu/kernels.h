/* What runs on the device, as plain C functions that begin it on a stream: 0, or an error of the runtime as in gpu/cuda.h.
 *
 * A pass is made of: fused (digests, and what has changed), then for a batch of slices kinds (where each grain that has changed comes
 * from), for the method run repeats, for tree nodes, and pieces. Numbers within a batch are relative to its first. */
#ifndef VV_GPU_KERNELS_H
#define VV_GPU_KERNELS_H

#include "gpu/kernel_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- fused.cu */

/* Digests of the grains of these tiles; what differs from the last epoch is marked and remembered. All spans that they are in lie at multiples
 * of 16 bytes (aligned), or anywhere. */
int vv_fused_run(const struct vv_gpu_numbers *g, uint32_t tile, uint32_t tiles, bool aligned, cudaStream_t stream);
/* Sums up a slice's counts; the total also goes to *total, memory of the host. */
int vv_fused_tally(const struct vv_gpu_numbers *g, uint32_t slice, uint64_t *total, cudaStream_t stream);
/* Marks the grains of `range`, ascending, instead of those that have changed. */
int vv_fused_mark(const struct vv_gpu_numbers *g, uint32_t tiles, const struct vv_number_range *range, uint32_t n, cudaStream_t stream);

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
