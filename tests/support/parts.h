/* A state that is divided over ranks in a random way: a global array in boxes with ghost cells, a list, and a shared value. Each element's
 * value follows from its place and a version, so any rank of any number of ranks can be checked. */
#ifndef VV_TEST_PARTS_H
#define VV_TEST_PARTS_H

#include "support/must.h"
#include "support/pages.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve_comm.h>

#define OK(call) MUST((call) >= 0)

enum { PARTS_DIMS = 4, PARTS_RANKS = 8, PARTS_BOXES = 40, PARTS_GHOST = 3 };

struct parts_box {
	size_t start[PARTS_DIMS], count[PARTS_DIMS];
	uint32_t owner;
};

/* One way of dividing the state. */
struct parts_cut {
	uint32_t ranks;
	size_t ghost[PARTS_DIMS];
	struct parts_box box[PARTS_BOXES];
	int n;
	size_t items[PARTS_RANKS]; /* of the list */
};

struct parts_state {
	int ndim;
	size_t global[PARTS_DIMS];
	size_t element;   /* bytes, of the type */
	enum varve_type type;
	size_t list, width; /* items of the list, and numbers of 4 bytes in an item */
};

struct parts_random {
	uint64_t s;
};

static inline uint64_t parts_rng(struct parts_random *r, uint64_t below)
{
	r->s++;
	return pages_mix(r->s) % (below ? below : 1);
}

static inline struct parts_state parts_invent(struct parts_random *r)
{
	static const struct {
		enum varve_type type;
		size_t size;
	} kinds[] = { { VARVE_F64, 8 }, { VARVE_U8, 1 }, { VARVE_F32, 4 }, { VARVE_C128, 16 }, { VARVE_I16, 2 } };
	size_t k = parts_rng(r, sizeof(kinds) / sizeof(kinds[0]));
	struct parts_state s = { .ndim = 1 + (int)parts_rng(r, PARTS_DIMS), .element = kinds[k].size, .type = kinds[k].type };
	static const size_t most[PARTS_DIMS + 1] = { 0, 9000, 70, 22, 9 };

	for (int d = 0; d < s.ndim; d++)
		s.global[d] = 1 + parts_rng(r, most[s.ndim]);
	s.list = parts_rng(r, 5) ? parts_rng(r, 3000) : 0;
	s.width = 1 + parts_rng(r, 5);
	return s;
}

/* Divides a box at random places until there are enough boxes; the owners are random. `even`: along the first dimension, in order. */
static inline void parts_divide(struct parts_random *r, const struct parts_state *s, uint32_t ranks, struct parts_cut *c)
{
	bool even = parts_rng(r, 3) == 0, cyclic = !even && parts_rng(r, 3) == 0;
	size_t left = s->list;
	int want = even ? (int)ranks : 1 + (int)parts_rng(r, (cyclic ? 3 : 2) * ranks);

	*c = (struct parts_cut){ .ranks = ranks, .n = 1 };
	for (int d = 0; d < s->ndim; d++) {
		c->ghost[d] = parts_rng(r, 2) ? parts_rng(r, PARTS_GHOST + 1) : 0;
		c->box[0].count[d] = s->global[d];
	}
	c->box[0].owner = (uint32_t)parts_rng(r, ranks);
	if (even || cyclic) {
		size_t at = 0;

		c->n = want;
		for (int i = 0; i < want; i++) {
			size_t n = (s->global[0] - at) / (size_t)(want - i);

			c->box[i] = c->box[0];
			c->box[i].start[0] = at;
			c->box[i].count[0] = n;
			c->box[i].owner = (uint32_t)i % ranks;
			at += n;
		}
	}
	while (!even && !cyclic && c->n < want && c->n < PARTS_BOXES) {
		struct parts_box *b = &c->box[parts_rng(r, (uint64_t)c->n)], *x = &c->box[c->n];
		int d = (int)parts_rng(r, (uint64_t)s->ndim);
		size_t at = parts_rng(r, b->count[d] + 1);

		*x = *b;
		x->owner = (uint32_t)parts_rng(r, ranks);
		x->start[d] += at;
		x->count[d] -= at;
		b->count[d] = at;
		c->n++;
	}
	for (uint32_t k = 0; k < ranks; k++) {
		size_t n = k + 1 == ranks ? left : parts_rng(r, left + 1);

		c->items[k] = n;
		left -= n;
	}
}

/* ---- a rank's memory ------------------------------------------------------------------------- */

struct parts_memory {
	uint8_t *p[PARTS_BOXES]; /* of the boxes that the rank owns */
	uint8_t *list;
	uint64_t shared[3];
};

static inline size_t parts_cells(const struct parts_state *s, const struct parts_cut *c, int i)
{
	size_t n = 1;

	for (int d = 0; d < s->ndim; d++)
		n *= c->box[i].count[d] + 2 * c->ghost[d];
	return n;
}

static inline void parts_value(uint64_t version, uint64_t number, uint8_t *to, size_t n)
{
	/* Half of the elements never change, and many are equal. */
	uint64_t z = number % 3 == 0 ? pages_mix(number % 50) : pages_mix(number * 1000003 + (number % 2 ? version : 0));

	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(z >> 8 * (i % 8)) ^ (uint8_t)(i / 8);
}

/* The number of cell k of a box's memory, by its place in the global array; ghost cells outside have one, too. *inside: it is no such
 * cell. own: it is the box's own. */
