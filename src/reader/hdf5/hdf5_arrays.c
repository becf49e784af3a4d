/* Arrays of chunks. A fixed array is one block of elements. In an extensible array the index block
 * holds a few elements and the addresses of the first blocks. Secondary blocks of growing size hold
 * the others. Long blocks are divided into pages, and a bitmap marks the pages that were
 * written. */
#include "reader/hdf5/hdf5_arrays.h"
#include "base/err.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_priv.h"

enum { CHECKSUM = 4, ELEMENT_MAX = 32, BITS_MAX = 32, STEPS = 64 };

struct hdf5_arrays_walk {
	uint8_t element; /* bytes of an element */
	bool coded;
	uint64_t n;      /* elements, at most */
	uint64_t page;   /* elements of a page */
	unsigned offset_size;
	vv_hdf5_each_element *each;
	void *arg;
};

/* An element is an address; with filters also a length and a mask. */
static int check_element(const struct vv_hdf5 *h, const struct hdf5_arrays_walk *k)
{
	unsigned plain = h->address_size, least = plain + (k->coded ? 1 + 4 : 0), most = plain + (k->coded ? 8 + 4 : 0);

	return k->element >= least && k->element <= most ? 0 : VV_HDF5_BROKEN;
}

/* Walks consecutive elements, the first of which has the given index. Elements behind the end of
 * the array are not read. */
static int walk_elements(struct vv_hdf5 *h, const struct hdf5_arrays_walk *k, uint64_t at, uint64_t index, uint64_t n)
{
	uint8_t text[ELEMENT_MAX];
	int worst = 0;

	for (; n && index < k->n; n--, index++, at += k->element) {
		struct vv_wire w = vv_wire_over(text, k->element);
		int rc = vv_hdf5_file_get(h, at, text, k->element);

		if (rc)
			return rc;
		rc = k->each(h, k->arg, index, k->coded, &w, k->element);
		if (rc < 0)
			return rc;
		worst = rc ? rc : worst;
	}
	return worst;
}

/* Reads a bit of a bitmap at an address, the high bit first. */
static int get_bit(struct vv_hdf5 *h, uint64_t at, uint64_t bit, bool *set)
{
	uint8_t byte = 0;
	int rc = vv_hdf5_file_get(h, at + bit / 8, &byte, 1);

	*set = byte & 0x80 >> bit % 8;
	return rc;
}

/* Walks consecutive pages; bits from `bit` on mark those that were written. */
static int walk_pages(struct vv_hdf5 *h, const struct hdf5_arrays_walk *k, uint64_t at, uint64_t index, uint64_t n, uint64_t map, uint64_t bit)
{
	uint64_t size = k->page * k->element + CHECKSUM, end = n < k->n - index ? index + n : k->n;
	int worst = 0;

	for (; index < end; index += k->page, at += size, bit++) {
		bool set;
		int rc = get_bit(h, map, bit, &set);

		if (rc)
			return rc;
		if (set)
			rc = walk_elements(h, k, at, index, end - index < k->page ? end - index : k->page);
		if (rc < 0)
			return rc;
		worst = rc ? rc : worst;
	}
	return worst;
}

int vv_hdf5_arrays_fixed(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_element *each, void *arg)
{
	struct hdf5_arrays_walk k = { .each = each, .arg = arg };
	uint8_t text[8 + 2 * 8];
	uint64_t block, first, pages;
	unsigned bits;
	struct vv_wire w;
	int rc = vv_hdf5_file_block(h, at, "FAHD", text, 8u + h->length_size + h->address_size, &w);

	if (rc)
		return rc;
	vv_wire_u8(&w);
	k.coded = vv_wire_u8(&w) == 1;
	k.element = vv_wire_u8(&w);
	bits = vv_wire_u8(&w);
	k.n = vv_hdf5_file_length(h, &w);
	block = vv_hdf5_file_address(h, &w);
	if (block == VV_HDF5_NOWHERE || k.n == 0)
		return 0;
	if (check_element(h, &k) || bits > BITS_MAX || vv_hdf5_file_first(h, block))
		return VV_HDF5_BROKEN;
	rc = vv_hdf5_file_block(h, block, "FADB", text, 6, &w);
	if (rc)
		return rc;
	first = block + 6 + h->address_size;
	k.page = (uint64_t)1 << bits;
	if (k.n <= k.page)
		return walk_elements(h, &k, first, 0, k.n);
	pages = k.n / k.page + (k.n % k.page != 0);
	return walk_pages(h, &k, first + (pages + 7) / 8 + CHECKSUM, 0, k.n, first, 0);
}

/* Walks a data block. If it has pages, `map` is the address of their bitmap, from `bit` on. */
static int walk_data(struct vv_hdf5 *h, const struct hdf5_arrays_walk *k, uint64_t at, uint64_t index, uint64_t n, uint64_t map, uint64_t bit)
{
	uint64_t first = at + 6 + h->address_size + k->offset_size;
	uint8_t text[6];
	struct vv_wire w;
	int rc;

	if (at == VV_HDF5_NOWHERE || index >= k->n)
		return 0;
	rc = vv_hdf5_file_first(h, at);
	if (rc == 0)
		rc = vv_hdf5_file_block(h, at, "EADB", text, sizeof(text), &w);
	if (rc)
		return rc;
	return map ? walk_pages(h, k, first + CHECKSUM, index, n, map, bit) : walk_elements(h, k, first, index, n);
}

