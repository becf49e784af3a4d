/* Blocks and digests, encoded and decoded: docs/format.md, section 4. */
#include "core/format/payload.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "core/format/head.h"

static int damaged(const char *section, const char *what)
{
	return vv_err_set(VV_EDAMAGED, "section %s: %s", section, what);
}

int vv_payload_extent_add(struct vv_extents *e, uint64_t pos, uint64_t len, int join)
{
	struct vv_extent *last = e->n ? &e->v[e->n - 1] : NULL;

	if (len == 0)
		return 0;
	if (join && last && last->pos + last->len == pos) {
		last->len += len;
		return 0;
	}
	if (vv_mem_room(&e->v, e->n, &e->cap, sizeof(*e->v)) < 0)
		return VV_ENOMEM;
	e->v[e->n++] = (struct vv_extent){ pos, len };
	return 0;
}

size_t vv_payload_extent_find(const struct vv_extents *e, uint64_t pos)
{
	size_t i;

	VV_SEARCH(i, 0, e->n, e->v[i].pos + e->v[i].len <= pos);
	return i;
}

int vv_payload_extent_has(const struct vv_extents *e, uint64_t pos, uint64_t len)
{
	uint64_t end = pos + len;

	for (size_t i = vv_payload_extent_find(e, pos); i < e->n && e->v[i].pos <= pos; i++) {
		pos = e->v[i].pos + e->v[i].len;
		if (pos >= end)
			return 1;
	}
	return len == 0;
}

void vv_payload_extents_fini(struct vv_extents *e)
{
	vv_mem_free(e->v);
	*e = (struct vv_extents){ 0 };
}

void vv_payload_blocks_fini(struct vv_blocks *b)
{
	vv_mem_free(b->v);
	vv_mem_free(b->before);
	vv_payload_extents_fini(&b->extent);
	vv_delta_bases_fini(&b->bases);
	*b = (struct vv_blocks){ 0 };
}

int vv_payload_block_add(struct vv_blocks *b, uint32_t codec, uint32_t raw_len, uint32_t stored_len, uint64_t check)
{
	struct vv_block *last = b->n ? &b->v[b->n - 1] : NULL;
	size_t first = last ? last->extent + last->n_extents : 0;
	uint64_t off = last ? last->off + last->stored_len : 0;

	if (vv_mem_room(&b->v, b->n, &b->cap, sizeof(*b->v)) < 0)
		return VV_ENOMEM;
	b->v[b->n++] = (struct vv_block){
		.off = off,
		.check = check,
		.codec = codec,
		.raw_len = raw_len,
		.stored_len = stored_len,
		.extent = first,
		.n_extents = (uint32_t)(b->extent.n - first),
	};
	return 0;
}

const uint8_t *vv_payload_inside(const struct vv_blocks *b, size_t block, const uint8_t *raw, uint64_t pos, uint64_t len)
{
	for (size_t e = b->v[block].extent; e < b->v[block].extent + b->v[block].n_extents; e++) {
		const struct vv_extent *x = &b->extent.v[e];

		if (pos >= x->pos && pos + len <= x->pos + x->len)
			return raw + (pos - x->pos);
		raw += x->len;
	}
	return NULL;
}

size_t vv_payload_block_find(const struct vv_blocks *b, uint64_t pos)
{
	size_t e = vv_payload_extent_find(&b->extent, pos), i;

	if (e == b->extent.n || b->extent.v[e].pos > pos)
		return b->n;
	VV_SEARCH(i, 1, b->n, b->v[i].extent <= e);
	return i - 1;
}

uint64_t vv_payload_stored(const struct vv_blocks *b, uint64_t from, uint64_t to)
{
	uint64_t sum = 0;

	for (size_t i = from < to ? vv_payload_block_find(b, from) : b->n; i < b->n && b->extent.v[b->v[i].extent].pos < to; i++) {
		const struct vv_extent *first = &b->extent.v[b->v[i].extent];
		uint64_t begin = first->pos > from ? first->pos : from, end = first->pos + b->v[i].raw_len < to ? first->pos + b->v[i].raw_len : to;

		sum += begin < end ? (uint64_t)((double)b->v[i].stored_len * (double)(end - begin) / (double)b->v[i].raw_len) : 0;
	}
	return sum;
}

