#include "preload/unreachable.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "preload/heap.h"
#include "preload/heap_rebuild.h"
#include <string.h>

enum {
	PAGE = 4096, /* of `cover`; any size would do */
	BLOCK = 64,
	LANES = VV_HEAP_LANES - VV_HEAP_LATER,
	BITS = 64,
};

/* A later lane. An unsound one is no array of objects: all of it is a root. */
struct unreachable_lane {
	uintptr_t lo, hi;
	uintptr_t *cover;  /* for each page: the object that began before it and reaches into it */
	uint64_t *reached; /* a bit for each grain */
	bool sound;
};

struct search {
	struct unreachable_lane lane[LANES]; /* ascending */
	uintptr_t lo, hi;                    /* around all lanes */
	uintptr_t *pending;                  /* reached, not examined yet */
	size_t n, cap;
	int rc;
};

static size_t room_of(uintptr_t object)
{
	return vv_heap_mark_room(*vv_heap_mark((void *)object));
}

/* ---- objects of a lane ----------------------------------------------------------------------- */

static void cover_pages(struct unreachable_lane *l, uintptr_t object, size_t room)
{
	for (size_t i = (object - l->lo) / PAGE + 1; l->lo + i * PAGE < object + room; i++)
		l->cover[i] = object;
}

static void each_object(struct unreachable_lane *l, void (*fn)(struct unreachable_lane *l, uintptr_t object, size_t room, void *arg), void *arg)
{
	for (uintptr_t at = vv_heap_next(l->lo, l->hi); at < l->hi;) {
		size_t room = room_of(at);

		fn(l, at, room, arg);
		at = at + room < l->hi ? vv_heap_next(at + room, l->hi) : l->hi;
	}
}

static void index_object(struct unreachable_lane *l, uintptr_t object, size_t room, void *heap)
{
	*(uint64_t *)heap += room;
	cover_pages(l, object, room);
}

static size_t bytes_of_cover(const struct unreachable_lane *l)
{
	return ((l->hi - l->lo) / PAGE + 1) * sizeof(*l->cover);
}

static size_t bytes_of_reached(const struct unreachable_lane *l)
{
	return ((l->hi - l->lo) / VV_HEAP_GRAIN / BITS + 1) * sizeof(*l->reached);
}

static int open_lane(struct unreachable_lane *l, unsigned number, uint64_t *heap)
{
	size_t used = vv_heap_used(number);

	vv_heap_piece(number, 0, &l->lo);
	l->hi = l->lo + used;
	l->sound = used && vv_heap_rebuild_is_sound(l->lo, used);
	if (!l->sound)
		return 0;
	l->cover = vv_mem_map(bytes_of_cover(l));
	l->reached = vv_mem_map(bytes_of_reached(l));
	if (!l->cover || !l->reached)
		return VV_ENOMEM;
	each_object(l, index_object, heap);
	return 0;
}

static void close_lane(struct unreachable_lane *l)
{
	vv_mem_unmap(l->cover, bytes_of_cover(l));
	vv_mem_unmap(l->reached, bytes_of_reached(l));
}

/* Returns the object with this byte; 0: there is none. */
static uintptr_t find_object(const struct unreachable_lane *l, uintptr_t p)
{
	size_t page = (p - l->lo) / PAGE;
	uintptr_t first = l->lo + page * PAGE, at = p & ~(uintptr_t)(VV_HEAP_GRAIN - 1);

	while (at > first && *vv_heap_mark((void *)at) == 0)
		at -= VV_HEAP_GRAIN;
	if (*vv_heap_mark((void *)at) == 0)
		at = l->cover[page];
	return at && p - at < room_of(at) ? at : 0;
}

/* Returns whether it was reached before. */
static bool set_reached(struct unreachable_lane *l, uintptr_t object)
{
	size_t grain = (object - l->lo) / VV_HEAP_GRAIN;
	uint64_t *word = &l->reached[grain / BITS], bit = (uint64_t)1 << grain % BITS;
	bool before = *word & bit;

	*word |= bit;
	return before;
}

/* ---- the search ------------------------------------------------------------------------------ */

static void reach(struct search *s, uintptr_t p)
{
	struct unreachable_lane *l;
	uintptr_t object;
	size_t i;

	VV_SEARCH(i, 0, LANES, s->lane[i].hi <= p);
	l = &s->lane[i];
	if (i == LANES || p < l->lo || !l->sound)
		return;
	object = find_object(l, p);
	if (!object || set_reached(l, object))
		return;
	s->rc = s->rc ? s->rc : vv_mem_room(&s->pending, s->n, &s->cap, sizeof(*s->pending));
	if (s->rc == 0)
		s->pending[s->n++] = object;
}

