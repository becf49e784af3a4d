#include "engine/lineage/plain_extent.h"
#include "base/err.h"
#include "base/mem.h"

/* The extent at pos, the cursor's position. k: the first group of digests that ends after pos. */
static struct vv_plain_extent extent_at(const struct vv_layer_file *f, uint64_t pos, const struct vv_payload_cursor *c, size_t k)
{
	const struct vv_digests *d = &f->digests;
	const struct vv_digest_group *g = k < d->n_groups ? &d->group[k] : NULL, *last = k ? &d->group[k - 1] : NULL;
	const struct vv_extent *x = &f->blocks.extent.v[c->extent];
	struct vv_plain_extent l = { .block = &f->blocks.v[c->block] };

	l.lo = x->pos;
	l.hi = x->pos + x->len;
	if (g && g->pos <= pos) {
		l.digest = &d->v[g->digest];
		l.first = g->pos;
		l.chunk = g->chunk;
		l.lo = l.lo > g->pos ? l.lo : g->pos;
		l.hi = l.hi < g->pos + g->count * g->chunk ? l.hi : g->pos + g->count * g->chunk;
	} else {
		/* gc has kept part of a chunk without its digest. It lies between chunks with
		 * digests. */
		l.lo = last && l.lo < last->pos + last->count * last->chunk ? last->pos + last->count * last->chunk : l.lo;
		l.hi = g && g->pos < l.hi ? g->pos : l.hi;
	}
	l.off = l.block->off + c->before + (l.lo - x->pos);
	return l;
}

int vv_plain_extent_find(const struct vv_layer_file *f, uint64_t pos, struct vv_plain_extent *out)
{
	struct vv_payload_cursor c = { 0 };

	if (!vv_payload_locate(&f->blocks, pos, &c))
		return 0;
	*out = extent_at(f, pos, &c, vv_layer_file_group(f, pos));
	return 1;
}

static bool follows(const struct vv_plain_extent *a, const struct vv_plain_extent *b)
{
	return a->hi == b->lo && a->digest == b->digest && !a->block->codec && !b->block->codec && a->off + (a->hi - a->lo) == b->off &&
	       b->hi - a->lo <= VV_PLAIN_EXTENT_MAX;
}

static int add(struct vv_plain_extents *out, const struct vv_plain_extent *l)
{
	struct vv_plain_extent *last = out->n ? &out->v[out->n - 1] : NULL;

	if (last && follows(last, l)) {
		last->hi = l->hi;
		return 0;
	}
	if (vv_mem_room(&out->v, out->n, &out->cap, sizeof(*out->v)) < 0)
		return VV_ENOMEM;
	out->v[out->n++] = *l;
	return 0;
}

int vv_plain_extent_list(const struct vv_layer_file *f, struct vv_plain_extents *out)
{
	const struct vv_digests *d = &f->digests;
	const struct vv_blocks *b = &f->blocks;
	struct vv_payload_cursor c = { 0 };
	size_t k = 0;
	int rc = 0;

	for (; c.block < b->n; c.block++) {
		c.before = 0;
		for (c.extent = b->v[c.block].extent; c.extent < b->v[c.block].extent + b->v[c.block].n_extents; c.extent++) {
			const struct vv_extent *x = &b->extent.v[c.extent];

			for (uint64_t pos = x->pos; rc == 0 && pos < x->pos + x->len;) {
				struct vv_plain_extent l;

				while (k < d->n_groups && d->group[k].pos + d->group[k].count * d->group[k].chunk <= pos)
					k++;
				l = extent_at(f, pos, &c, k);
				rc = add(out, &l);
				pos = l.hi;
			}
			c.before += x->len;
		}
	}
	return rc;
}