static inline uint64_t parts_number(const struct parts_state *s, const struct parts_cut *c, int i, size_t k, bool *inside, bool *own, long at[PARTS_DIMS])
{
	uint64_t number = 0;

	*inside = *own = true;
	for (int d = s->ndim - 1; d >= 0; d--) {
		size_t len = c->box[i].count[d] + 2 * c->ghost[d];

		at[d] = (long)(c->box[i].start[d] + k % len) - (long)c->ghost[d];
		*inside &= at[d] >= 0 && at[d] < (long)s->global[d];
		*own &= at[d] >= (long)c->box[i].start[d] && at[d] < (long)(c->box[i].start[d] + c->box[i].count[d]);
		k /= len;
	}
	for (int d = 0; d < s->ndim; d++)
		number = number * (s->global[d] + 2 * PARTS_GHOST) + (uint64_t)(at[d] + PARTS_GHOST);
	return number;
}

static inline bool parts_is_empty(const struct parts_state *s, const struct parts_cut *c, int i)
{
	for (int d = 0; d < s->ndim; d++)
		if (!c->box[i].count[d])
			return true;
	return false;
}

/* Did a rank of that division provide the cell, which may lie outside of the array? */
static inline bool parts_provides(const struct parts_state *s, const struct parts_cut *c, const long at[PARTS_DIMS])
{
	for (int i = 0; i < c->n; i++) {
		bool in = !parts_is_empty(s, c, i);

		for (int d = 0; in && d < s->ndim; d++) {
			long lo = (long)c->box[i].start[d], hi = lo + (long)c->box[i].count[d];

			lo -= lo == 0 ? (long)c->ghost[d] : 0;
			hi += hi == (long)s->global[d] ? (long)c->ghost[d] : 0;
			in = at[d] >= lo && at[d] < hi;
		}
		if (in)
			return true;
	}
	return false;
}

static inline size_t parts_items_before(const struct parts_cut *c, uint32_t rank)
{
	size_t n = 0;

	for (uint32_t k = 0; k < rank; k++)
		n += c->items[k];
	return n;
}

static inline void parts_declare(varve *v, const struct parts_state *s, const struct parts_cut *c, uint32_t rank, struct parts_memory *m)
{
	char name[32];

	for (int i = 0; i < c->n; i++) {
		if (c->box[i].owner != rank)
			continue;
		if (!m->p[i])
			m->p[i] = malloc(parts_cells(s, c, i) * s->element + 1);
		snprintf(name, sizeof(name), "T#%d", i);
		OK(varve_protect_slab(v, name, m->p[i], s->type, s->ndim, s->global, c->box[i].start, c->box[i].count, c->ghost));
	}
	if (!m->list)
		m->list = malloc(c->items[rank] * s->width * 4 + 1);
	OK(varve_protect_list(v, "particles", m->list, s->width % 2 ? VARVE_F32 : VARVE_BYTES, s->width % 2 ? s->width : s->width * 4, c->items[rank]));
	OK(varve_protect_shared(v, "step", m->shared, sizeof(m->shared)));
}

static inline void parts_fill(const struct parts_state *s, const struct parts_cut *c, uint32_t rank, uint64_t version, struct parts_memory *m)
{
	bool inside, own;
	long at[PARTS_DIMS];

	for (int i = 0; i < c->n; i++)
		for (size_t k = 0; c->box[i].owner == rank && k < parts_cells(s, c, i); k++)
			parts_value(version, parts_number(s, c, i, k, &inside, &own, at), m->p[i] + k * s->element, s->element);
	for (size_t k = 0; k < c->items[rank]; k++)
		parts_value(version, parts_items_before(c, rank) + k + 7777777, m->list + k * s->width * 4, s->width * 4);
	for (int k = 0; k < 3; k++)
		m->shared[k] = pages_mix(version) + (uint64_t)k;
}

enum { PARTS_POISON = 0xee };

static inline void parts_poison(const struct parts_state *s, const struct parts_cut *c, uint32_t rank, struct parts_memory *m)
{
	for (int i = 0; i < c->n; i++)
		if (c->box[i].owner == rank)
			memset(m->p[i], PARTS_POISON, parts_cells(s, c, i) * s->element);
	memset(m->list, PARTS_POISON, c->items[rank] * s->width * 4);
	memset(m->shared, PARTS_POISON, sizeof(m->shared));
}

/* from: the division that was stored. */
static inline void parts_check(const struct parts_state *s, const struct parts_cut *c, const struct parts_cut *from, uint32_t rank, uint64_t version,
			       const struct parts_memory *m)
{
	uint8_t want[64];
	bool inside, own;
	long at[PARTS_DIMS];

	for (int i = 0; i < c->n; i++)
		for (size_t k = 0; c->box[i].owner == rank && k < parts_cells(s, c, i); k++) {
			uint64_t number = parts_number(s, c, i, k, &inside, &own, at);
			bool given = from == c || (!parts_is_empty(s, c, i) && parts_provides(s, from, at));

			parts_value(version, number, want, s->element);
			if (!given)
				memset(want, PARTS_POISON, s->element);
			MUST(memcmp(m->p[i] + k * s->element, want, s->element) == 0);
		}
	for (size_t k = 0; k < c->items[rank]; k++) {
		parts_value(version, parts_items_before(c, rank) + k + 7777777, want, s->width * 4);
		MUST(memcmp(m->list + k * s->width * 4, want, s->width * 4) == 0);
	}
	for (int k = 0; k < 3; k++)
		MUST(m->shared[k] == pages_mix(version) + (uint64_t)k);
}

static inline void parts_free(struct parts_memory *m)
{
	for (int i = 0; i < PARTS_BOXES; i++)
		free(m->p[i]);
	free(m->list);
	*m = (struct parts_memory){ 0 };
}

#endif
