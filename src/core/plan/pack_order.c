/* All four orders are one algorithm. Spans are sorted into pools, and the spans of a pool into
 * lanes, one for each file. Lanes take turns, a block of each. Without blocks a turn lasts until
 * its lane is empty. */
#include "core/plan/pack_order.h"
#include "base/err.h"
#include "base/mem.h"
#include <stdbool.h>
#include <stdlib.h>

struct pack_order_item {
	uint64_t len;
	uint32_t span, file, group;
	uint32_t kind_id;
	/* the span in which its variable first appears in the group, plus 1; 0: no variable */
	uint32_t first;
};

struct pack_order_lane { /* items at .. end are one file's */
	size_t at, end;
	uint64_t from; /* in the current item */
};

struct vv_pack_order_iterator {
	struct pack_order_item *item;
	size_t n, at; /* items before `at` are in lanes, or done */
	struct pack_order_lane *lane;
	/* `kept` of the lanes before `turn` are not empty; they lie in front */
	size_t n_lanes, turn, kept;
	uint64_t block, left;       /* of this turn */
	bool blocked, skeleton_too;
};

static int compare(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int by_kind_id(const void *a, const void *b)
{
	const struct pack_order_item *x = a, *y = b;
	int d = compare(x->group, y->group);

	if (d == 0)
		d = compare(x->kind_id, y->kind_id);
	return d ? d : compare(x->span, y->span);
}

static int by_first(const void *a, const void *b)
{
	const struct pack_order_item *x = a, *y = b;
	int d = compare(x->group, y->group);

	if (d == 0)
		d = compare(x->first, y->first);
	return d ? d : compare(x->span, y->span);
}

static bool same_pool(const struct pack_order_item *a, const struct pack_order_item *b)
{
	return a->group == b->group && a->first == b->first;
}

/* Lists the spans as items; empty spans are left out. */
static void list(struct vv_pack_order_iterator *b, const struct vv_file_span *span, size_t n, uint32_t group, bool aware)
{
	for (size_t i = 0; i < n; i++)
		if (span[i].len)
			b->item[b->n++] = (struct pack_order_item){
				.len = span[i].len,
				.span = (uint32_t)i,
				.file = span[i].file,
				.group = group ? span[i].file / group : 0,
				.kind_id = aware ? span[i].kind_id : 0,
			};
}

static void sort(struct vv_pack_order_iterator *b)
{
	qsort(b->item, b->n, sizeof(*b->item), by_kind_id);
	for (size_t i = 0; i < b->n; i++) {
		struct pack_order_item *x = &b->item[i], *before = i ? x - 1 : NULL;

		if (x->kind_id)
			x->first = before && before->group == x->group && before->kind_id == x->kind_id ? before->first : x->span + 1;
	}
	qsort(b->item, b->n, sizeof(*b->item), by_first);
}

/* Makes the lanes of the pool that begins with item `from`, if `lane` is given; *to becomes the end
 * of the pool. Returns the number of lanes. */
static size_t spread(const struct vv_pack_order_iterator *b, size_t from, struct pack_order_lane *lane, size_t *to)
{
	size_t n = 0, at = from;

	while (at < b->n && same_pool(&b->item[from], &b->item[at])) {
		size_t begin = at++;

		while (at < b->n && same_pool(&b->item[from], &b->item[at]) && b->item[at].file == b->item[begin].file)
			at++;
		if (lane)
			lane[n] = (struct pack_order_lane){ .at = begin, .end = at };
		n++;
	}
	*to = at;
	return n;
}

static size_t most_lanes(const struct vv_pack_order_iterator *b)
{
	size_t most = 0;

	for (size_t at = 0; at < b->n;) {
		size_t n = spread(b, at, NULL, &at);

		most = n > most ? n : most;
	}
	return most;
}

int vv_pack_order_new(enum vv_pack_order scheme, const struct vv_file_span *span, size_t n, uint32_t group, uint64_t block, struct vv_pack_order_iterator **out)
{
	bool aware = scheme == VV_PACK_ORDER_AWARE || scheme == VV_PACK_ORDER_AWARE_BLOCK;
	bool blocked = scheme == VV_PACK_ORDER_AGNOSTIC_BLOCK || scheme == VV_PACK_ORDER_AWARE_BLOCK;
	struct vv_pack_order_iterator *b;

	if (blocked && !block)
		return vv_err_set(VV_EINVAL, "blocks of 0 bytes cannot be taken by turns; give their size");
	if (n >= UINT32_MAX)
		return vv_err_set(VV_EINVAL, "%zu pieces of files are too many to be merged in one order", n);
	b = vv_mem_new(1, sizeof(*b));
	if (!b)
		return VV_ENOMEM;
	b->block = block;
	b->blocked = blocked;
	b->skeleton_too = !aware;
	b->item = vv_mem_grow(NULL, n ? n : 1, sizeof(*b->item));
	if (!b->item) {
		vv_pack_order_free(b);
		return VV_ENOMEM;
	}
	list(b, span, n, group, aware);
	sort(b);
	b->lane = vv_mem_grow(NULL, most_lanes(b) + 1, sizeof(*b->lane));
	if (!b->lane) {
		vv_pack_order_free(b);
		return VV_ENOMEM;
	}
	*out = b;
	return 0;
}

/* Lanes that are not empty get another turn; without them the next pool begins. */
static bool next_round(struct vv_pack_order_iterator *b)
{
	b->n_lanes = b->kept;
	if (!b->n_lanes && b->at < b->n)
		b->n_lanes = spread(b, b->at, b->lane, &b->at);
	b->turn = b->kept = 0;
	return b->n_lanes > 0;
}

static uint64_t turn_of(const struct vv_pack_order_iterator *b)
{
	bool by_turns = b->blocked && b->n_lanes > 1 && (b->skeleton_too || b->item[b->lane[b->turn].at].first);

	return by_turns ? b->block : UINT64_MAX;
}

int vv_pack_order_next(struct vv_pack_order_iterator *b, struct vv_pack_order_piece *out)
{
	const struct pack_order_item *x;
	struct pack_order_lane *l;

	if (b->turn == b->n_lanes && !next_round(b))
		return false;
	l = &b->lane[b->turn];
	x = &b->item[l->at];
	if (!b->left)
		b->left = turn_of(b);
	*out = (struct vv_pack_order_piece){ .span = x->span, .from = l->from, .len = x->len - l->from < b->left ? x->len - l->from : b->left };
	l->from += out->len;
	b->left -= b->left == UINT64_MAX ? 0 : out->len;
	if (l->from == x->len) {
		l->at++;
		l->from = 0;
	}
	if (l->at < l->end && b->left)
		return true;
	if (l->at < l->end)
		b->lane[b->kept++] = *l;
	b->turn++;
	b->left = 0;
	return true;
}

void vv_pack_order_free(struct vv_pack_order_iterator *b)
{
	if (!b)
		return;
	vv_mem_free(b->item);
	vv_mem_free(b->lane);
	vv_mem_free(b);
}
