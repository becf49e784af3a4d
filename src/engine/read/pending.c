#include "engine/read/pending.h"
#include "base/err.h"
#include "base/mem.h"
#include <stdbool.h>

enum { DIGIT = 256 };

int vv_pending_add(struct vv_pending_list *p, struct vv_pending_piece piece)
{
	struct vv_pending_piece *last = p->n ? &p->v[p->n - 1] : NULL;

	if (last && last->layer == piece.layer && last->pos + last->len == piece.pos && last->to + last->len == piece.to) {
		last->len += piece.len;
		return 0;
	}
	if (vv_mem_room(&p->v, p->n, &p->cap, sizeof(*p->v)) < 0)
		return VV_ENOMEM;
	p->v[p->n++] = piece;
	return 0;
}

/* One pass of a radix sort by layer, stable: by the eight bits from `shift` on. */
static void sort_digit(const struct vv_pending_list *from, unsigned shift, struct vv_pending_piece *to)
{
	size_t start[DIGIT + 1] = { 0 };

	for (size_t i = 0; i < from->n; i++)
		start[(from->v[i].layer >> shift) % DIGIT + 1]++;
	for (size_t d = 1; d < DIGIT; d++)
		start[d] += start[d - 1];
	for (size_t i = 0; i < from->n; i++)
		to[start[(from->v[i].layer >> shift) % DIGIT]++] = from->v[i];
}

/* A few dozen layers differ in a few bits, so this takes one pass or two. */
int vv_pending_sort(struct vv_pending_list *p)
{
	uint64_t differ = 0;
	bool sorted = true;

	for (size_t i = 1; i < p->n; i++) {
		differ |= p->v[i].layer ^ p->v[i - 1].layer;
		sorted &= p->v[i].layer >= p->v[i - 1].layer;
	}
	while (!sorted && differ) {
		unsigned shift = (unsigned)__builtin_ctzll(differ);
		struct vv_pending_piece *to = vv_mem_new(p->n, sizeof(*to));

		if (!to)
			return VV_ENOMEM;
		sort_digit(p, shift, to);
		vv_mem_free(p->v);
		p->v = to;
		differ &= ~((uint64_t)(DIGIT - 1) << shift);
	}
	return 0;
}
