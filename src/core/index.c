/* Open addressing with linear probing; a slot carries 32 bits of the digest, so that a probe touches an entry only when
 * it is almost surely the right one. */
#include "core/index.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include <string.h>

#define MAX_POS (1ull << 40)
#define MAX_LAYERS (1u << 24)

void vv_index_fini(struct vv_index *x)
{
	vv_mem_free(x->entry);
	vv_mem_free(x->slot);
	vv_mem_free(x->layer);
	*x = (struct vv_index){ 0 };
}

int vv_index_reserve(struct vv_index *x, size_t n)
{
	size_t cap = x->cap + x->cap / 2 + 64;
	struct vv_entry *e;

	if (n <= x->cap - x->n)
		return 0;
	if (n > VV_INDEX_MAX - x->n)
		return vv_err_set(VV_EINVAL, "the digest index holds %zu chunks, its limit is %zu; use larger chunks", x->n,
				  (size_t)VV_INDEX_MAX);
	cap = cap < x->n + n ? x->n + n : cap;
	cap = cap < VV_INDEX_MAX ? cap : VV_INDEX_MAX;
	e = vv_mem_grow(x->entry, cap, sizeof(*e));
	if (!e)
		return VV_ENOMEM;
	x->entry = e;
	x->cap = cap;
	return 0;
}

static size_t home(const struct vv_index *x, const struct vv_digest *d)
{
	return (size_t)d->w[0] & x->mask;
}

static uint64_t tagged(const struct vv_digest *d, uint32_t number)
{
	return (d->w[1] >> 32) << 32 | (number + 1u);
}

void vv_index_prefetch(const struct vv_index *x, const struct vv_digest *d)
{
	if (x->slot)
		__builtin_prefetch(&x->slot[home(x, d)]);
}

/* The slot that holds d, or the empty one where it would go. */
static size_t probe(const struct vv_index *x, const struct vv_digest *d)
{
	uint64_t tag = d->w[1] >> 32;
	size_t i = home(x, d);

	for (; x->slot[i]; i = (i + 1) & x->mask)
		if (x->slot[i] >> 32 == tag && vv_digest_equal(&x->entry[(uint32_t)x->slot[i] - 1].digest, d))
			break;
	return i;
}

uint32_t vv_index_find(const struct vv_index *x, const struct vv_digest *d)
{
	size_t i;

	if (!x->slot)
		return VV_INDEX_NONE;
	i = probe(x, d);
	return x->slot[i] ? (uint32_t)x->slot[i] - 1 : VV_INDEX_NONE;
}

/* Puts all entries into a table; of equal digests the one that is there, or else the first, is the one that is found. */
static void refill(struct vv_index *x)
{
	for (size_t k = 0; k < x->n; k++) {
		size_t i = probe(x, &x->entry[k].digest);

		if (!x->slot[i])
			x->slot[i] = tagged(&x->entry[k].digest, (uint32_t)k);
	}
}

/* For n entries: at most seven tenths full, about half of that after growth. */
static size_t slots_for(size_t n)
{
	size_t size = 1024;

	while (n * 10 > size * 7)
		size *= 2;
	return size;
}

size_t vv_index_bytes(size_t n)
{
	return n * sizeof(struct vv_entry) + slots_for(n) * sizeof(uint64_t);
}

/* What was found is found: of equal digests that need not be the first. */
static int rehash(struct vv_index *x, size_t n)
{
	struct vv_index old = *x;
	size_t size = slots_for(n);
	uint64_t *slot = vv_mem_new(size, sizeof(*slot));

	if (!slot)
		return VV_ENOMEM;
	x->slot = slot;
	x->mask = size - 1;
	for (size_t k = 0; old.slot && k <= old.mask; k++)
		if (old.slot[k])
			slot[probe(x, &x->entry[(uint32_t)old.slot[k] - 1].digest)] = old.slot[k];
	vv_mem_free(old.slot);
	return 0;
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
	if (rc == 0 && (!x->slot || x->n * 10 >= (x->mask + 1) * 7))
		rc = rehash(x, x->n + 1);
	if (rc)
		return rc;
	i = probe(x, d);
	x->entry[x->n] = (struct vv_entry){ *d, source << 40 | pos };
	*number = (uint32_t)x->n;
	if (!x->slot[i])
		x->slot[i] = tagged(d, (uint32_t)x->n);
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

	if (rc == 0)
		x->slot[probe(x, d)] = tagged(d, *number);
	return rc;
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
	x->entry[number].where = source << 40 | pos;
}

