#include "engine/read/salvage.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/lineage/layer_file.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void vv_salvage_fini(struct vv_salvage_needs *n)
{
	vv_mem_free(n->v);
	*n = (struct vv_salvage_needs){ 0 };
}

int vv_salvage_add(struct vv_salvage_needs *n, const struct vv_salvage_need *need)
{
	if (vv_mem_room(&n->v, n->n, &n->cap, sizeof(*n->v)) < 0)
		return VV_ENOMEM;
	n->v[n->n++] = *need;
	return 0;
}

struct vv_salvage_need vv_salvage_part(const struct vv_salvage_need *need, uint64_t from, uint64_t to)
{
	struct vv_salvage_need part = *need;

	part.pos += from;
	part.home_pos += from;
	part.to += from;
	part.len = to - from;
	return part;
}

/* An open layer, and the block of it that was read last. */
struct salvage_reader {
	struct vv_layer_file *f;
	size_t block; /* blocks.n: none */
	uint8_t *raw;
	bool whole;   /* the block is intact; otherwise some of its chunks may be */
	bool there;   /* raw has content */
	struct vv_salvage_needs *bad;
	struct vv_warned *warned;
};

void vv_salvage_note_outage(struct vv_warned *w, int rc)
{
	if ((rc == VV_EIO || rc == VV_EDENIED) && !w->outage.code)
		vv_err_save(rc, &w->outage);
}

static int load_block(struct salvage_reader *r, size_t k)
{
	const struct vv_block *b = &r->f->blocks.v[k];
	int rc;

	if (r->raw && r->block == k)
		return 0;
	vv_mem_free(r->raw);
	r->block = k;
	r->raw = vv_mem_new((size_t)b->raw_len + b->stored_len, 1);
	if (!r->raw)
		return VV_ENOMEM;
	rc = vv_layer_file_read_block(r->f, k, r->raw, r->raw + b->raw_len);
	vv_salvage_note_outage(r->warned, rc);
	r->whole = rc == 0;
	r->there = rc == 0 || (rc == VV_EDAMAGED && b->codec == 0);
	return rc == VV_ENOMEM ? rc : 0;
}

static int give_up(struct salvage_reader *r, const struct vv_salvage_need *need, uint64_t from, uint64_t to)
{
	struct vv_salvage_need part = vv_salvage_part(need, from, to);

	return vv_salvage_add(r->bad, &part);
}

/* The chunk at pos, if it is complete in the block and intact. Sets *end to its end. For bytes
 * without a digest, *end is the position of the next digest. */
static bool chunk_is_intact(const struct salvage_reader *r, uint64_t pos, uint64_t *end)
{
	const struct vv_digests *d = &r->f->digests;
	size_t at = vv_payload_digest_group(d, pos);
	const struct vv_digest_group *g = at < d->n_groups ? &d->group[at] : NULL;
	const uint8_t *p;
	struct vv_digest got;
	uint64_t k;

	if (!g || g->pos > pos) {
		*end = g ? g->pos : UINT64_MAX;
		return false;
	}
	k = (pos - g->pos) / g->chunk;
	*end = g->pos + (k + 1) * g->chunk;
	p = vv_payload_inside(&r->f->blocks, r->block, r->raw, *end - g->chunk, g->chunk);
	if (!p)
		return false;
	vv_digest_of_kind(r->f->head.digest_kind)(p, g->chunk, &got);
	return vv_digest_equal(&got, &d->v[g->digest + k]);
}

/* Takes bytes from..to of the need, which are in one extent of the loaded block. */
static int take_extent(struct salvage_reader *r, const struct vv_salvage_need *need, uint64_t from, uint64_t to)
{
	int rc = 0;

	if (!r->there)
		return give_up(r, need, from, to);
	while (rc == 0 && from < to) {
		uint64_t end = need->pos + to;
		bool good = r->whole || chunk_is_intact(r, need->pos + from, &end);
		uint64_t stop = end - need->pos < to ? end - need->pos : to;

		if (good)
			memcpy(need->to + from, vv_payload_inside(&r->f->blocks, r->block, r->raw, need->pos + from, stop - from),
			       (size_t)(stop - from));
		else
			rc = give_up(r, need, from, stop);
		from = stop;
	}
	return rc;
}

