#include "core/dedup/grain_tree.h"

/* All the grains of one kind as nodes of height 0. */
static size_t leaves(const struct vv_find *f, size_t n, enum vv_piece_kind kind, const struct vv_digest *slice,
		     struct vv_grain_tree_node *node)
{
	size_t n_node = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t number = f[i].at % VV_GRAIN_SLICE;

		if (vv_grain_kind(f[i].from) == kind)
			node[n_node++] = (struct vv_grain_tree_node){ slice[number], number, (uint32_t)i };
	}
	return n_node;
}

struct climb { /* by nodes of one kind, from the leaves to the root */
	struct vv_find *f;
	const struct vv_grain_tree_work *w;
	struct vv_known_grains *nodes;
	size_t take;
	uint32_t ordinal;
	enum vv_piece_kind kind;
};

/* Does the data of the second follow that of the first? It always does, except for grains that
 * became new late (space/host_sieve.c). */
static bool follows(const struct climb *c, unsigned height, const struct vv_grain_tree_node *child)
{
	return c->f[child[1].leaf].from == c->f[child[0].leaf].from + ((uint64_t)1 << (height - 1));
}

/* Does the parent of these two nodes, of this height, have their label? */
static bool joins(const struct climb *c, unsigned height, const struct vv_grain_tree_node *child, struct vv_grain_tree_node *parent)
{
	struct vv_find *first = &c->f[child->leaf];
	uint64_t place = vv_grain_from(0, c->ordinal, vv_grain_number(first->from));

	*parent = (struct vv_grain_tree_node){ .number = child->number / 2, .leaf = child->leaf };
	if (c->kind == VV_PIECE_NEW && !follows(c, height, child))
		return false;
	if (c->kind == VV_PIECE_ZERO || child->leaf + ((size_t)1 << height) > c->take)
		return true;
	vv_digest_node(&child[0].digest, &child[1].digest, height, &parent->digest);
	if (c->kind == VV_PIECE_NEW) {
		vv_known_grains_enter(c->nodes, &parent->digest, &place);
		return true;
	}
	if (!vv_known_grains_find(c->nodes, &parent->digest, &place))
		return false;
	first->from = vv_grain_from(VV_PIECE_COPY, vv_grain_ordinal(place), vv_grain_number(place));
	return true;
}

/* The parents replace the n nodes of the height below; nodes without a parent of their label are
 * pieces. */
static size_t rise(const struct climb *c, unsigned height, size_t n)
{
	struct vv_grain_tree_node *node = c->w->node, parent;
	size_t n_out = 0;

	for (size_t i = 0; i < n; i++) {
		bool pair = i + 1 < n && node[i].number % 2 == 0 && node[i + 1].number == node[i].number + 1;

		if (pair && joins(c, height, node + i, &parent)) {
			node[n_out++] = parent;
			i++;
		} else {
			c->w->height[node[i].leaf] = (uint8_t)(height - 1);
		}
	}
	return n_out;
}

static void climb(const struct climb *c, size_t n, const struct vv_digest *slice)
{
	size_t left = leaves(c->f, n, c->kind, slice, c->w->node);
	unsigned height = 0;

	while (left && (VV_GRAIN_SLICE >> height) > 1)
		left = rise(c, ++height, left);
	if (left)
		c->w->height[c->w->node->leaf] = (uint8_t)height;
}

size_t vv_grain_tree_pieces(struct vv_find *f, size_t n, size_t take, const struct vv_digest *slice, uint32_t ordinal,
		      struct vv_known_grains *nodes, const struct vv_grain_tree_work *w, struct vv_piece *out)
{
	struct climb c = { f, w, nodes, take, ordinal, VV_PIECE_ZERO };
	size_t n_out = 0;

	climb(&c, n, slice);
	c.kind = VV_PIECE_NEW;
	climb(&c, n, slice);
	c.kind = VV_PIECE_COPY;
	climb(&c, n, slice);
	for (size_t i = 0; i < n; i += out[n_out++].len)
		out[n_out] = (struct vv_piece){ f[i].at, 1u << w->height[i], f[i].from };
	return n_out;
}

void vv_grain_tree_enter(struct vv_find *f, size_t n, size_t take, const struct vv_digest *slice, uint32_t ordinal,
		   struct vv_known_grains *nodes, const struct vv_grain_tree_work *w)
{
	struct climb c = { f, w, nodes, take, ordinal, VV_PIECE_NEW };

	climb(&c, n, slice);
}
