/* Work of the device, as plain C functions that begin it on a stream. They return 0, or an error of
 * the runtime as in gpu/cuda.h.
 *
 * A pass begins with fused.cu: digests and changes. A batch of slices then goes through origins.cu,
 * which finds the origin of each changed grain. Then come repeat.cu (method run) or nodes.cu
 * (method tree), and found_pieces.cu. Numbers within a batch are relative to its first. */
#ifndef VV_GPU_KERNELS_H
#define VV_GPU_KERNELS_H

#include "gpu/kernel_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- fused.cu -------------------------------------------------------------------------------- */

/* Computes the digests of the grains of these tiles; marks and stores those that differ from the
 * last epoch. If `aligned`, all spans of the tiles begin at multiples of 16 bytes. */
int vv_fused_run(const struct vv_gpu_numbers *g, uint32_t tile, uint32_t tiles, bool aligned, cudaStream_t stream);
/* Sums the counts of a slice; the total also goes to *total in host memory. */
int vv_fused_tally(const struct vv_gpu_numbers *g, uint32_t slice, uint64_t *total, cudaStream_t stream);
/* Marks the grains of `range`, ascending, instead of the changed ones. */
int vv_fused_mark(const struct vv_gpu_numbers *g, uint32_t tiles, const struct vv_number_range *range, uint32_t n, cudaStream_t stream);

/* ---- digest_table.cu ------------------------------------------------------------------------- */

struct vv_gpu_moved {
	uint32_t n, both; /* entries; those that are also in `also` */
};

/* Moves entries of `from` into the empty table `to`, except those of ordinals in dead (ascending,
 * in device memory). Claims of an unfinished batch are not moved. Adds to *moved. */
int vv_digest_table_move(const struct vv_gpu_table *from, const struct vv_gpu_table *to, const struct vv_gpu_table *also, const uint32_t *dead,
		  uint32_t n_dead, struct vv_gpu_moved *moved, cudaStream_t stream);

/* ---- origins.cu, in this order --------------------------------------------------------------- */

struct vv_gpu_starts {
	uint32_t item[VV_GPU_AHEAD]; /* the first of each slice of the batch */
};

/* The items of numbers b->first..end-1. */
int vv_origins_expand(const struct vv_gpu_batch *b, uint32_t end, const struct vv_gpu_starts *starts, cudaStream_t stream);
/* basic: all are NEW, and no other step is needed */
int vv_origins_plain(const struct vv_gpu_batch *b, cudaStream_t stream);
int vv_origins_claim(const struct vv_gpu_batch *b, cudaStream_t stream);   /* slots */
int vv_origins_judge(const struct vv_gpu_batch *b, cudaStream_t stream);   /* counts */
/* fresh, and the shared items */
int vv_origins_place(const struct vv_gpu_batch *b, cudaStream_t stream);
/* from, and completes the map */
int vv_origins_resolve(const struct vv_gpu_batch *b, cudaStream_t stream);

/* ---- sort.cu --------------------------------------------------------------------------------- */

/* Sorts n pairs by the key's lowest bits, stable. Input and output are in key[0] and value[0]; the
 * arrays [1] are scratch. temp: device memory of vv_sort_bytes(n). */
int vv_sort_pairs(uint32_t *key[2], uint32_t *value[2], uint32_t n, unsigned bits, void *temp, cudaStream_t stream);
size_t vv_sort_bytes(uint32_t n);

/* ---- repeat.cu ------------------------------------------------------------------------------- */

/* Sets back: the distance to the nearest earlier item of the same slice with the same digest. Only
 * the `shared` items with VV_GPU_SHARED can have one. The slots are in disorder afterwards. */
int vv_repeat_back(const struct vv_gpu_batch *b, uint32_t shared, cudaStream_t stream);
/* Compares the bytes of ZERO with zero, and those of COPY with the grain at `back`. */
int vv_repeat_compare(const struct vv_gpu_batch *b, cudaStream_t stream);
/* COPY becomes REPEAT where that makes fewer pieces. */
int vv_repeat_choose(const struct vv_gpu_batch *b, cudaStream_t stream);

/* ---- nodes.cu, when all items are resolved --------------------------------------------------- */

/* enters new nodes into the map */
int vv_nodes_new(const struct vv_gpu_batch *b, cudaStream_t stream);
/* then: finds known nodes */
int vv_nodes_copies(const struct vv_gpu_batch *b, cudaStream_t stream);
/* instead of vv_found_pieces_emit */
int vv_nodes_emit(const struct vv_gpu_batch *b, cudaStream_t stream);

/* ---- found_pieces.cu ------------------------------------------------------------------------- */

int vv_found_pieces_emit(const struct vv_gpu_batch *b, cudaStream_t stream);
/* Writes the counts, and with `piece` all pieces, to host memory. A copy would have to wait for
 * those of the data. */
int vv_found_pieces_report(const struct vv_gpu_batch *b, struct vv_gpu_counts *counts, struct vv_piece *piece, cudaStream_t stream);
/* Copies the grains of these numbers, one after the other. */
int vv_found_pieces_gather(const struct vv_gpu_numbers *g, const uint32_t *number, uint32_t n, uint8_t *to, cudaStream_t stream);

/* ---- land.cu --------------------------------------------------------------------------------- */

struct vv_gpu_landing { /* a room that has arrived on the device */
	const uint8_t *bytes;
	const struct vv_device_inlet_move *move;
	const struct vv_device_inlet_check *check;
	uint32_t n_moves, n_checks;
	uint8_t *to;
	uint32_t *differs; /* in host memory; becomes 1 if a check fails */
};

int vv_land_run(const struct vv_gpu_landing *l, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