static int take_need(struct salvage_reader *r, const struct vv_salvage_need *need)
{
	const struct vv_extents *e = &r->f->blocks.extent;
	uint64_t at = 0;
	int rc = 0;

	while (rc == 0 && at < need->len) {
		size_t i = vv_payload_extent_find(e, need->pos + at);
		uint64_t start = i < e->n ? e->v[i].pos : UINT64_MAX, end = i < e->n ? start + e->v[i].len : UINT64_MAX;
		uint64_t stop = start > need->pos + at ? start : end;

		stop = stop - need->pos < need->len ? stop - need->pos : need->len;
		if (start > need->pos + at) {
			rc = give_up(r, need, at, stop);
		} else {
			rc = load_block(r, vv_payload_block_find(&r->f->blocks, need->pos + at));
			if (rc == 0)
				rc = take_extent(r, need, at, stop);
		}
		at = stop;
	}
	return rc;
}

bool vv_salvage_is_damage(int rc)
{
	return rc == VV_EDAMAGED || rc == VV_EIO || rc == VV_ENOENT;
}

bool vv_salvage_is_first_warning(struct vv_warned *w, uint64_t layer)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->layer[i] == layer)
			return false;
	if (vv_mem_room(&w->layer, w->n, &w->cap, sizeof(*w->layer)) == 0)
		w->layer[w->n++] = layer;
	return true;
}

/* Takes all needs of one layer. */
static int take_layer(const struct vv_lineage *lin, const struct vv_salvage_need *need, size_t n, struct vv_salvage_needs *bad,
		      struct vv_warned *warned)
{
	struct salvage_reader r = { .bad = bad, .warned = warned };
	size_t before = bad->n;
	int rc = vv_layer_file_open(lin, need->layer, VV_LAYER_FILE_BLOCKS, &r.f);
	bool open = rc == 0;

	vv_salvage_note_outage(warned, rc);
	if (rc && rc != VV_ENOMEM) {
		if (vv_salvage_is_first_warning(warned, need->layer))
			vv_log_warn("%s; looking for other copies", vv_err_last());
		rc = 0;
	}
	if (open && vv_layer_file_load_digests(r.f) == VV_ENOMEM)
		rc = VV_ENOMEM;
	if (open)
		r.block = r.f->blocks.n;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = open ? take_need(&r, &need[i]) : give_up(&r, &need[i], 0, need[i].len);
	if (open && bad->n > before && vv_salvage_is_first_warning(warned, need->layer))
		vv_log_warn("layer '%s/%s' is damaged at position %" PRIu64 " of its payload; looking for other copies", lin->store->url,
			    r.f->object, bad->v[before].pos);
	vv_err_clear();
	vv_mem_free(r.raw);
	vv_layer_file_close(r.f);
	return rc;
}

static int by_place(const void *a, const void *b)
{
	const struct vv_salvage_need *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return (x->pos > y->pos) - (x->pos < y->pos);
}

int vv_salvage_read(const struct vv_lineage *lin, struct vv_salvage_needs *need, struct vv_salvage_needs *bad, struct vv_warned *warned)
{
	int rc = 0;

	if (need->n)
		qsort(need->v, need->n, sizeof(*need->v), by_place);
	for (size_t i = 0, end; rc == 0 && i < need->n; i = end) {
		for (end = i + 1; end < need->n && need->v[end].layer == need->v[i].layer;)
			end++;
		rc = take_layer(lin, &need->v[i], end - i, bad, warned);
	}
	return rc;
}
