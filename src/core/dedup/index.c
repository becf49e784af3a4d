/* Open addressing with linear probing. A slot has four bytes: the number of the entry, and bits of
 * the digest in the rest. A probe therefore touches an entry only when it is likely to be the right
 * one. The table grows by quarters, and in place. */
#include "core/dedup/index.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include <string.h>

#define MAX_POS (1ull << 40)
#define MAX_LAYERS (1u << 24)
enum {
	AHEAD = 8,     /* entries whose slots are prefetched */
	MUCH_LESS = 4, /* a table keeps its slots unless it needs so many times fewer */
};

void vv_index_fini(struct vv_index *x)
{
	vv_mem_free(x->digest);
	vv_mem_free(x->where);
	vv_mem_free(x->supersedes);
	vv_mem_free(x->slot);
	vv_mem_free(x->layer);
	*x = (struct vv_index){ 0 };
}

/* Makes room for `cap` entries, more or fewer than before; the existing entries stay. */
static int resize(struct vv_index *x, size_t cap)
{
	struct vv_digest *digest = vv_mem_grow(x->digest, cap, sizeof(*digest));
	uint64_t *where = NULL;
	uint8_t *bits = NULL;

	if (digest) {
		x->digest = digest;
		x->cap = cap < x->cap ? cap : x->cap;
		where = vv_mem_grow(x->where, cap, sizeof(*where));
	}
	if (where) {
		x->where = where;
		bits = vv_mem_grow(x->supersedes, cap / 8 + 1, 1);
	}
	if (!bits)
		return VV_ENOMEM;
	x->supersedes = bits;
	x->cap = cap;
	return 0;
}

int vv_index_reserve(struct vv_index *x, size_t n)
{
	size_t cap = x->cap + x->cap / 2 + 64;

	if (n <= x->cap - x->n)
		return 0;
	if (n > VV_INDEX_MAX - x->n)
		return vv_err_set(VV_EINVAL, "the digest index holds %zu chunks, its limit is %zu; use larger chunks", x->n,
				  (size_t)VV_INDEX_MAX);
	cap = cap < x->n + n ? x->n + n : cap;
	cap = cap < VV_INDEX_MAX ? cap : VV_INDEX_MAX;
	return resize(x, cap);
}

static size_t home(const struct vv_index *x, const struct vv_digest *d)
{
	return (size_t)((unsigned __int128)d->w[1] * x->n_slots >> 64);
}

static uint32_t tag(const struct vv_index *x, const struct vv_digest *d)
{
	return (uint32_t)d->w[0] & x->tag;
}

static uint32_t number_in(const struct vv_index *x, uint32_t slot)
{
	return (slot & ~x->tag) - 1;
}

static uint32_t tagged(const struct vv_index *x, uint32_t number)
{
	return tag(x, &x->digest[number]) | (number + 1u);
}

void vv_index_prefetch(const struct vv_index *x, const struct vv_digest *d)
{
	if (x->slot)
		__builtin_prefetch(&x->slot[home(x, d)]);
}

/* The slot that holds d, or the empty slot for it. */
static size_t probe(const struct vv_index *x, const struct vv_digest *d)
{
	uint32_t its = tag(x, d);
	size_t i = home(x, d);

	for (; x->slot[i]; i = i + 1 < x->n_slots ? i + 1 : 0)
		if ((x->slot[i] & x->tag) == its && vv_digest_equal(&x->digest[number_in(x, x->slot[i])], d))
			break;
	return i;
}

uint32_t vv_index_find(const struct vv_index *x, const struct vv_digest *d)
{
	size_t i;

	if (!x->slot)
		return VV_INDEX_NONE;
	i = probe(x, d);
	return x->slot[i] ? number_in(x, x->slot[i]) : VV_INDEX_NONE;
}

static bool does_supersede(const struct vv_index *x, size_t number)
{
	return x->supersedes[number / 8] >> number % 8 & 1;
}

static void set_supersedes(struct vv_index *x, size_t number, bool yes)
{
	uint8_t bit = (uint8_t)(1u << number % 8), *byte = &x->supersedes[number / 8];

	*byte = (uint8_t)(yes ? *byte | bit : *byte & ~bit);
}