/* May a pointer into the lanes begin in this block? Looks at the upper three bytes only, which
 * compilers do for 16 and more places at once. */
static bool may_point(const struct search *s, const uint8_t *p)
{
	uint8_t first = (uint8_t)(s->lo >> 40), most = (uint8_t)(s->hi >> 40) - first, upper[] = { (uint8_t)(s->lo >> 48), (uint8_t)(s->lo >> 56) };
	uint8_t any = 0;

	for (int i = 0; i < BLOCK; i++)
		any |= ((uint8_t)(p[i + 5] - first) <= most) & (p[i + 6] == upper[0]) & (p[i + 7] == upper[1]);
	return any || s->lo >> 48 != s->hi >> 48;
}

static void examine(struct search *s, uintptr_t lo, size_t n)
{
	const uint8_t *p = (const uint8_t *)lo, *end = p + (n < sizeof(lo) ? 0 : n - sizeof(lo) + 1);
	uintptr_t word;

	while (p < end) {
		size_t k = end - p < BLOCK ? (size_t)(end - p) : BLOCK;
		bool may = k < BLOCK || may_point(s, p);

		for (size_t i = 0; may && i < k; i++) {
			__builtin_memcpy(&word, p + i, sizeof(word)); /* inline, unlike memcpy here */
			if (word - s->lo < s->hi - s->lo)
				reach(s, word);
		}
		p += k;
	}
}

static void examine_startup(void *arg, uintptr_t at, uint8_t mark)
{
	examine(arg, at, vv_heap_mark_room(mark));
}

static void examine_pending(struct search *s)
{
	while (s->n && s->rc == 0) {
		uintptr_t object = s->pending[--s->n];

		examine(s, object, room_of(object));
	}
}

static void search(struct search *s, const struct vv_memory_range *root, size_t n)
{
	vv_heap_walk(examine_startup, s);
	for (size_t i = 0; i < n; i++)
		examine(s, root[i].lo, root[i].hi - root[i].lo);
	for (size_t i = 0; i < LANES; i++)
		if (!s->lane[i].sound)
			examine(s, s->lane[i].lo, s->lane[i].hi - s->lane[i].lo);
	examine_pending(s);
}

static bool is_readable(const struct vv_memory_map *m)
{
	return m->mode[0] == 'r';
}

/* The program may have protected memory in its start-up. */
static int check_readable(const struct vv_memory_range *root, size_t n)
{
	struct vv_memory_range *r = vv_mem_new(n + VV_HEAP_LATER, sizeof(*r));
	size_t all = n;
	bool ok = r;

	if (!r)
		return VV_ENOMEM;
	memcpy(r, root, n * sizeof(*r));
	for (unsigned i = 0; i < VV_HEAP_LATER; i++) {
		uintptr_t lo;
		size_t used = vv_heap_used(i);

		vv_heap_piece(i, 0, &lo);
		if (used)
			r[all++] = (struct vv_memory_range){ lo, lo + used, false };
	}
	all = vv_memory_tidy(r, all);
	vv_memory_look(r, all, is_readable);
	for (size_t i = 0; i < all; i++)
		ok = ok && r[i].ok;
	vv_mem_free(r);
	return ok ? 0 : VV_EINVAL;
}

/* ---- its result ------------------------------------------------------------------------------ */

struct sum {
	struct vv_unreachable *out;
	bool free_them;
};

static void count_object(struct unreachable_lane *l, uintptr_t object, size_t room, void *arg)
{
	struct sum *sum = arg;

	if (set_reached(l, object))
		return;
	sum->out->objects++;
	sum->out->bytes += room;
	if (sum->free_them)
		*vv_heap_mark((void *)object) = 0;
}

void vv_unreachable_find(const struct vv_memory_range *root, size_t n, bool free_them, struct vv_unreachable *out)
{
	struct search s = { .rc = check_readable(root, n) };
	struct sum sum = { out, free_them };

	*out = (struct vv_unreachable){ 0 };
	for (unsigned i = 0; s.rc == 0 && i < LANES; i++)
		s.rc = open_lane(&s.lane[i], VV_HEAP_LATER + i, &out->heap);
	s.lo = s.lane[0].lo;
	s.hi = s.lane[LANES - 1].hi;
	if (s.rc == 0)
		search(&s, root, n);
	for (unsigned i = 0; i < LANES; i++) {
		if (s.rc == 0 && s.lane[i].sound)
			each_object(&s.lane[i], count_object, &sum);
		close_lane(&s.lane[i]);
	}
	vv_mem_free(s.pending);
}
