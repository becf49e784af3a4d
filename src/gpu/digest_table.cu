#include "gpu/block_scan.cuh"
#include "gpu/digest_table.cuh"
#include "gpu/launch.cuh"

__device__ bool is_dead(uint64_t place, const uint32_t *dead, uint32_t n)
{
	uint32_t ordinal = (uint32_t)(place >> 40), lo = 0, hi = n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (dead[mid] < ordinal)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && dead[lo] == ordinal;
}

/* All keys differ, so the first free slot will do. */
__device__ void put(const vv_gpu_table &t, vv_digest d, uint64_t place)
{
	uint32_t at = home_of(t, d);

	while (swap_if(&t.place[at], VV_GPU_FREE, place) != VV_GPU_FREE)
		at = after(t, at);
	store(&t.key[at], d);
}

__global__ void move(const vv_gpu_table from, const vv_gpu_table to, const vv_gpu_table also, const uint32_t *dead, uint32_t n_dead,
		     vv_gpu_moved *moved)
{
	uint32_t at = blockIdx.x * VV_GPU_BLOCK + threadIdx.x;
	uint64_t place = at < from.slots ? from.place[at] : VV_GPU_FREE;
	bool taken = !(place & VV_GPU_CLAIM) && !is_dead(place, dead, n_dead), both = false;

	if (taken) {
		vv_digest d = load(&from.key[at]);

		put(to, d, place);
		both = find(also, d) != VV_GPU_FREE;
	}
	count_block(taken, &moved->n);
	count_block(both, &moved->both);
}

int vv_digest_table_move(const struct vv_gpu_table *from, const struct vv_gpu_table *to, const struct vv_gpu_table *also, const uint32_t *dead,
		  uint32_t n_dead, struct vv_gpu_moved *moved, cudaStream_t stream)
{
	return launch("moving what is known", move, blocks_for(from->slots, VV_GPU_BLOCK), stream, *from, *to, *also, dead, n_dead, moved);
}