/* Puts all entries into the empty table, as they were added. */
static void fill(struct vv_index *x)
{
	for (size_t k = 0; k < x->n; k++) {
		size_t i;

		if (k + AHEAD < x->n)
			vv_index_prefetch(x, &x->digest[k + AHEAD]);
		i = probe(x, &x->digest[k]);
		if (!x->slot[i] || does_supersede(x, k))
			x->slot[i] = tagged(x, (uint32_t)k);
	}
}

/* The slots for n entries: at most seven tenths full, and more than five tenths after growth. */
static size_t slots_for(size_t n)
{
	size_t size = 1024;

	while (n * 10 > size * 7)
		size += size / 4;
	return size;
}

size_t vv_index_bytes(size_t n)
{
	return n * (sizeof(struct vv_digest) + sizeof(uint64_t)) + n / 8 + 1 + slots_for(n) * sizeof(uint32_t);
}

/* An empty table of `size` slots, in the memory of the one before. */
static int empty_slots(struct vv_index *x, size_t size)
{
	uint32_t *slot = size == x->n_slots ? x->slot : vv_mem_grow(x->slot, size, sizeof(*slot));
	unsigned bits = 64 - (unsigned)__builtin_clzll(size);

	if (!slot)
		return VV_ENOMEM;
	memset(slot, 0, size * sizeof(*slot));
	x->slot = slot;
	x->n_slots = size;
	x->tag = bits < 32 ? UINT32_MAX << bits : 0;
	return 0;
}

static int rehash(struct vv_index *x, size_t n)
{
	int rc = empty_slots(x, slots_for(n));

	if (rc == 0)
		fill(x);
	return rc;
}

int vv_index_source(struct vv_index *x, uint64_t layer, uint64_t *out)
{
	if (x->n_layers && x->layer[x->n_layers - 1] == layer) {
		*out = x->n_layers - 1;
		return 0;
	}
	if (x->n_layers == MAX_LAYERS)
		return vv_err_set(VV_EINVAL, "the lineage has more than 2^24 layers with content; run varve gc");
	if (vv_mem_room(&x->layer, x->n_layers, &x->layers_cap, sizeof(*x->layer)) < 0)
		return VV_ENOMEM;
	x->layer[x->n_layers] = layer;
	*out = x->n_layers++;
	return 0;
}

int vv_index_add_from(struct vv_index *x, const struct vv_digest *d, uint64_t source, uint64_t pos, uint32_t *number)
{
	size_t i;
	int rc;

	if (pos >= MAX_POS)
		return vv_err_set(VV_EINVAL, "a layer's payload exceeds 2^40 bytes");
	rc = vv_index_reserve(x, 1);
	if (rc == 0 && (!x->slot || x->n * 10 >= x->n_slots * 7))
		rc = rehash(x, x->n + 1);
	if (rc)
		return rc;
	i = probe(x, d);
	x->digest[x->n] = *d;
	x->where[x->n] = source << 40 | pos;
	set_supersedes(x, x->n, false);
	*number = (uint32_t)x->n;
	if (!x->slot[i])
		x->slot[i] = tagged(x, (uint32_t)x->n);
	x->n++;
	return 0;
}

int vv_index_add(struct vv_index *x, const struct vv_digest *d, uint64_t layer, uint64_t pos, uint32_t *number)
{
	uint64_t source = 0;
	int rc = vv_index_source(x, layer, &source);

	return rc ? rc : vv_index_add_from(x, d, source, pos, number);
}

int vv_index_supersede(struct vv_index *x, const struct vv_digest *d, uint64_t layer, uint64_t pos, uint32_t *number)
{
	int rc = vv_index_add(x, d, layer, pos, number);

	if (rc)
		return rc;
	x->slot[probe(x, d)] = tagged(x, *number);
	set_supersedes(x, *number, true);
	return 0;
}

