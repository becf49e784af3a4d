/* The sieve of device memory: vv_space_cuda's half of struct vv_space. */
#ifndef VV_GPU_GPU_SIEVE_H
#define VV_GPU_GPU_SIEVE_H

#include "gpu/known_map.h"
#include "gpu/numbers.h"
#include "gpu/outlet.h"
#include "gpu/work.h"

enum {
	/* Streams of the fused pass, used in turn: the end of a slice overlaps the beginning of the
	 * next. */
	VV_GPU_LANES = 2,
};

struct vv_gpu_sieve {
	struct vv_sieve base; /* first */
	struct vv_numbers numbers;
	struct vv_known_map known;
	struct vv_known_map nodes; /* of the method tree */
	struct vv_work work;
	struct vv_outlet outlet;
	cudaStream_t lane[VV_GPU_LANES], stream; /* lane: the fused pass; stream: all else */
	cudaEvent_t fused[VV_GPU_AHEAD];
	cudaEvent_t judged, done; /* halfway through a batch; at its end */
	/* the fresh numbers are written; they are not needed any more */
	cudaEvent_t placed[VV_WORK_TURNS], gathered[VV_WORK_TURNS];
	uint32_t *dead; /* forgotten ordinals that may still be in the maps */
	size_t n_dead, cap_dead;
};

int vv_gpu_sieve_open(const struct vv_sieve_options *opt, struct vv_pool *pool, struct vv_sieve **out);
void vv_gpu_sieve_close(struct vv_sieve *s);
int vv_gpu_sieve_pass(struct vv_sieve *s, struct vv_span *span, size_t n, uint32_t ordinal, const struct vv_sink *sink);
int vv_gpu_sieve_begin(struct vv_sieve *s, struct vv_span *span, size_t n);
int vv_gpu_sieve_learn(struct vv_sieve *s, const struct vv_grain_bytes *lesson, size_t n);
int vv_gpu_sieve_adopt(struct vv_sieve *s, uint32_t ordinal, const struct vv_number_range *usable, size_t n_usable);
void vv_gpu_sieve_forget(struct vv_sieve *s, uint32_t ordinal);

static inline bool vv_gpu_sieve_looks_up(const struct vv_gpu_sieve *s)
{
	return s->base.opt.method >= VV_METHOD_LIST;
}

#endif