/* The slot still has the old tag: who looks for that content is told by the digest that it is not there. A second slot could be one too many. */
void vv_index_rename(struct vv_index *x, uint32_t number, const struct vv_digest *d)
{
	x->entry[number].digest = *d;
}

void vv_index_truncate(struct vv_index *x, size_t n)
{
	if (n >= x->n)
		return;
	x->n = n;
	x->n_layers = 0;
	for (size_t i = 0; i < n; i++)
		if (x->entry[i].where >> 40 >= x->n_layers)
			x->n_layers = (size_t)(x->entry[i].where >> 40) + 1;
	memset(x->slot, 0, (x->mask + 1) * sizeof(*x->slot));
	refill(x);
}

/* Those that stay and their sources move down. */
static void close_ranks(struct vv_index *x, uint32_t *moved, uint32_t *source)
{
	size_t n = 0, n_layers = 0;

	for (size_t i = 0; i < x->n; i++)
		if (moved[i])
			source[x->entry[i].where >> 40] = 1;
	for (size_t k = 0; k < x->n_layers; k++)
		if (source[k]) {
			x->layer[n_layers++] = x->layer[k];
			source[k] = (uint32_t)n_layers;
		}
	for (size_t i = 0; i < x->n; i++)
		if (moved[i]) {
			uint64_t k = source[x->entry[i].where >> 40] - 1, pos = vv_index_pos(x, (uint32_t)i);

			x->entry[n++] = (struct vv_entry){ x->entry[i].digest, k << 40 | pos };
			moved[i] = (uint32_t)n;
		}
	x->n = n;
	x->n_layers = n_layers;
}

/* The slots of those that stay, one after another at the front; their number. */
static size_t gather_slots(struct vv_index *x, const uint32_t *moved)
{
	size_t n = 0;

	for (size_t k = 0; x->slot && k <= x->mask; k++) {
		uint32_t number = x->slot[k] ? moved[(uint32_t)x->slot[k] - 1] : 0;

		if (number)
			x->slot[n++] = x->slot[k] >> 32 << 32 | number;
	}
	return n;
}

/* A table of `size` slots of the first n slots, which are of those that were found: they are found again. In the memory of the old one where it is twice as large, for this is done when there is
 * little to be had. */
static void build_slots(struct vv_index *x, size_t size, uint64_t *fresh, size_t n)
{
	uint64_t *all = x->slot;

	x->slot = fresh ? fresh : all + (x->mask + 1) / 2;
	x->mask = size - 1;
	memset(x->slot, 0, size * sizeof(*x->slot));
	for (size_t k = 0; k < n; k++)
		x->slot[probe(x, &x->entry[(uint32_t)all[k] - 1].digest)] = all[k];
	if (fresh) {
		vv_mem_free(all);
		return;
	}
	memmove(all, x->slot, size * sizeof(*all));
	x->slot = vv_mem_grow(all, size, sizeof(*all));
	x->slot = x->slot ? x->slot : all;
}

int vv_index_compact(struct vv_index *x, uint32_t *moved, uint32_t *source)
{
	uint64_t *fresh = NULL;
	size_t n = 0, found, size;
	struct vv_entry *less;

	for (size_t i = 0; i < x->n; i++)
		n += moved[i] != 0;
	size = slots_for(n);
	if (!x->slot || size > (x->mask + 1) / 2) {
		fresh = vv_mem_new(size, sizeof(*fresh));
		if (!fresh)
			return VV_ENOMEM;
	}
	close_ranks(x, moved, source);
	found = gather_slots(x, moved);
	build_slots(x, size, fresh, found);
	if (found < n)
		refill(x); /* some stay that another hid, which goes */
	less = vv_mem_grow(x->entry, n, sizeof(*less));
	x->cap = less ? n : x->cap;
	x->entry = less ? less : x->entry;
	return 0;
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
