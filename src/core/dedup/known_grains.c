#include "core/dedup/known_grains.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/dedup/grain.h"

enum { LEAST_SLOTS = 64 };

#define USED ((uint64_t)VV_PIECE_COPY << 62)

/* The slots for n entries: three quarters full, and never full. */
static size_t slots_for(size_t n)
{
	return n + n / 3 + LEAST_SLOTS;
}

/* Any number of slots will do: digests are spread over them in their own order. */
static size_t home(const struct vv_known_grains_table *t, const struct vv_digest *d)
{
	return (size_t)((unsigned __int128)d->w[0] * t->cap >> 64);
}

static size_t after(const struct vv_known_grains_table *t, size_t at)
{
	return at + 1 < t->cap ? at + 1 : 0;
}

/* The slot of d, or the empty slot for it. */
static struct vv_known_grains_slot *look(const struct vv_known_grains_table *t, const struct vv_digest *d)
{
	size_t at = home(t, d);

	while (t->slot[at].place && !vv_digest_equal(&t->slot[at].digest, d))
		at = after(t, at);
	return &t->slot[at];
}

static void drop(struct vv_known_grains_table *t)
{
	vv_mem_unmap(t->slot, t->cap * sizeof(*t->slot));
	*t = (struct vv_known_grains_table){ 0 };
}

/* Moves the entries into `cap` slots. */
static int resize(struct vv_known_grains_table *t, size_t cap)
{
	struct vv_known_grains_table other = { .slot = vv_mem_map_wide(cap * sizeof(*t->slot)), .cap = cap, .n = t->n };

	if (!other.slot)
		return VV_ENOMEM;
	for (size_t at = 0; at < t->cap; at++)
		if (t->slot[at].place)
			*look(&other, &t->slot[at].digest) = t->slot[at];
	drop(t);
	*t = other;
	return 0;
}

/* Makes room for n entries. If there is an aged generation, young gets all its room at once. For a
 * moment both the old and the new slots exist. Together they must not exceed two full
 * generations. */
static int reserve(struct vv_known_grains *k, size_t n)
{
	struct vv_known_grains_table *t = &k->young;
	size_t want = slots_for(n), most = slots_for(k->limit);

	if (want <= t->cap)
		return 0;
	want += want / 2; /* so that the next growth is not soon */
	return resize(t, k->aged.cap || want > most ? most : want);
}

static void drop_aged(struct vv_known_grains *k)
{
	k->forgotten += k->aged.n - k->both;
	k->both = 0;
	drop(&k->aged);
}

int vv_known_grains_limit(struct vv_known_grains *k, size_t limit)
{
	size_t most = slots_for(limit);
	int rc = 0;

	k->limit = limit;
	if (k->aged.n > limit)
		drop_aged(k);
	if (k->young.n > limit) {
		k->forgotten += k->young.n - k->both;
		k->both = 0;
		drop(&k->young);
	}
	if (k->aged.cap > most)
		rc = resize(&k->aged, most);
	if (rc == 0 && k->young.cap > most)
		rc = resize(&k->young, most);
	return rc;
}

int vv_known_grains_begin(struct vv_known_grains *k, size_t n, size_t *take)
{
	size_t may = n < k->limit ? n : k->limit;
	int rc;

	if (k->young.n && k->young.n + n > k->limit) {
		drop_aged(k);
		k->aged = k->young;
		k->young = (struct vv_known_grains_table){ 0 };
	}
	rc = reserve(k, k->young.n + may);
	if (rc)
		return rc;
	k->forgotten += n - may;
	*take = may;
	return 0;
}

/* Prefetches several lines: a search for an unknown digest visits several slots. Always inline: a
 * compiler may leave out calls of a function that only prefetches. */
static inline __attribute__((always_inline)) void prefetch(const struct vv_known_grains_table *t, const struct vv_digest *d)
{
	enum { LINE = 64, LINES = 2 };
	const char *p = (const char *)&t->slot[home(t, d)];

	for (int i = 0; i < LINES; i++)
		__builtin_prefetch(p + i * LINE);
}

void vv_known_grains_prefetch(const struct vv_known_grains *k, const struct vv_digest *d)
{
	prefetch(&k->young, d);
	if (k->aged.n)
		prefetch(&k->aged, d);
}

static void fill(struct vv_known_grains *k, struct vv_known_grains_slot *slot, const struct vv_digest *d, uint64_t place)
{
	*slot = (struct vv_known_grains_slot){ *d, place | USED };
	k->young.n++;
}

/* The slot of d in young, after moving its entry there from aged; or the empty slot for it. */
static struct vv_known_grains_slot *meet(struct vv_known_grains *k, const struct vv_digest *d)
{
	struct vv_known_grains_slot *slot = look(&k->young, d), *old;

	if (slot->place || k->aged.n == 0)
		return slot;
	old = look(&k->aged, d);
	if (old->place) {
		fill(k, slot, d, old->place);
		k->both++;
	}
	return slot;
}

bool vv_known_grains_find(struct vv_known_grains *k, const struct vv_digest *d, uint64_t *place)
{
	struct vv_known_grains_slot *slot = meet(k, d);

	if (slot->place)
		*place = slot->place & ~USED;
	return slot->place;
}

bool vv_known_grains_enter(struct vv_known_grains *k, const struct vv_digest *d, uint64_t *place)
{
	struct vv_known_grains_slot *slot = meet(k, d);

	if (slot->place) {
		*place = slot->place & ~USED;
		return true;
	}
	fill(k, slot, d, *place);
	return false;
}

/* The entries that follow move up, as if the removed one had never been there. */
static void remove_at(struct vv_known_grains_table *t, size_t hole)
{
	for (size_t at = after(t, hole); t->slot[at].place; at = after(t, at)) {
		size_t from = home(t, &t->slot[at].digest);
		bool stays = hole < at ? hole < from && from <= at : hole < from || from <= at;

		if (!stays) {
			t->slot[hole] = t->slot[at];
			hole = at;
		}
	}
	t->slot[hole] = (struct vv_known_grains_slot){ 0 };
	t->n--;
}

void vv_known_grains_drop(struct vv_known_grains *k, const struct vv_digest *d, uint64_t place)
{
	struct vv_known_grains_slot *slot = k->young.n ? look(&k->young, d) : NULL;

	if (slot && slot->place == (place | USED))
		remove_at(&k->young, (size_t)(slot - k->young.slot));
}

void vv_known_grains_kill(struct vv_known_grains *k, uint32_t ordinal)
{
	struct vv_known_grains_table *table[] = { &k->aged, &k->young };

	for (int g = 0; g < 2; g++)
		for (size_t at = 0; at < table[g]->cap;) {
			const struct vv_known_grains_slot *slot = &table[g]->slot[at];

			if (!slot->place || vv_grain_ordinal(slot->place) != ordinal) {
				at++;
				continue;
			}
			k->both -= g == 0 && k->young.n && look(&k->young, &slot->digest)->place;
			remove_at(table[g], at);
		}
}

void vv_known_grains_clear(struct vv_known_grains *k)
{
	drop(&k->young);
	drop(&k->aged);
	k->both = 0;
}

void vv_known_grains_fini(struct vv_known_grains *k)
{
	vv_known_grains_clear(k);
	*k = (struct vv_known_grains){ 0 };
}

size_t vv_known_grains_bytes(const struct vv_known_grains *k)
{
	return (k->young.cap + k->aged.cap) * sizeof(struct vv_known_grains_slot);
}
