/* Finds the chunks of a dataset, by each of the six kinds of index. */
#include "reader/hdf5/hdf5_chunks.h"
#include "base/err.h"
#include "reader/hdf5/hdf5_arrays.h"
#include "reader/hdf5/hdf5_btree.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_priv.h"

struct hdf5_chunks_walk {
	const struct vv_hdf5_object *o;
	uint32_t variable;
	uint64_t bytes;             /* of a chunk, before filters */
	uint64_t n;                 /* chunks in all */
	uint64_t grid[VV_HDF5_RANK]; /* chunks in each dimension */
	uint64_t max[VV_HDF5_RANK]; /* the same at the dataset's maximum size; 0: unlimited */
	int open;                   /* the unlimited dimension, -1: none */
};

static uint64_t chunks_in(uint64_t dim, uint64_t chunk)
{
	return dim / chunk + (dim % chunk != 0);
}

static bool multiply(uint64_t *n, uint64_t by)
{
	return !__builtin_mul_overflow(*n, by, n);
}

static int plan(struct vv_hdf5 *h, const struct vv_hdf5_object *o, struct hdf5_chunks_walk *k)
{
	uint64_t endless = UINT64_MAX >> (64 - 8 * h->length_size), all = o->type.size;

	k->open = -1;
	k->n = 1;
	k->bytes = o->type.size;
	for (unsigned i = 0; i < o->space.rank; i++) {
		uint64_t dim = o->space.dim[i], chunk = o->layout.chunk[i];

		k->grid[i] = chunks_in(dim, chunk);
		k->max[i] = o->space.max[i] == endless ? 0 : chunks_in(o->space.max[i], chunk);
		if (k->max[i] == 0)
			k->open = (int)i;
		if (!multiply(&k->bytes, chunk) || !multiply(&k->n, k->grid[i]) || !multiply(&all, dim))
			return VV_HDF5_BROKEN;
	}
	return 0;
}

/* Does the chunk extend over the edge of the dataset? */
static bool at_edge(const struct hdf5_chunks_walk *k, const uint64_t *place)
{
	const struct vv_hdf5_object *o = k->o;

	for (unsigned i = 0; i < o->space.rank; i++)
		if (place[i] == k->grid[i] - 1 && o->space.dim[i] % o->layout.chunk[i])
			return true;
	return false;
}

/* Adds a chunk by its position in the grid. len 0: the length without filters. */
static int add_chunk(struct vv_hdf5 *h, const struct hdf5_chunks_walk *k, const uint64_t *place, uint64_t at, uint64_t len, uint32_t mask)
{
	unsigned filters = k->o->pipeline.n;
	uint32_t all = (1u << filters) - 1;
	struct vv_outline_piece p = { .at = h->base + at, .len = len ? len : k->bytes, .variable = k->variable };

	if (at == VV_HDF5_NOWHERE)
		return 0;
	for (unsigned i = 0; i < k->o->space.rank; i++) {
		if (place[i] >= k->grid[i])
			return 0; /* the dataset has shrunk */
		p.ordinal = p.ordinal * k->grid[i] + place[i];
	}
	p.mask = k->o->layout.edges_plain && at_edge(k, place) ? all : mask & all;
	p.coded = p.mask != all;
	if ((!p.coded && p.len != k->bytes) || !vv_hdf5_file_has(h, at, p.len))
		return VV_HDF5_BROKEN;
	return vv_reader_add_piece(h->out, &p);
}

static int each_child(struct vv_hdf5 *h, void *arg, const uint8_t *key, uint64_t child)
{
	const struct hdf5_chunks_walk *k = arg;
	unsigned rank = k->o->space.rank;
	struct vv_wire w = vv_wire_over(key, 8 + 8 * ((size_t)rank + 1));
	uint32_t len = vv_wire_u32(&w), mask = vv_wire_u32(&w);
	uint64_t place[VV_HDF5_RANK];

	for (unsigned i = 0; i < rank; i++) {
		uint64_t offset = vv_wire_u64(&w);

		place[i] = offset / k->o->layout.chunk[i];
		if (offset % k->o->layout.chunk[i])
			return VV_HDF5_BROKEN;
	}
	return len ? add_chunk(h, k, place, child, len, mask) : VV_HDF5_BROKEN;
}

