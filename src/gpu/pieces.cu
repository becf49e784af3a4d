/* Pieces from where each item comes from, and the bytes of those that are new. */
#include "gpu/batch.cuh"

/* ---- pieces: a border lies before each item that does not go on with the piece of the one before it */

/* Per block the number of borders, and above it, << 32, the last of them: a piece that ends in a block behind may have begun there. */
__global__ void count_borders(const vv_gpu_batch b)
{
	uint32_t begin = first_item(), end = min(b.n, begin + VV_GPU_EACH), borders = 0, last = 0, all;

	for (uint32_t i = begin; i < end; i++)
		if (!goes_on(b, i)) {
			borders++;
			last = i;
		}
	scan_block(borders, &all);
	borders = all;
	scan_block(last, &all, most());
	if (threadIdx.x == 0)
		b.portion[blockIdx.x] = (uint64_t)all << 32 | borders;
}

struct low_plus_high_most {
	__device__ uint64_t operator()(uint64_t a, uint64_t b) const
	{
		uint32_t high = most()((uint32_t)(a >> 32), (uint32_t)(b >> 32));

		return (uint64_t)high << 32 | (uint32_t)(a + b);
	}
};

/* The thread that has a piece's last item writes it. */
__global__ void emit(const vv_gpu_batch b)
{
	uint32_t begin = first_item(), end = min(b.n, begin + VV_GPU_EACH);
	uint64_t mine = 0, all, before = before_block(b.portion, low_plus_high_most());
	low_plus_high_most op;

	for (uint32_t i = begin; i < end; i++)
		if (!goes_on(b, i))
			mine = op(mine, (uint64_t)i << 32 | 1);
	before = op(before, scan_block(mine, &all, op));
	for (uint32_t i = begin; i < end; i++) {
		if (!goes_on(b, i))
			before = op(before, (uint64_t)i << 32 | 1);
		if (i + 1 < b.n && goes_on(b, i + 1))
			continue;

		uint32_t start = (uint32_t)(before >> 32), piece = (uint32_t)before - 1;

		b.piece[piece] = { b.first + number_of(b, start), i + 1 - start, b.from[start] };
		if (i + 1 == b.n)
			b.counts->pieces = piece + 1;
	}
}

int vv_pieces_emit(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	int rc = launch_portions("counting pieces", count_borders, b, stream);

	return rc ? rc : launch_portions("making pieces", emit, b, stream);
}

/* ---- bytes */

/* 16 bytes for each thread. */
__global__ void gather(const vv_gpu_numbers g, const uint32_t *number, uint64_t units, uint4 *to)
{
	uint64_t i = (uint64_t)blockIdx.x * VV_GPU_BLOCK + threadIdx.x;
	uint32_t per_grain = g.chunk / 16;

	if (i < units)
		to[i] = load_anywhere(bytes_of(g, number[i / per_grain]) + i % per_grain * 16);
}

int vv_pieces_gather(const struct vv_gpu_numbers *g, const uint32_t *number, uint32_t n, uint8_t *to, cudaStream_t stream)
{
	uint64_t units = (uint64_t)n * (g->chunk / 16);

	return launch("gathering what is new", gather, blocks_for(units, VV_GPU_BLOCK), stream, *g, number, units, (uint4 *)to);
}