int vv_index_add_layer(struct vv_index *x, uint64_t layer, const struct vv_digests *d)
{
	uint32_t number;
	int rc = vv_index_reserve(x, d->n);

	for (size_t g = 0; rc == 0 && g < d->n_groups; g++) {
		const struct vv_digest_group *group = &d->group[g];

		for (uint64_t i = 0; rc == 0 && i < group->count; i++)
			rc = vv_index_add(x, &d->v[group->digest + i], layer, group->pos + i * group->chunk, &number);
	}
	return rc;
}

void vv_index_move(struct vv_index *x, uint32_t number, uint64_t source, uint64_t pos)
{
	x->where[number] = source << 40 | pos;
}

/* The slot keeps the old tag. A search for the old content compares the digest and fails. A second
 * slot for the entry could overfill the table. */
void vv_index_rename(struct vv_index *x, uint32_t number, const struct vv_digest *d)
{
	x->digest[number] = *d;
	set_supersedes(x, number, false);
}

void vv_index_truncate(struct vv_index *x, size_t n)
{
	if (n >= x->n)
		return;
	x->n = n;
	x->n_layers = 0;
	for (size_t i = 0; i < n; i++)
		if (vv_index_from(x, (uint32_t)i) >= x->n_layers)
			x->n_layers = vv_index_from(x, (uint32_t)i) + 1;
	memset(x->slot, 0, x->n_slots * sizeof(*x->slot));
	fill(x);
}

/* Moves the remaining entries and their sources down. */
static void close_ranks(struct vv_index *x, uint32_t *moved, uint32_t *source)
{
	size_t n = 0, n_layers = 0;

	for (size_t i = 0; i < x->n; i++)
		if (moved[i])
			source[vv_index_from(x, (uint32_t)i)] = 1;
	for (size_t k = 0; k < x->n_layers; k++)
		if (source[k]) {
			x->layer[n_layers++] = x->layer[k];
			source[k] = (uint32_t)n_layers;
		}
	for (size_t i = 0; i < x->n; i++)
		if (moved[i]) {
			uint64_t k = source[vv_index_from(x, (uint32_t)i)] - 1;

			x->digest[n] = x->digest[i];
			x->where[n] = k << 40 | vv_index_pos(x, (uint32_t)i);
			set_supersedes(x, n, does_supersede(x, i));
			moved[i] = (uint32_t)++n;
		}
	x->n = n;
	x->n_layers = n_layers;
}

void vv_index_compact(struct vv_index *x, uint32_t *moved, uint32_t *source)
{
	size_t size;

	close_ranks(x, moved, source);
	size = slots_for(x->n);
	/* an index that is cut soon has its former size again */
	if (x->slot && empty_slots(x, size < x->n_slots / MUCH_LESS ? size : x->n_slots) < 0)
		/* it could not be made shorter */
		memset(x->slot, 0, x->n_slots * sizeof(*x->slot));
	fill(x);
	if (resize(x, x->n) < 0)
		vv_err_clear(); /* then the table has more room than it needs */
}

uint32_t vv_index_near(const struct vv_index *x, size_t n, uint64_t layer, uint64_t pos, uint32_t hint)
{
	if (hint < n && vv_index_layer(x, hint) == layer && vv_index_pos(x, hint) == pos)
		return hint;
	return vv_index_at(x, n, layer, pos);
}

static bool is_before(const struct vv_index *x, uint32_t entry, uint64_t layer, uint64_t pos)
{
	uint64_t l = vv_index_layer(x, entry);

	return l < layer || (l == layer && vv_index_pos(x, entry) < pos);
}

size_t vv_index_first(const struct vv_index *x, size_t n, uint64_t layer, uint64_t pos)
{
	size_t i;

	VV_SEARCH(i, 0, n, is_before(x, (uint32_t)i, layer, pos));
	return i;
}

uint32_t vv_index_at(const struct vv_index *x, size_t n, uint64_t layer, uint64_t pos)
{
	size_t i = vv_index_first(x, n, layer, pos);

	return i < n && vv_index_layer(x, (uint32_t)i) == layer && vv_index_pos(x, (uint32_t)i) == pos ? (uint32_t)i : VV_INDEX_NONE;
}
