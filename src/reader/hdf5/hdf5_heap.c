/* Fractal heaps: objects of any length, named by IDs. A managed object lies in a direct block,
 * which is found through blocks of addresses whose rows double in size. A huge object is stored
 * separately, a tiny one in its ID. Heaps with filtered blocks are not supported. */
#include "reader/hdf5/hdf5_heap.h"
#include "base/err.h"
#include "reader/hdf5/hdf5_btree.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_priv.h"
#include <string.h>

enum { MANAGED, HUGE, TINY, OBJECT_MAX = 1 << 17, TINY_SHORT = 17 };

static unsigned log2_of(uint64_t n)
{
	return 63u - (unsigned)__builtin_clzll(n | 1);
}

static unsigned bytes_for_bits(unsigned bits)
{
	return (bits + 7) / 8;
}

static bool power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* Rows and offsets are used as shifts from here on: none may exceed 64 bits. */
static int check_shape(struct vv_hdf5_heap *heap)
{
	unsigned a, b;

	if (!power_of_two(heap->width) || !power_of_two(heap->first) || !power_of_two(heap->max_direct) ||
	    heap->first > heap->max_direct || heap->max_direct > 1u << 31 || heap->max_bits > 64 || heap->max_bits == 0 ||
	    log2_of(heap->first) + log2_of(heap->width) >= heap->max_bits || heap->rows > 64)
		return VV_HDF5_BROKEN;
	a = bytes_for_bits(log2_of(heap->max_direct));
	b = log2_of(heap->max_managed) / 8 + 1;
	heap->len_size = (uint8_t)(a < b ? a : b);
	heap->offset_size = (uint8_t)bytes_for_bits(heap->max_bits);
	return 0;
}

int vv_hdf5_heap_open(struct vv_hdf5 *h, uint64_t at, struct vv_hdf5_heap *heap)
{
	uint8_t text[22 + 12 * 8 + 3 * 8];
	unsigned filtered;
	struct vv_wire w;
	int rc = vv_hdf5_file_block(h, at, "FRHP", text, 22u + 12u * h->length_size + 3u * h->address_size, &w);

	if (rc)
		return rc;
	if (vv_wire_u8(&w) != 0)
		return VV_HDF5_BROKEN;
	heap->id_size = vv_wire_u16(&w);
	filtered = vv_wire_u16(&w);
	vv_wire_u8(&w);
	heap->max_managed = vv_wire_u32(&w);
	vv_wire_bytes(&w, h->length_size); /* next huge object */
	heap->huge = vv_hdf5_file_address(h, &w);
	vv_wire_bytes(&w, h->length_size + h->address_size); /* free space */
	vv_wire_bytes(&w, 8u * h->length_size); /* sums and counts */
	heap->width = vv_wire_u16(&w);
	heap->first = vv_hdf5_file_length(h, &w);
	heap->max_direct = vv_hdf5_file_length(h, &w);
	heap->max_bits = vv_wire_u16(&w);
	vv_wire_u16(&w);
	heap->root = vv_hdf5_file_address(h, &w);
	heap->rows = vv_wire_u16(&w);
	return w.bad || filtered ? VV_HDF5_BROKEN : check_shape(heap);
}

static int take(struct vv_hdf5 *h, uint64_t at, uint64_t n, struct vv_buf *to)
{
	uint8_t *room;
	int rc;

	if (n == 0 || n > OBJECT_MAX || !vv_hdf5_file_has(h, at, n))
		return VV_HDF5_BROKEN;
	room = vv_buf_room(to, n);
	if (!room)
		return VV_ENOMEM;
	rc = vv_hdf5_file_get(h, at, room, n);
	if (rc == 0)
		to->n += n;
	return rc;
}

static uint64_t block_size(const struct vv_hdf5_heap *heap, unsigned row)
{
	return row ? heap->first << (row - 1) : heap->first;
}

