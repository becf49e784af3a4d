/* The method tree: the Merkle tree of Tan 2023 over the numbers of a slice. A node is stored with
 * the first item below it: `height` is that of the highest node that begins there, `node` its
 * digest. Two neighbours of one height and one kind become the node above them. */
#include "gpu/batch.cuh"
#include "gpu/block_scan.cuh"
#include "gpu/digest_table.cuh"
#include "gpu/launch.cuh"
#include "gpu/xxh3_short.cuh"

enum { COVERED = 0xff }; /* height: the item is in the right half of a higher node */

__global__ void plant(const vv_gpu_batch b)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x;

	if (i >= b.n)
		return;
	b.height[i] = 0;
	store(&b.node[i], digest_of(b, i));
}

/* Are both halves of the node of this height at item i of this kind? */
__device__ bool halves_agree(const vv_gpu_batch &b, uint32_t i, unsigned height, uint64_t kind)
{
	uint32_t half = 1u << (height - 1), number, other = i + half;

	if (other >= b.n || b.height[i] != height - 1 || kind_of(b.from[i]) != kind)
		return false;
	number = number_of(b, i);
	return number % (2 * half) == 0 && number_of(b, other) == number + half && b.height[other] == height - 1 && kind_of(b.from[other]) == kind;
}

__device__ __forceinline__ void join(const vv_gpu_batch &b, uint32_t i, unsigned height)
{
	b.height[i] = (uint8_t)height;
	b.height[i + (1u << (height - 1))] = COVERED;
}

/* ---- the map of nodes: other threads enter theirs meanwhile, and no thread waits for another - */

__device__ __forceinline__ vv_digest peek(const vv_digest *p)
{
	const volatile uint64_t *w = p->w;

	return { { w[0], w[1] } };
}

struct tally {
	uint32_t entered, promoted;
};

/* Takes the free slot `at` for node i; false if another node was first. */
__device__ bool take_slot(const vv_gpu_table &t, uint32_t at, uint32_t i, vv_digest d, uint64_t place)
{
	if (swap_if(&t.place[at], VV_GPU_FREE, VV_GPU_CLAIM | i) != VV_GPU_FREE)
		return false;
	store(&t.key[at], d);
	__threadfence(); /* the key before the place */
	*(volatile uint64_t *)&t.place[at] = place;
	return true;
}

/* Does the slot at `at`, whose place is `there`, belong to d? */
__device__ bool has_key(const vv_gpu_batch &b, uint32_t at, uint64_t there, vv_digest d)
{
	__threadfence(); /* the place before the key */
	return equal(peek(there & VV_GPU_CLAIM ? &b.node[(uint32_t)there] : &b.young_nodes.key[at]), d);
}

/* Returns the place of node i, whose digest d is in b.node. If none is known, `place` is entered,
 * unless it is VV_GPU_FREE. Entries found in aged are copied to young. */
__device__ uint64_t meet(const vv_gpu_batch &b, uint32_t i, vv_digest d, uint64_t place, tally &t)
{
	const vv_gpu_table &young = b.young_nodes;
	bool asked = false, old = false;

	for (uint32_t at = home_of(young, d);;) {
		uint64_t there = peek(&young.place[at]);

		if (there != VV_GPU_FREE && !has_key(b, at, there, d)) {
			at = after(young, at);
			continue;
		}
		if (there != VV_GPU_FREE && !(there & VV_GPU_CLAIM))
			return there;
		if (!asked) {
			uint64_t aged = find(b.aged_nodes, d);

			old = aged != VV_GPU_FREE;
			place = old ? aged : place;
			asked = true;
		}
		if (there != VV_GPU_FREE || place == VV_GPU_FREE)
			return place;
		if (take_slot(young, at, i, d, place)) {
			t.entered++;
			t.promoted += old;
			return place;
		}
	}
}

/* ---- climbing -------------------------------------------------------------------------------- */

/* Makes nodes of ZERO and NEW. Those of NEW become known, unless a grain below them has no entry in
 * the map. */
