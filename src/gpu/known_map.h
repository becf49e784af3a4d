/* The known map of a set on the device, as core/dedup/known_grains.h has it for the host: a young generation and an aged one. The kernels of origins.cu look
 * into it and enter; here is what happens between batches. All of it is on one stream. */
#ifndef VV_GPU_KNOWN_MAP_H
#define VV_GPU_KNOWN_MAP_H

#include "gpu/kernels.h"

struct vv_known_map { /* all zero is the empty map, of limit 0 */
	struct vv_gpu_table young, aged;
	size_t n_young, n_aged; /* entries */
	size_t limit;
	size_t usual;       /* as many as there will probably be */
	size_t both;        /* entries of aged that are in young, too */
	uint64_t forgotten; /* digests so far that are not known because there was no room */
};

void vv_known_map_fini(struct vv_known_map *m);
/* At most so many entries in each generation from now on; a generation that has more is emptied. */
int vv_known_map_limit(struct vv_known_map *m, size_t limit, size_t usual, cudaStream_t stream);
void vv_known_map_clear(struct vv_known_map *m);
/* A slice with n digests will be looked up, of which the first *take may enter. */
int vv_known_map_begin(struct vv_known_map *m, size_t n, size_t *take, cudaStream_t stream);
/* What became of it. */
void vv_known_map_end(struct vv_known_map *m, size_t entered, size_t promoted);
/* Nothing is at places of these ordinals, which are ascending. Also after a pass that came to no end. */
int vv_known_map_kill(struct vv_known_map *m, const uint32_t *dead, size_t n, cudaStream_t stream);

#endif
