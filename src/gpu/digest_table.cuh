/* A generation of the known map on the device: open addressing, linear probing. Not all devices can
 * change 16 bytes atomically, so a slot is claimed by its place alone. At first it names the
 * claiming item, whose digest is the key meanwhile. When the batch is resolved, key and place are
 * written. */
#ifndef VV_GPU_DIGEST_TABLE_CUH
#define VV_GPU_DIGEST_TABLE_CUH

#include "gpu/device.cuh"

__device__ __forceinline__ uint32_t home_of(const vv_gpu_table &t, vv_digest d)
{
	return (uint32_t)__umul64hi(d.w[0], t.slots);
}

__device__ __forceinline__ uint32_t after(const vv_gpu_table &t, uint32_t at)
{
	return at + 1 < t.slots ? at + 1 : 0;
}

/* Other threads write it meanwhile. */
__device__ __forceinline__ uint64_t peek(const uint64_t *p)
{
	return *(const volatile uint64_t *)p;
}

__device__ __forceinline__ uint64_t swap_if(uint64_t *p, uint64_t is, uint64_t becomes)
{
	return atomicCAS((unsigned long long *)p, (unsigned long long)is, (unsigned long long)becomes);
}

/* Looks up d in a table that no thread writes. Returns its place, or VV_GPU_FREE. */
__device__ __forceinline__ uint64_t find(const vv_gpu_table &t, vv_digest d)
{
	if (t.slots == 0)
		return VV_GPU_FREE;
	for (uint32_t at = home_of(t, d);; at = after(t, at)) {
		uint64_t place = t.place[at];

		if (place == VV_GPU_FREE || equal(load(&t.key[at]), d))
			return place;
	}
}

/* Returns the slot of `item` with digest d: one with this key, or one claimed by an item with this
 * digest. The function digest_of(item) returns the digest of another item. In the end the least
 * item with a digest has the claim. */
template <class DigestOf>
__device__ __forceinline__ uint32_t claim(const vv_gpu_table &t, vv_digest d, uint32_t item, const DigestOf &digest_of)
{
	uint64_t mine = VV_GPU_CLAIM | item;

	for (uint32_t at = home_of(t, d);; at = after(t, at)) {
		uint64_t place = peek(&t.place[at]);

		if (place == VV_GPU_FREE)
			place = swap_if(&t.place[at], VV_GPU_FREE, mine);
		if (place == VV_GPU_FREE)
			return at;
		if (!(place & VV_GPU_CLAIM)) {
			if (equal(load(&t.key[at]), d))
				return at;
		} else if (equal(digest_of((uint32_t)place), d)) {
			if (mine < place)
				atomicMin((unsigned long long *)&t.place[at], (unsigned long long)mine);
			return at;
		}
	}
}

/* Turns a claim into an entry. No thread looks up keys meanwhile. */
__device__ __forceinline__ void settle(const vv_gpu_table &t, uint32_t at, vv_digest d, uint64_t place)
{
	store(&t.key[at], d);
	*(volatile uint64_t *)&t.place[at] = place;
}

#endif