static int holds(const struct vv_extent *x, uint64_t pos)
{
	return pos >= x->pos && pos < x->pos + x->len;
}

/* The extent of a block that holds pos. */
static size_t find_extent(const struct vv_blocks *b, const struct vv_block *k, uint64_t pos)
{
	size_t i;

	VV_SEARCH(i, k->extent + 1, k->extent + k->n_extents, b->extent.v[i].pos <= pos);
	return i - 1;
}

enum { NEAR = 8 }; /* extents that are tried before a search */

/* While gc has removed nothing, blocks have one length, so the place of a position can be
 * computed. */
int vv_payload_locate(const struct vv_blocks *b, uint64_t pos, struct vv_payload_cursor *c)
{
	uint64_t guess = b->n && b->v[0].raw_len ? pos / b->v[0].raw_len : 0;
	const struct vv_extent *x;

	if (b->n == 0)
		return 0;
	x = &b->extent.v[c->extent];
	for (int step = 0; step < NEAR && pos >= x->pos + x->len && c->extent + 1 < b->v[c->block].extent + b->v[c->block].n_extents; step++) {
		c->before += x->len;
		x = &b->extent.v[++c->extent];
	}
	if (holds(x, pos))
		return 1;
	if (guess >= b->n || !holds(&b->extent.v[b->v[guess].extent], pos))
		guess = vv_payload_block_find(b, pos);
	*c = (struct vv_payload_cursor){ 0 };
	if (guess == b->n)
		return 0;
	c->block = (size_t)guess;
	if (b->before) {
		c->extent = find_extent(b, &b->v[guess], pos);
		c->before = b->before[c->extent];
		return 1;
	}
	for (c->extent = b->v[guess].extent; pos >= b->extent.v[c->extent].pos + b->extent.v[c->extent].len; c->extent++)
		c->before += b->extent.v[c->extent].len;
	return 1;
}

void vv_payload_put_blocks(const struct vv_blocks *b, struct vv_buf *out)
{
	uint64_t end = 0;

	vv_wire_put_var(out, b->n);
	for (size_t i = 0; i < b->n; i++) {
		const struct vv_block *k = &b->v[i];

		vv_wire_put_var(out, k->codec);
		vv_wire_put_var(out, k->raw_len);
		vv_wire_put_var(out, k->stored_len);
		vv_wire_put_u64(out, k->check);
		vv_wire_put_var(out, k->n_extents);
		for (size_t j = k->extent; j < k->extent + k->n_extents; j++) {
			vv_wire_put_var(out, b->extent.v[j].pos - end);
			vv_wire_put_var(out, b->extent.v[j].len);
			end = b->extent.v[j].pos + b->extent.v[j].len;
		}
	}
}

static int get_extents(struct vv_blocks *b, struct vv_wire *w, uint64_t payload, uint64_t raw_len, uint64_t *available)
{
	uint64_t count = vv_wire_var(w), sum = 0;

	if (w->bad || count == 0 || count > vv_wire_left(w) / 2)
		return damaged("BLOCKS", "impossible number of extents");
	if (vv_mem_check_available((b->extent.n + count) * (sizeof(*b->extent.v) + sizeof(*b->before)), available) < 0)
		return vv_err_context(VV_ENOMEM, "section BLOCKS");
	for (uint64_t i = 0; i < count; i++) {
		struct vv_extent *last = b->extent.n ? &b->extent.v[b->extent.n - 1] : NULL;
		uint64_t pos = (last ? last->pos + last->len : 0) + vv_wire_var_max(w, payload);
		uint64_t len = vv_wire_var_max(w, raw_len);

		if (w->bad || len == 0 || pos + len > payload)
			return damaged("BLOCKS", "malformed extent");
		if (vv_payload_extent_add(&b->extent, pos, len, 0) < 0)
			return VV_ENOMEM;
		sum += len;
	}
	return sum == raw_len ? 0 : damaged("BLOCKS", "extents and block differ in length");
}

