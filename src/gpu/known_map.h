/* The known map of a set on the device: a young generation and an aged one.
 * core/dedup/known_grains.h is the host's. The kernels of origins.cu look up and enter; this unit
 * works between batches. All of it runs on one stream. */
#ifndef VV_GPU_KNOWN_MAP_H
#define VV_GPU_KNOWN_MAP_H

#include "gpu/kernels.h"

struct vv_known_map { /* all zero is the empty map, of limit 0 */
	struct vv_gpu_table young, aged;
	size_t n_young, n_aged; /* entries */
	size_t limit;
	size_t usual;       /* the probable number of entries */
	size_t both;        /* entries of aged that are in young, too */
	uint64_t forgotten; /* digests dropped so far because there was no room */
};

void vv_known_map_fini(struct vv_known_map *m);
/* Limits the entries of each generation from now on; a generation above the limit is emptied. */
int vv_known_map_limit(struct vv_known_map *m, size_t limit, size_t usual, cudaStream_t stream);
void vv_known_map_clear(struct vv_known_map *m);
/* Prepares for a slice with n digests, of which the first *take may be entered. */
int vv_known_map_begin(struct vv_known_map *m, size_t n, size_t *take, cudaStream_t stream);
/* Reports the result of a slice. */
void vv_known_map_end(struct vv_known_map *m, size_t entered, size_t promoted);
/* Removes all entries of these ordinals, which are ascending. Also after an unfinished pass. */
int vv_known_map_kill(struct vv_known_map *m, const uint32_t *dead, size_t n, cudaStream_t stream);

#endif
