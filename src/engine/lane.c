#include "engine/lane.h"

int vv_lane_find(const struct vv_layerio *f, uint64_t pos, struct vv_lane *out)
{
	const struct vv_digests *d = &f->digests;
	size_t k = vv_layerio_group(f, pos);
	const struct vv_digest_group *g = k < d->n_groups ? &d->group[k] : NULL, *last = k ? &d->group[k - 1] : NULL;
	struct vv_payload_cursor c = { 0 };
	const struct vv_extent *x;
	struct vv_lane l = { 0 };

	if (!vv_payload_locate(&f->blocks, pos, &c))
		return 0;
	x = &f->blocks.extent.v[c.extent];
	l.block = &f->blocks.v[c.block];
	l.lo = x->pos;
	l.hi = x->pos + x->len;
	if (g && g->pos <= pos) {
		l.digest = &d->v[g->digest];
		l.first = g->pos;
		l.chunk = g->chunk;
		l.lo = l.lo > g->pos ? l.lo : g->pos;
		l.hi = l.hi < g->pos + g->count * g->chunk ? l.hi : g->pos + g->count * g->chunk;
	} else { /* gc has kept a part of a chunk, whose digest went: it lies between those that have theirs */
		l.lo = last && l.lo < last->pos + last->count * last->chunk ? last->pos + last->count * last->chunk : l.lo;
		l.hi = g && g->pos < l.hi ? g->pos : l.hi;
	}
	l.off = l.block->off + c.before + (l.lo - x->pos);
	*out = l;
	return 1;
}