static int get_block(struct vv_blocks *b, struct vv_wire *w, uint64_t payload, uint64_t *available)
{
	uint32_t codec = (uint32_t)vv_wire_var_max(w, 255);
	uint32_t raw_len = (uint32_t)vv_wire_var_max(w, VV_MAX_BLOCK);
	uint32_t stored_len = (uint32_t)vv_wire_var_max(w, VV_MAX_STORED_BLOCK);
	uint64_t check = vv_wire_u64(w);
	int rc;

	if (w->bad || !raw_len || !stored_len || (codec == 0 && raw_len != stored_len))
		return damaged("BLOCKS", "malformed block");
	rc = get_extents(b, w, payload, raw_len, available);
	return rc ? rc : vv_payload_block_add(b, codec, raw_len, stored_len, check);
}

static int sum_up(struct vv_blocks *b)
{
	b->before = vv_mem_new(b->extent.n, sizeof(*b->before));
	if (!b->before)
		return VV_ENOMEM;
	for (size_t i = 0; i < b->n; i++)
		for (size_t k = b->v[i].extent + 1; k < b->v[i].extent + b->v[i].n_extents; k++)
			b->before[k] = b->before[k - 1] + (uint32_t)b->extent.v[k - 1].len;
	return 0;
}

int vv_payload_get_blocks(struct vv_blocks *b, const void *p, size_t n, uint64_t payload, uint64_t first_off,
			  uint64_t blocks_end)
{
	struct vv_wire w = vv_wire_over(p, n);
	uint64_t count = vv_wire_var(&w), end, available = 0;
	int rc = 0;

	if (w.bad || count > vv_wire_left(&w) / 14 || first_off > blocks_end || count > blocks_end - first_off)
		return damaged("BLOCKS", "impossible number of blocks");
	for (uint64_t i = 0; rc == 0 && i < count; i++)
		rc = get_block(b, &w, payload, &available);
	if (rc)
		return rc;
	for (size_t i = 0; i < b->n; i++)
		b->v[i].off += first_off;
	end = b->n ? b->v[b->n - 1].off + b->v[b->n - 1].stored_len : first_off;
	if (vv_wire_left(&w) || end != blocks_end)
		return damaged("BLOCKS", "the blocks do not fill their place in the file");
	return sum_up(b);
}

void vv_payload_digests_fini(struct vv_digests *d)
{
	vv_mem_free(d->group);
	if (!d->lent)
		vv_mem_free(d->own ? (void *)d->own : d->v);
	*d = (struct vv_digests){ 0 };
}

int vv_payload_digest_add(struct vv_digests *d, uint64_t pos, uint32_t chunk, const struct vv_digest *digest)
{
	int rc = vv_mem_room(&d->v, d->n, &d->cap, sizeof(*d->v));

	if (rc == 0)
		rc = vv_payload_digest_count(d, pos, chunk);
	if (rc == 0)
		d->v[d->n - 1] = *digest;
	return rc;
}

int vv_payload_digest_count(struct vv_digests *d, uint64_t pos, uint32_t chunk)
{
	struct vv_digest_group *g = d->n_groups ? &d->group[d->n_groups - 1] : NULL;

	if (!g || g->chunk != chunk || g->pos + g->count * chunk != pos) {
		if (vv_mem_room(&d->group, d->n_groups, &d->groups_cap, sizeof(*g)) < 0)
			return VV_ENOMEM;
		g = &d->group[d->n_groups++];
		*g = (struct vv_digest_group){ .pos = pos, .chunk = chunk, .digest = d->n };
	}
	g->count++;
	d->n++;
	return 0;
}

int vv_payload_digests_keep(struct vv_digests *d, const struct vv_digest *v)
{
	if (d->v || d->n == 0)
		return 0;
	d->v = vv_mem_grow(NULL, d->n, sizeof(*d->v));
	if (!d->v)
		return VV_ENOMEM;
	d->cap = d->n;
	memcpy(d->v, v, d->n * sizeof(*d->v));
	return 0;
}

size_t vv_payload_digest_group(const struct vv_digests *d, uint64_t pos)
{
	size_t i;

	VV_SEARCH(i, 0, d->n_groups, d->group[i].pos + d->group[i].count * d->group[i].chunk <= pos);
	return i;
}