/* Walks `blocks` blocks of n elements each, by their addresses. */
static int walk_blocks(struct vv_hdf5 *h, const struct hdf5_arrays_walk *k, uint64_t at, uint64_t blocks, uint64_t n, uint64_t index, uint64_t map)
{
	uint8_t text[8];
	int worst = 0;

	for (uint64_t i = 0; i < blocks && index < k->n; i++, index += n, at += h->address_size) {
		struct vv_wire w = vv_wire_over(text, h->address_size);
		int rc = vv_hdf5_file_get(h, at, text, h->address_size);

		if (rc)
			return rc;
		rc = walk_data(h, k, vv_hdf5_file_address(h, &w), index, n, map, i * (n / k->page));
		if (rc < 0)
			return rc;
		worst = rc ? rc : worst;
	}
	return worst;
}

/* Walks a secondary block, of one step of the series below. */
static int walk_secondary(struct vv_hdf5 *h, const struct hdf5_arrays_walk *k, uint64_t at, uint64_t blocks, uint64_t n, uint64_t index)
{
	uint64_t first = at + 6 + h->address_size + k->offset_size, map = n > k->page ? first : 0;
	uint8_t text[6];
	struct vv_wire w;
	int rc;

	if (at == VV_HDF5_NOWHERE || index >= k->n)
		return 0;
	rc = vv_hdf5_file_first(h, at);
	if (rc == 0)
		rc = vv_hdf5_file_block(h, at, "EASB", text, sizeof(text), &w);
	if (rc)
		return rc;
	if (map)
		first += blocks * ((n / k->page + 7) / 8);
	return walk_blocks(h, k, first, blocks, n, index, map);
}

/* of an extensible array: step i has 2^(i/2) blocks of 2^((i+1)/2) x least elements */
struct hdf5_arrays_series {
	unsigned first;  /* elements in the index block */
	unsigned least;
	unsigned direct; /* steps whose blocks the index block addresses itself */
	unsigned steps;
};

static int walk_series(struct vv_hdf5 *h, const struct hdf5_arrays_walk *k, const struct hdf5_arrays_series *s, uint64_t at)
{
	uint64_t index = s->first;
	int rc = walk_elements(h, k, at, 0, s->first), worst = rc;

	at += (uint64_t)s->first * k->element;
	for (unsigned i = 0; i < s->steps && rc >= 0 && index < k->n; i++) {
		uint64_t blocks = (uint64_t)1 << i / 2, n = ((uint64_t)1 << (i + 1) / 2) * s->least;
		uint8_t text[8];
		struct vv_wire w = vv_wire_over(text, h->address_size);

		if (i < s->direct) {
			rc = walk_blocks(h, k, at, blocks, n, index, 0);
			at += blocks * h->address_size;
		} else {
			rc = vv_hdf5_file_get(h, at, text, h->address_size);
			if (rc == 0)
				rc = walk_secondary(h, k, vv_hdf5_file_address(h, &w), blocks, n, index);
			at += h->address_size;
		}
		worst = rc ? rc : worst;
		index += blocks * n;
	}
	return rc < 0 ? rc : worst;
}

static bool log2_of(unsigned n, unsigned *log)
{
	*log = n ? 31u - (unsigned)__builtin_clz(n) : 0;
	return n && !(n & (n - 1));
}

int vv_hdf5_arrays_extensible(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_element *each, void *arg)
{
	struct hdf5_arrays_walk k = { .each = each, .arg = arg };
	struct hdf5_arrays_series s;
	uint8_t text[12 + 6 * 8 + 8];
	uint64_t block;
	unsigned max_bits, page_bits, least_pointers, log_least, log_pointers;
	struct vv_wire w;
	int rc = vv_hdf5_file_block(h, at, "EAHD", text, 12u + 6u * h->length_size + h->address_size, &w);

	if (rc)
		return rc;
	vv_wire_u8(&w);
	k.coded = vv_wire_u8(&w) == 1;
	k.element = vv_wire_u8(&w);
	max_bits = vv_wire_u8(&w);
	s.first = vv_wire_u8(&w);
	s.least = vv_wire_u8(&w);
	least_pointers = vv_wire_u8(&w);
	page_bits = vv_wire_u8(&w);
	vv_wire_bytes(&w, 4u * h->length_size);
	k.n = vv_hdf5_file_length(h, &w);
	vv_wire_bytes(&w, h->length_size);
	block = vv_hdf5_file_address(h, &w);
	if (block == VV_HDF5_NOWHERE || k.n == 0)
		return 0;
	if (check_element(h, &k) || page_bits > BITS_MAX || max_bits > STEPS || !log2_of(s.least, &log_least) ||
	    !log2_of(least_pointers, &log_pointers) || max_bits < log_least || vv_hdf5_file_first(h, block))
		return VV_HDF5_BROKEN;
	rc = vv_hdf5_file_block(h, block, "EAIB", text, 6, &w);
	k.page = (uint64_t)1 << page_bits;
	k.offset_size = (max_bits + 7) / 8;
	s.steps = 1 + max_bits - log_least;
	s.direct = 2 * log_pointers;
	return rc ? rc : walk_series(h, &k, &s, block + 6 + h->address_size);
}
