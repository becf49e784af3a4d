/* Makes pieces from the origin of each item, and gathers the bytes of new ones. */
#include "gpu/batch.cuh"
#include "gpu/block_scan.cuh"
#include "gpu/launch.cuh"

/* ---- pieces: a border is before each item that does not continue the piece before it --------- */

/* The number of borders, and above it, << 32, the last of them: a piece that ends in a later warp
 * or block may have begun there. */
struct low_plus_high_most {
	__device__ uint64_t operator()(uint64_t a, uint64_t b) const
	{
		uint32_t high = most()((uint32_t)(a >> 32), (uint32_t)(b >> 32));

		return (uint64_t)high << 32 | (uint32_t)(a + b);
	}
};

/* Of a warp: the borders before the items of a round. */
__device__ __forceinline__ uint32_t piece_borders(const vv_gpu_batch &b, int round)
{
	uint32_t i = item_of(round);

	return __ballot_sync(~0u, i < b.n && !goes_on(b, i));
}

__device__ __forceinline__ uint64_t summary_of(uint32_t borders, int round)
{
	uint32_t first = item_of(round) - lane_of();

	return borders ? (uint64_t)(first + 31 - __clz(borders)) << 32 | __popc(borders) : 0;
}

__global__ void count_borders(const vv_gpu_batch b)
{
	low_plus_high_most op;
	uint64_t mine = 0, all;

#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++)
		mine = op(mine, summary_of(piece_borders(b, k), k));
	scan_warps(mine, &all, op);
	if (threadIdx.x == 0)
		b.portion[blockIdx.x] = all;
}

/* The thread with a piece's last item writes the piece. */
__global__ void emit(const vv_gpu_batch b)
{
	low_plus_high_most op;
	uint32_t borders[VV_GPU_EACH];
	uint64_t mine = 0, all, before = before_block(b.portion, op);

#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++) {
		borders[k] = piece_borders(b, k);
		mine = op(mine, summary_of(borders[k], k));
	}
	before = op(before, scan_warps(mine, &all, op));
#pragma unroll
	for (int k = 0; k < VV_GPU_EACH; k++) {
		uint32_t i = item_of(k);
		uint64_t here = op(before, summary_of(borders[k] & low_bits(lane_of() + 1), k));
		uint32_t start = (uint32_t)(here >> 32), piece = (uint32_t)here - 1;

		before = op(before, summary_of(borders[k], k));
		if (i >= b.n || (i + 1 < b.n && goes_on(b, i + 1)))
			continue;
		b.piece[piece] = { b.first + number_of(b, start), i + 1 - start, b.from[start] };
		if (i + 1 == b.n)
			b.counts->pieces = piece + 1;
	}
}

int vv_found_pieces_emit(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	int rc = launch_portions("counting pieces", count_borders, b, stream);

	return rc ? rc : launch_portions("making pieces", emit, b, stream);
}

__global__ void report(const vv_gpu_batch b, vv_gpu_counts *counts, vv_piece *piece)
{
	uint32_t n = piece ? b.counts->pieces : 0, first = blockIdx.x * VV_GPU_BLOCK + threadIdx.x;

	for (uint32_t i = first; i < n; i += gridDim.x * VV_GPU_BLOCK)
		*(uint4 *)&piece[i] = *(const uint4 *)&b.piece[i];
	if (first == 0)
		*counts = *b.counts;
}

int vv_found_pieces_report(const struct vv_gpu_batch *b, struct vv_gpu_counts *counts, struct vv_piece *piece, cudaStream_t stream)
{
	const uint32_t enough = 64;
	uint32_t blocks = piece ? blocks_for(b->n, VV_GPU_BLOCK) : 1;

	static_assert(sizeof(vv_piece) == sizeof(uint4), "pieces are moved as 16 bytes at once");
	return launch("reporting what was found", report, blocks < enough ? blocks : enough, stream, *b, counts, piece);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* 16 bytes for each thread. */
__global__ void gather(const vv_gpu_numbers g, const uint32_t *number, uint64_t units, uint4 *to)
{
	uint64_t i = (uint64_t)blockIdx.x * VV_GPU_BLOCK + threadIdx.x;
	uint32_t per_grain = g.chunk / 16;

	if (i < units)
		to[i] = load_anywhere(bytes_of(g, number[i / per_grain]) + i % per_grain * 16);
}

int vv_found_pieces_gather(const struct vv_gpu_numbers *g, const uint32_t *number, uint32_t n, uint8_t *to, cudaStream_t stream)
{
	uint64_t units = (uint64_t)n * (g->chunk / 16);

	return launch("gathering what is new", gather, blocks_for(units, VV_GPU_BLOCK), stream, *g, number, units, (uint4 *)to);
}