__global__ void climb_new(const vv_gpu_batch b, unsigned height)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x, half = 1u << (height - 1);
	tally t = {};

	if (i < b.n && halves_agree(b, i, height, VV_PIECE_ZERO)) {
		join(b, i, height);
	} else if (i < b.n && halves_agree(b, i, height, VV_PIECE_NEW)) {
		join(b, i, height);
		if (!(b.item[i + 2 * half - 1] & VV_GPU_ASIDE)) {
			vv_digest d = xxh3::node(load(&b.node[i]), load(&b.node[i + half]), height);

			store(&b.node[i], d);
			__threadfence(); /* before it is claimed by its index */
			meet(b, i, d, (uint64_t)b.ordinal << 40 | (b.from[i] & ~KIND(3)), t);
		}
	}
	count_block(t.entered, &b.counts->nodes);
	count_block(t.promoted, &b.counts->nodes_promoted);
}

/* Makes nodes of COPY that are known. */
__global__ void climb_copy(const vv_gpu_batch b, unsigned height)
{
	uint32_t i = blockIdx.x * VV_GPU_BLOCK + threadIdx.x, half = 1u << (height - 1);
	tally t = {};

	if (i < b.n && halves_agree(b, i, height, VV_PIECE_COPY)) {
		vv_digest d = xxh3::node(load(&b.node[i]), load(&b.node[i + half]), height);
		uint64_t place;

		store(&b.node[i], d);
		__threadfence();
		place = meet(b, i, d, VV_GPU_FREE, t);
		if (place != VV_GPU_FREE) {
			join(b, i, height);
			b.from[i] = KIND(VV_PIECE_COPY) | place;
		}
	}
	count_block(t.entered, &b.counts->nodes);
	count_block(t.promoted, &b.counts->nodes_promoted);
}

static int climb(const char *what, void (*kernel)(vv_gpu_batch, unsigned), const vv_gpu_batch *b, cudaStream_t stream)
{
	int rc = 0;

	for (unsigned height = 1; rc == 0 && 1u << height <= b->n && 1u << height <= VV_GRAIN_SLICE; height++)
		rc = launch(what, kernel, blocks_for(b->n, VV_GPU_BLOCK), stream, *b, height);
	return rc;
}

int vv_nodes_new(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	int rc = launch_items("planting trees", plant, b, stream);

	return rc ? rc : climb("joining what is new", climb_new, b, stream);
}

int vv_nodes_copies(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	return climb("joining what is known", climb_copy, b, stream);
}

/* ---- pieces: the highest nodes --------------------------------------------------------------- */

__device__ __forceinline__ uint32_t roots_in(const vv_gpu_batch &b, int round)
{
	uint32_t i = item_of(round);

	return __ballot_sync(~0u, i < b.n && b.height[i] != COVERED);
}

__global__ void count_roots(const vv_gpu_batch b)
{
	uint32_t roots = 0, all;

	for (int k = 0; k < VV_GPU_EACH; k++)
		roots += __popc(roots_in(b, k));
	scan_warps(roots, &all, plus());
	if (threadIdx.x == 0)
		b.portion[blockIdx.x] = all;
}

__global__ void emit_roots(const vv_gpu_batch b)
{
	uint32_t roots = 0, all, piece = (uint32_t)before_block(b.portion, plus());

	for (int k = 0; k < VV_GPU_EACH; k++)
		roots += __popc(roots_in(b, k));
	piece += scan_warps(roots, &all, plus());
	for (int k = 0; k < VV_GPU_EACH; k++) {
		uint32_t i = item_of(k), here = roots_in(b, k), next = piece + up_to_here(here);

		if (here >> lane_of() & 1)
			b.piece[next - 1] = { b.first + number_of(b, i), 1u << b.height[i], b.from[i] };
		if (i + 1 == b.n)
			b.counts->pieces = next;
		piece += __popc(here);
	}
}

int vv_nodes_emit(const struct vv_gpu_batch *b, cudaStream_t stream)
{
	int rc = launch_portions("counting roots", count_roots, b, stream);

	return rc ? rc : launch_portions("making pieces", emit_roots, b, stream);
}
