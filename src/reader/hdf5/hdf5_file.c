/* Reads bytes of an HDF5 file at its internal addresses. Metadata is scattered and read in small
 * portions, and the file may be remote. So it is read in pages, and the most recently used ones are
 * kept. */
#include "reader/hdf5/hdf5_file.h"
#include "base/mem.h"
#include "base/err.h"
#include "reader/hdf5/hdf5_priv.h"
#include <string.h>

enum { PAGE = 8 << 10, SETS = 128, WAYS = 4, LEAST = 16 };

struct vv_hdf5_cache {
	uint64_t clock;
	struct hdf5_file_page {
		uint64_t number, used; /* used 0: empty */
		uint8_t *bytes;
	} page[SETS][WAYS];
};

int vv_hdf5_file_open(struct vv_hdf5 *h)
{
	const uint64_t constant = 16 << 20, multiple = 8, most = (uint64_t)16 << 30;

	h->budget = h->f->len < most / multiple ? constant + multiple * h->f->len : most;
	h->cache = vv_mem_new(1, sizeof(*h->cache));
	return h->cache ? 0 : VV_ENOMEM;
}

void vv_hdf5_file_close(struct vv_hdf5 *h)
{
	for (unsigned i = 0; h->cache && i < SETS * WAYS; i++)
		vv_mem_free(h->cache->page[i / WAYS][i % WAYS].bytes);
	vv_mem_free(h->cache);
	vv_mem_free(h->seen.slot);
}

int vv_hdf5_file_spend(struct vv_hdf5 *h, uint64_t n)
{
	n = n < LEAST ? LEAST : n;
	if (n > h->budget)
		return VV_HDF5_BROKEN;
	h->budget -= n;
	return 0;
}

bool vv_hdf5_file_has(const struct vv_hdf5 *h, uint64_t at, uint64_t n)
{
	uint64_t len = h->f->len - h->base;

	return at <= len && n <= len - at;
}

/* The page of this number, or else the least recently used one. */
static struct hdf5_file_page *choose_page(struct hdf5_file_page *set, uint64_t number)
{
	struct hdf5_file_page *oldest = set;

	for (struct hdf5_file_page *p = set; p < set + WAYS; p++) {
		if (p->used && p->number == number)
			return p;
		if (p->used < oldest->used)
			oldest = p;
	}
	return oldest;
}

static int fill_page(struct vv_hdf5 *h, struct hdf5_file_page *p, uint64_t number)
{
	uint64_t left = h->f->len - number * PAGE;
	int rc;

	left = left < PAGE ? left : PAGE;
	p->used = 0;
	if (!p->bytes)
		p->bytes = vv_mem_grow(NULL, PAGE, 1);
	if (!p->bytes)
		return VV_ENOMEM;
	rc = vv_hdf5_file_spend(h, left);
	if (rc == 0)
		rc = h->f->read(h->f->arg, number * PAGE, p->bytes, left);
	p->number = number;
	return rc;
}

static int load_page(struct vv_hdf5 *h, uint64_t number, const uint8_t **out)
{
	struct hdf5_file_page *p = choose_page(h->cache->page[number % SETS], number);
	int rc = p->used && p->number == number ? 0 : fill_page(h, p, number);

	if (rc)
		return rc;
	p->used = ++h->cache->clock;
	*out = p->bytes;
	return 0;
}

int vv_hdf5_file_get(struct vv_hdf5 *h, uint64_t at, void *to, size_t n)
{
	uint8_t *out = to;
	const uint8_t *page;
	int rc = vv_hdf5_file_has(h, at, n) ? vv_hdf5_file_spend(h, n) : VV_HDF5_BROKEN;

	for (at += h->base; rc == 0 && n;) {
		size_t skip = at % PAGE, part = PAGE - skip < n ? PAGE - skip : n;

		rc = load_page(h, at / PAGE, &page);
		if (rc == 0)
			memcpy(out, page + skip, part);
		at += part;
		out += part;
		n -= part;
	}
	return rc;
}

int vv_hdf5_file_block(struct vv_hdf5 *h, uint64_t at, const char *magic, void *to, size_t n, struct vv_wire *w)
{
	int rc = vv_hdf5_file_get(h, at, to, n);

	if (rc)
		return rc;
	*w = vv_wire_over((const uint8_t *)to + 4, n - 4);
	return memcmp(to, magic, 4) ? VV_HDF5_BROKEN : 0;
}

static uint64_t *find_slot(uint64_t *slot, size_t cap, uint64_t key)
{
	size_t i = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (cap - 1);

	while (slot[i] && slot[i] != key)
		i = (i + 1) & (cap - 1);
	return &slot[i];
}

static int grow_seen(struct vv_hdf5 *h)
{
	size_t cap = h->seen.cap ? 2 * h->seen.cap : 256;
	uint64_t *slot = vv_mem_new(cap, sizeof(*slot));

	if (!slot)
		return VV_ENOMEM;
	for (size_t i = 0; i < h->seen.cap; i++)
		if (h->seen.slot[i])
			*find_slot(slot, cap, h->seen.slot[i]) = h->seen.slot[i];
	vv_mem_free(h->seen.slot);
	h->seen.slot = slot;
	h->seen.cap = cap;
	return 0;
}

int vv_hdf5_file_first(struct vv_hdf5 *h, uint64_t at)
{
	uint64_t *slot;

	if (!vv_hdf5_file_has(h, at, 1) || h->seen.n == VV_HDF5_BLOCKS || vv_hdf5_file_spend(h, LEAST))
		return VV_HDF5_BROKEN;
	if (2 * h->seen.n >= h->seen.cap && grow_seen(h))
		return VV_ENOMEM;
	slot = find_slot(h->seen.slot, h->seen.cap, at + 1);
	if (*slot)
		return VV_HDF5_BROKEN;
	*slot = at + 1;
	h->seen.n++;
	return 0;
}

uint64_t vv_hdf5_file_uint(struct vv_wire *w, unsigned size)
{
	const uint8_t *p = size <= 8 ? vv_wire_bytes(w, size) : NULL;
	uint64_t v = 0;

	if (!p) {
		w->bad = true;
		return 0;
	}
	for (unsigned i = size; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

uint64_t vv_hdf5_file_address(const struct vv_hdf5 *h, struct vv_wire *w)
{
	uint64_t at = vv_hdf5_file_uint(w, h->address_size);
	uint64_t none = UINT64_MAX >> (64 - 8 * h->address_size);

	return at == none ? VV_HDF5_NOWHERE : at;
}

uint64_t vv_hdf5_file_length(const struct vv_hdf5 *h, struct vv_wire *w)
{
	return vv_hdf5_file_uint(w, h->length_size);
}