static int each_record(struct vv_hdf5 *h, void *arg, unsigned kind, const uint8_t *p, size_t n)
{
	const struct hdf5_chunks_walk *k = arg;
	unsigned rank = k->o->space.rank;
	size_t fixed = h->address_size + 8u * rank + (kind == 11 ? 4 : 0);
	struct vv_wire w = vv_wire_over(p, n);
	uint64_t at = vv_hdf5_file_address(h, &w), len = 0, place[VV_HDF5_RANK];
	uint32_t mask = 0;

	if (kind < 10 || kind > 11 || n < fixed || (kind == 11) != (n > fixed))
		return VV_HDF5_BROKEN;
	if (kind == 11) {
		len = vv_hdf5_file_uint(&w, (unsigned)(n - fixed));
		mask = vv_wire_u32(&w);
		if (len == 0)
			return VV_HDF5_BROKEN;
	}
	for (unsigned i = 0; i < rank; i++)
		place[i] = vv_wire_u64(&w);
	return w.bad ? VV_HDF5_BROKEN : add_chunk(h, k, place, at, len, mask);
}

/* Arrays count chunks in the order of the maximum grid; the unlimited dimension is the slowest. */
static bool place_of(const struct hdf5_chunks_walk *k, uint64_t index, uint64_t *place)
{
	for (unsigned i = k->o->space.rank; i-- > 0;) {
		if ((int)i == k->open)
			continue;
		if (k->max[i] == 0)
			return false;
		place[i] = index % k->max[i];
		index /= k->max[i];
	}
	if (k->open >= 0)
		place[k->open] = index;
	return k->open >= 0 || index == 0;
}

static int each_element(struct vv_hdf5 *h, void *arg, uint64_t index, bool coded, struct vv_wire *w, size_t size)
{
	const struct hdf5_chunks_walk *k = arg;
	uint64_t at = vv_hdf5_file_address(h, w), len = 0, place[VV_HDF5_RANK];
	uint32_t mask = 0;

	if (coded && at != VV_HDF5_NOWHERE) {
		len = vv_hdf5_file_uint(w, (unsigned)(size - h->address_size - 4));
		mask = vv_wire_u32(w);
		if (w->bad || len == 0)
			return VV_HDF5_BROKEN;
	}
	return w->bad || !place_of(k, index, place) ? VV_HDF5_BROKEN : add_chunk(h, k, place, at, len, mask);
}

static int add_tree1(struct vv_hdf5 *h, struct hdf5_chunks_walk *k)
{
	return vv_hdf5_btree_each_child(h, k->o->layout.at, 1, 8 + 8 * ((size_t)k->o->space.rank + 1), each_child, k);
}

static int add_single(struct vv_hdf5 *h, struct hdf5_chunks_walk *k)
{
	static const uint64_t origin[VV_HDF5_RANK];
	const struct vv_hdf5_layout *l = &k->o->layout;

	if (l->single_coded && l->len == 0)
		return VV_HDF5_BROKEN;
	return add_chunk(h, k, origin, l->at, l->len, l->mask);
}

/* Adds consecutive chunks. */
static int add_implicit(struct vv_hdf5 *h, struct hdf5_chunks_walk *k)
{
	uint64_t place[VV_HDF5_RANK], at = k->o->layout.at;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && place_of(k, i, place); i++, at += k->bytes) {
		rc = vv_hdf5_file_has(h, at, k->bytes) ? vv_hdf5_file_spend(h, 0) : VV_HDF5_BROKEN;
		if (rc == 0)
			rc = add_chunk(h, k, place, at, 0, 0);
	}
	return rc;
}

static int add_fixed(struct vv_hdf5 *h, struct hdf5_chunks_walk *k)
{
	return vv_hdf5_arrays_fixed(h, k->o->layout.at, each_element, k);
}

static int add_extensible(struct vv_hdf5 *h, struct hdf5_chunks_walk *k)
{
	return vv_hdf5_arrays_extensible(h, k->o->layout.at, each_element, k);
}

static int add_tree2(struct vv_hdf5 *h, struct hdf5_chunks_walk *k)
{
	return vv_hdf5_btree_each_record(h, k->o->layout.at, true, each_record, k);
}

int vv_hdf5_chunks_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, uint32_t variable)
{
	static int (*const by_index[VV_HDF5_INDEXES])(struct vv_hdf5 *h, struct hdf5_chunks_walk *k) = {
		[VV_HDF5_TREE1] = add_tree1, [VV_HDF5_SINGLE] = add_single, [VV_HDF5_IMPLICIT] = add_implicit,
		[VV_HDF5_FIXED] = add_fixed, [VV_HDF5_EXTENSIBLE] = add_extensible, [VV_HDF5_TREE2] = add_tree2,
	};
	struct hdf5_chunks_walk k = { .o = o, .variable = variable };
	int rc = plan(h, o, &k);

	if (rc || k.n == 0 || o->layout.at == VV_HDF5_NOWHERE)
		return rc;
	return by_index[o->layout.index](h, &k);
}
