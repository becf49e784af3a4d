/* Access of kernels to the items of a batch. */
#ifndef VV_GPU_BATCH_CUH
#define VV_GPU_BATCH_CUH

#include "gpu/device.cuh"
#include "gpu/launch.cuh"

#define KIND(k) ((uint64_t)(k) << 62)

__device__ __forceinline__ uint64_t kind_of(uint64_t from)
{
	return from >> 62;
}

__device__ __forceinline__ bool is_copy(uint64_t from)
{
	return kind_of(from) == VV_PIECE_COPY;
}

__device__ __forceinline__ uint32_t ordinal_of(uint64_t from)
{
	return (uint32_t)(from >> 40) % VV_GRAIN_ORDINALS;
}

__device__ __forceinline__ uint32_t number_of(const vv_gpu_batch &b, uint32_t i)
{
	return b.item[i] & VV_GPU_NUMBER;
}

__device__ __forceinline__ vv_digest digest_of(const vv_gpu_batch &b, uint32_t i)
{
	return load(&b.of.digest[b.first + number_of(b, i)]);
}

/* The first byte of a grain. */
__device__ __forceinline__ const uint8_t *bytes_of(const vv_gpu_numbers &g, uint32_t number)
{
	const vv_gpu_span &s = span_of(g, number);

	return s.p + (uint64_t)(number - s.first) * g.chunk;
}

/* The item of this lane in a round. A block has VV_GPU_PORTION items; each warp has an equal
 * contiguous share and handles it in VV_GPU_EACH rounds. */
__device__ __forceinline__ uint32_t item_of(int round)
{
	return blockIdx.x * VV_GPU_PORTION + threadIdx.x / WARP * (WARP * VV_GPU_EACH) + round * WARP + lane_of();
}

/* The number of lanes up to this one with their bit set. */
__device__ __forceinline__ uint32_t up_to_here(uint32_t ballot)
{
	return __popc(ballot & low_bits(lane_of() + 1));
}

/* Is item i next to the item before it, in the same slice? */
__device__ __forceinline__ bool adjoins(const vv_gpu_batch &b, uint32_t i)
{
	return i > 0 && number_of(b, i) % VV_GRAIN_SLICE && number_of(b, i) == number_of(b, i - 1) + 1;
}

/* And does it continue the piece of that item? */
__device__ __forceinline__ bool goes_on(const vv_gpu_batch &b, uint32_t i)
{
	uint64_t before, from;
	bool steps;

	if (!adjoins(b, i))
		return false;
	before = b.from[i - 1];
	from = b.from[i];
	steps = kind_of(from) == VV_PIECE_NEW || kind_of(from) == VV_PIECE_COPY;
	return from == before + steps;
}

/* A thread for each item. */
static inline int launch_items(const char *what, void (*kernel)(vv_gpu_batch), const vv_gpu_batch *b, cudaStream_t stream)
{
	return launch(what, kernel, blocks_for(b->n, VV_GPU_BLOCK), stream, *b);
}

/* A block for each portion. */
static inline int launch_portions(const char *what, void (*kernel)(vv_gpu_batch), const vv_gpu_batch *b, cudaStream_t stream)
{
	return launch(what, kernel, blocks_for(b->n, VV_GPU_PORTION), stream, *b);
}

#endif
