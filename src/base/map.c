/* Linear probing, at most half full, no tombstones: a removal moves displaced entries back to the
 * hole (Knuth, volume 3, 6.4, algorithm R). The hash is FNV-1a with a final mix, because its low
 * bits choose the slot. */
#include "base/map.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

struct vv_map_slot {
	const char *key; /* NULL = free */
	uint64_t hash;
	size_t value;
};

enum { MIN_CAP = 16 };

static uint64_t hash(const char *key)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *key; key++)
		h = (h ^ (uint8_t)*key) * 0x100000001b3ull;
	return h ^ h >> 32;
}

/* The key's slot, or the free one where it belongs. */
static struct vv_map_slot *slot_of(const struct vv_map *m, const char *key, uint64_t h)
{
	size_t i = (size_t)h & (m->cap - 1);

	while (m->slot[i].key && (m->slot[i].hash != h || strcmp(m->slot[i].key, key) != 0))
		i = (i + 1) & (m->cap - 1);
	return &m->slot[i];
}

void vv_map_init(struct vv_map *m)
{
	*m = (struct vv_map){ 0 };
}

void vv_map_fini(struct vv_map *m)
{
	vv_mem_free(m->slot);
	vv_map_init(m);
}

int vv_map_reserve(struct vv_map *m, size_t n)
{
	struct vv_map bigger = { .n = m->n, .cap = m->cap ? m->cap : MIN_CAP };

	if (n <= m->cap / 2)
		return 0;
	while (bigger.cap / 2 < n)
		bigger.cap *= 2;
	bigger.slot = vv_mem_new(bigger.cap, sizeof(*bigger.slot));
	if (!bigger.slot)
		return VV_ENOMEM;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slot[i].key)
			*slot_of(&bigger, m->slot[i].key, m->slot[i].hash) = m->slot[i];
	vv_mem_free(m->slot);
	*m = bigger;
	return 0;
}

int vv_map_put(struct vv_map *m, const char *key, size_t value)
{
	uint64_t h = hash(key);
	struct vv_map_slot *s;
	int rc = vv_map_reserve(m, m->n + 1);

	if (rc)
		return rc;
	s = slot_of(m, key, h);
	m->n += !s->key;
	*s = (struct vv_map_slot){ key, h, value };
	return 0;
}

size_t vv_map_get(const struct vv_map *m, const char *key)
{
	const struct vv_map_slot *s = m->n ? slot_of(m, key, hash(key)) : NULL;

	return s && s->key ? s->value : VV_MAP_NONE;
}

void vv_map_remove(struct vv_map *m, const char *key)
{
	struct vv_map_slot *s = m->n ? slot_of(m, key, hash(key)) : NULL;
	size_t mask = m->cap - 1, hole;

	if (!s || !s->key)
		return;
	hole = (size_t)(s - m->slot);
	for (size_t i = (hole + 1) & mask; m->slot[i].key; i = (i + 1) & mask) {
		size_t home = (size_t)m->slot[i].hash & mask;

		/* the entry was displaced past the hole, or to it */
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			m->slot[hole] = m->slot[i];
			hole = i;
		}
	}
	m->slot[hole] = (struct vv_map_slot){ 0 };
	m->n--;
}

void vv_map_clear(struct vv_map *m)
{
	if (m->n)
		memset(m->slot, 0, m->cap * sizeof(*m->slot));
	m->n = 0;
}
