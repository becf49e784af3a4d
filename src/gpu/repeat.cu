/* The method run: contents that this epoch has had before, a fixed way back. The nearest earlier item with the same digest is the one before it
 * among those of its slot, which is the same for all that have a digest. */
#include "gpu/batch.cuh"

/* ---- back */

__global__ void count_up(const vv_gpu_batch b)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x;

	if (i < b.n)
		b.sorting.order[i] = i;
}

/* slot and order are sorted by slot, and where that is the same by item. */
__global__ void look_back(const vv_gpu_batch b, const uint32_t *slot, const uint32_t *order)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x, back = 0;

	if (i >= b.n)
		return;
	if (i > 0 && slot[i] == slot[i - 1] && slot[i] != b.young.slots) {
		uint32_t number = number_of(b, order[i]), before = number_of(b, order[i - 1]);

		if (number / VV_GRAIN_SLICE == before / VV_GRAIN_SLICE)
			back = number - before;
	}
	b.back[order[i]] = back;
}

/* Bits that tell the slots apart, and the one that is none from them. */
static unsigned slot_bits(const vv_gpu_table *t)
{
	unsigned bits = 1;

	while (bits < 32 && t->slots >> bits)
		bits++;
	return bits;
}

int vv_repeat_back(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	const vv_gpu_sorting *s = &b->sorting;
	uint32_t *slot[2] = { b->slot, s->slot }, *order[2] = { s->order, s->order_too };
	int rc = launch_items("numbering items", count_up, b, stream);

	if (rc == 0)
		rc = vv_sort_pairs(slot, order, b->n, slot_bits(&b->young), s->temp, stream);
	return rc ? rc : launch("looking back", look_back, blocks_for(b->n, VV_GPU_BLOCK), stream, *b, slot[0], order[0]);
}

/* ---- compare */

__device__ bool same_bytes(const uint8_t *p, const uint8_t *q, uint32_t chunk)
{
	for (uint32_t at = 0; at < chunk; at += 16) {
		uint4 a = load_anywhere(p + at), b = q ? load_anywhere(q + at) : make_uint4(0, 0, 0, 0);

		if ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w))
			return false;
	}
	return true;
}

__global__ void compare(const vv_gpu_batch b)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x, number, back;
	bool zero;

	if (i >= b.n)
		return;
	number = b.first + number_of(b, i);
	zero = kind_of(b.from[i]) == VV_PIECE_ZERO;
	back = is_copy(b.from[i]) ? b.back[i] : 0;
	if ((zero || back) && !same_bytes(bytes_of(b.of, number), zero ? nullptr : bytes_of(b.of, number - back), b.of.chunk))
		atomicMax((unsigned long long *)&b.counts->differ, ~((unsigned long long)number << 32 | back));
}

int vv_repeat_compare(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return launch_items("comparing bytes", compare, b, stream);
}

/* ---- choose: an A-run, COPY of consecutive grains, becomes REPEAT if it is a proper part of a B-run, COPY from one distance */

__device__ __forceinline__ bool a_goes_on(const vv_gpu_batch &b, uint32_t i)
{
	return goes_on(b, i) && is_copy(b.from[i]);
}

__device__ __forceinline__ bool b_goes_on(const vv_gpu_batch &b, uint32_t i)
{
	return adjoins(b, i) && is_copy(b.from[i]) && is_copy(b.from[i - 1]) && b.back[i] && b.back[i] == b.back[i - 1];
}

/* Borders of A-runs, << 32: of B-runs, before item i. */
__device__ __forceinline__ uint64_t borders_at(const vv_gpu_batch &b, uint32_t i)
{
	return (uint64_t)!b_goes_on(b, i) << 32 | !a_goes_on(b, i);
}

__global__ void count_runs(const vv_gpu_batch b)
{
	uint32_t begin = first_item(), end = min(b.n, begin + VV_GPU_EACH);
	uint64_t mine = 0, all;

	for (uint32_t i = begin; i < end; i++)
		mine += borders_at(b, i);
	scan_block(mine, &all);
	if (threadIdx.x == 0)
		b.portion[blockIdx.x] = all;
}

/* Of each A-run: which B-run its first item is in and which its last (these are the same if it lies in one), and whether that goes beyond. */
struct ends {
	uint32_t *first, *last;
};

#define BEYOND (1u << 31)

/* Also, for each item, its A-run. */
__global__ void number_runs(const vv_gpu_batch b, ends e, uint32_t *run)
{
	uint32_t begin = first_item(), end = min(b.n, begin + VV_GPU_EACH);
	uint64_t mine = 0, all, before = before_block(b.portion, plus());

	for (uint32_t i = begin; i < end; i++)
		mine += borders_at(b, i);
	before += scan_block(mine, &all);
	for (uint32_t i = begin; i < end; i++) {
		before += borders_at(b, i);

		uint32_t a = (uint32_t)before - 1, in = (uint32_t)(before >> 32);

		run[i] = a;
		if (!a_goes_on(b, i))
			e.first[a] = in | (b_goes_on(b, i) ? BEYOND : 0);
		if (i + 1 == b.n || !a_goes_on(b, i + 1))
			e.last[a] = in | (i + 1 < b.n && b_goes_on(b, i + 1) ? BEYOND : 0);
	}
}

__global__ void choose(const vv_gpu_batch b, ends e, const uint32_t *run)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x, first, last;

	if (i >= b.n || !is_copy(b.from[i]))
		return;
	first = e.first[run[i]];
	last = e.last[run[i]];
	if ((first & ~BEYOND) == (last & ~BEYOND) && (first | last) & BEYOND)
		b.from[i] = KIND(VV_PIECE_REPEAT) | b.back[i];
}

int vv_repeat_choose(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	const vv_gpu_sorting *s = &b->sorting;
	ends e = { s->order, s->order_too };
	int rc = launch_portions("counting runs", count_runs, b, stream);

	if (rc == 0)
		rc = launch("numbering runs", number_runs, blocks_for(b->n, VV_GPU_PORTION), stream, *b, e, s->slot);
	return rc ? rc : launch("choosing runs", choose, blocks_for(b->n, VV_GPU_BLOCK), stream, *b, e, (const uint32_t *)s->slot);
}