void vv_payload_put_groups(const struct vv_digests *d, struct vv_buf *out)
{
	uint64_t end = 0;

	vv_wire_put_var(out, d->n_groups);
	for (size_t i = 0; i < d->n_groups; i++) {
		const struct vv_digest_group *g = &d->group[i];

		vv_wire_put_var(out, g->pos - end);
		vv_wire_put_var(out, g->chunk);
		vv_wire_put_var(out, g->count);
		end = g->pos + g->count * g->chunk;
	}
}

void vv_payload_put_digests(const struct vv_digests *d, struct vv_buf *out)
{
	vv_payload_put_groups(d, out);
	vv_buf_add(out, d->v, d->n * sizeof(*d->v));
}

static int get_group(struct vv_digests *d, struct vv_wire *w, uint64_t payload)
{
	struct vv_digest_group *g = d->n_groups ? &d->group[d->n_groups - 1] : NULL;
	uint64_t end = g ? g->pos + g->count * g->chunk : 0;
	uint64_t pos = end + vv_wire_var_max(w, payload);
	uint32_t chunk = (uint32_t)vv_wire_var_max(w, VV_MAX_CHUNK);
	uint64_t count = vv_wire_var_max(w, payload);

	if (w->bad || !chunk || !count || count > payload / chunk || pos > payload - count * chunk)
		return damaged("DIGESTS", "malformed group");
	if (vv_mem_room(&d->group, d->n_groups, &d->groups_cap, sizeof(*g)) < 0)
		return VV_ENOMEM;
	d->group[d->n_groups++] = (struct vv_digest_group){ pos, chunk, count, d->n };
	d->n += count;
	return 0;
}

static int new_digests(struct vv_digests *d)
{
	d->v = vv_mem_grow(NULL, d->n, sizeof(*d->v));
	if (!d->v)
		return VV_ENOMEM;
	vv_mem_widen(d->v, d->n * sizeof(*d->v));
	return 0;
}

int vv_payload_get_digests(struct vv_digests *d, const void *p, size_t n, uint64_t payload)
{
	return vv_payload_take_digests(d, p, n, payload, &(uint8_t *){ NULL });
}

/* Also returns the beginning of the digests themselves. */
static int get_groups(struct vv_digests *d, const void *p, size_t n, uint64_t payload, const uint8_t **bytes)
{
	struct vv_wire w = vv_wire_over(p, n);
	uint64_t count = vv_wire_var(&w);
	int rc = 0;

	if (w.bad || count > vv_wire_left(&w) / 3)
		return damaged("DIGESTS", "impossible number of groups");
	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		rc = get_group(d, &w, payload);
		if (rc == 0 && d->n > vv_wire_left(&w) / sizeof(*d->v))
			rc = damaged("DIGESTS", "fewer digests than the groups say");
	}
	if (rc)
		return rc;
	*bytes = vv_wire_bytes(&w, d->n * sizeof(*d->v));
	return !*bytes || vv_wire_left(&w) ? damaged("DIGESTS", "wrong length") : 0;
}

int vv_payload_lend_digests(struct vv_digests *d, const void *p, size_t n, uint64_t payload)
{
	const uint8_t *bytes = NULL;
	int rc = get_groups(d, p, n, payload, &bytes);

	if (rc)
		return rc;
	d->v = (void *)(uintptr_t)bytes;
	d->lent = true;
	return 0;
}

int vv_payload_take_digests(struct vv_digests *d, const void *p, size_t n, uint64_t payload, uint8_t **own)
{
	const uint8_t *bytes = NULL;
	int rc = get_groups(d, p, n, payload, &bytes);

	if (rc)
		return rc;
	d->cap = d->n;
	if (*own && (uintptr_t)bytes % _Alignof(struct vv_digest) == 0) {
		d->v = (void *)(*own + (bytes - *own));
		d->own = *own;
		*own = NULL;
		return 0;
	}
	if (*own)
		d->v = (void *)*own;
	else if (new_digests(d) < 0)
		return VV_ENOMEM;
	*own = NULL;
	memmove(d->v, bytes, d->n * sizeof(*d->v));
	return 0;
}