/* Descends from an offset in a block of addresses to the block below it, and the offset there. */
static int descend(struct vv_hdf5 *h, const struct vv_hdf5_heap *heap, uint64_t *at, unsigned *rows, uint64_t *offset)
{
	uint64_t first_row = heap->first * heap->width, row_at, col, place;
	unsigned row = *offset < first_row ? 0 : log2_of(*offset / first_row) + 1;
	unsigned direct_rows = log2_of(heap->max_direct) - log2_of(heap->first) + 2;
	uint8_t magic[4], text[8];
	struct vv_wire w;
	int rc = row < *rows ? vv_hdf5_file_block(h, *at, "FHIB", magic, sizeof(magic), &w) : VV_HDF5_BROKEN;

	if (rc)
		return rc;
	row_at = row ? first_row << (row - 1) : 0;
	col = (*offset - row_at) / block_size(heap, row);
	place = *at + 5 + h->address_size + heap->offset_size + (row * (uint64_t)heap->width + col) * h->address_size;
	rc = vv_hdf5_file_get(h, place, text, h->address_size);
	w = vv_wire_over(text, h->address_size);
	*at = vv_hdf5_file_address(h, &w);
	*offset -= row_at + col * block_size(heap, row);
	*rows = row < direct_rows ? 0 : log2_of(block_size(heap, row)) - log2_of(first_row) + 1;
	return rc;
}

static int get_managed(struct vv_hdf5 *h, const struct vv_hdf5_heap *heap, struct vv_wire *id, struct vv_buf *to)
{
	uint64_t offset = vv_hdf5_file_uint(id, heap->offset_size), n = vv_hdf5_file_uint(id, heap->len_size);
	uint64_t at = heap->root;
	unsigned rows = heap->rows;
	uint8_t magic[4];
	struct vv_wire w;
	int rc = id->bad || (heap->max_bits < 64 && offset >> heap->max_bits) ? VV_HDF5_BROKEN : 0;

	while (rc == 0 && rows) { /* rows decrease with each step */
		unsigned before = rows;

		rc = descend(h, heap, &at, &rows, &offset);
		if (rc == 0 && rows >= before)
			rc = VV_HDF5_BROKEN;
	}
	if (rc == 0)
		rc = vv_hdf5_file_block(h, at, "FHDB", magic, sizeof(magic), &w);
	return rc ? rc : !vv_hdf5_file_has(h, at, offset) ? VV_HDF5_BROKEN : take(h, at + offset, n, to);
}

struct hdf5_heap_wanted {
	uint64_t id, at, len;
};

static int find_huge(struct vv_hdf5 *h, void *arg, unsigned kind, const uint8_t *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);
	struct hdf5_heap_wanted *want = arg;

	want->at = vv_hdf5_file_address(h, &w);
	want->len = vv_hdf5_file_length(h, &w);
	if (kind != 1)
		return VV_HDF5_BROKEN;
	return vv_hdf5_file_length(h, &w) == want->id && !w.bad ? VV_HDF5_FOUND : 0;
}

static int get_huge(struct vv_hdf5 *h, const struct vv_hdf5_heap *heap, struct vv_wire *id, struct vv_buf *to)
{
	size_t left = vv_wire_left(id);
	struct hdf5_heap_wanted want = { 0 };
	int rc = VV_HDF5_FOUND;

	/* the ID has room for the address itself */
	if (left >= (size_t)h->address_size + h->length_size) {
		want.at = vv_hdf5_file_address(h, id);
		want.len = vv_hdf5_file_length(h, id);
	} else {
		want.id = vv_hdf5_file_uint(id, left < 8 ? (unsigned)left : 8);
		rc = vv_hdf5_btree_each_record(h, heap->huge, false, find_huge, &want);
	}
	return rc < 0 ? rc : rc != VV_HDF5_FOUND ? VV_HDF5_BROKEN : take(h, want.at, want.len, to);
}

static int get_tiny(const struct vv_hdf5_heap *heap, uint8_t first, struct vv_wire *id, struct vv_buf *to)
{
	size_t n = first & 15u;
	const uint8_t *p;

	if (heap->id_size > TINY_SHORT + 1)
		n = n << 8 | vv_wire_u8(id);
	p = vv_wire_bytes(id, n + 1);
	if (!p)
		return VV_HDF5_BROKEN;
	vv_buf_add(to, p, n + 1);
	return to->failed ? VV_ENOMEM : 0;
}

int vv_hdf5_heap_get(struct vv_hdf5 *h, const struct vv_hdf5_heap *heap, const uint8_t *id, size_t n, struct vv_buf *to)
{
	struct vv_wire w = vv_wire_over(id, n < heap->id_size ? n : heap->id_size);
	uint8_t first = vv_wire_u8(&w);

	if (w.bad || first >> 6)
		return VV_HDF5_BROKEN;
	switch (first >> 4 & 3) {
	case MANAGED:
		return get_managed(h, heap, &w, to);
	case HUGE:
		return get_huge(h, heap, &w, to);
	case TINY:
		return get_tiny(heap, first, &w, to);
	}
	return VV_HDF5_BROKEN;
}
