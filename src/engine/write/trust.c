/* Decides which content may be referred to. An index, a cache and a disk can all be wrong: a rotten
 * block, or a cache older than a removal of files by hand. A new epoch that refers to such content
 * would be lost with it. So a block of an earlier session is read before the first reference to it.
 * Every chunk in it is compared with its digest. Content that a restart has read is trusted. */
#include "engine/write/trust.h"
#include "base/err.h"
#include "base/log.h"
#include "codec/context_pool.h"
#include "engine/write/index_cache.h"
#include "engine/lineage/layer_file.h"

enum { UNSEEN, GOOD, BAD };

static size_t layer_number(const struct vv_index_cache *h, uint32_t entry)
{
	return vv_index_from(&h->index, entry);
}

/* The layer with its tables, from the last time or opened now; NULL if it cannot be used. */
static struct vv_layer_file *open_layer(const struct vv_lineage *lin, struct vv_index_cache *h, size_t k)
{
	uint64_t layer = h->index.layer[k];

	if (h->open && h->open->layer == layer)
		return h->open;
	vv_layer_file_close(h->open);
	h->open = NULL;
	if (vv_layer_file_open(lin, layer, VV_LAYER_FILE_BLOCKS | VV_LAYER_FILE_DIGESTS, &h->open) < 0)
		vv_log_warn("%s; it will not be referred to", vv_err_last());
	return h->open;
}

bool vv_trust_check_layer(const struct vv_lineage *lin, struct vv_index_cache *h, uint32_t entry)
{
	size_t k = layer_number(h, entry);
	struct vv_layer_file *f = NULL;

	if (entry >= h->n_loaded || k >= h->n_cached_layers)
		return true;
	if (h->layer_trust[k] == UNSEEN) {
		int rc = vv_layer_file_open(lin, h->index.layer[k], 0, &f);

		h->layer_trust[k] = BAD;
		if (rc == 0 && vv_layer_section(&f->frame, VV_SECTION_DIGESTS)->check == h->digests_check[k])
			h->layer_trust[k] = GOOD;
		vv_layer_file_close(f);
		vv_err_clear();
	}
	return h->layer_trust[k] == GOOD;
}

/* Judges one chunk of a block; raw is NULL if the block cannot be read. */
static void check_chunk(struct vv_index_cache *h, const struct vv_layer_file *f, size_t block, const uint8_t *raw, uint64_t pos,
		  uint32_t len, const struct vv_digest *want)
{
	const uint8_t *p = raw ? vv_payload_inside(&f->blocks, block, raw, pos, len) : NULL;
	uint32_t e = vv_index_at(&h->index, h->n_loaded, f->layer, pos);
	struct vv_digest got;

	if (e == VV_INDEX_NONE)
		return;
	h->entry_trust[e] = BAD;
	if (!p)
		return;
	vv_digest_of_kind(f->head.digest_kind)(p, len, &got);
	if (vv_digest_equal(&got, want) && vv_digest_equal(&got, &h->index.digest[e]))
		h->entry_trust[e] = GOOD;
}

static void check_block(struct vv_index_cache *h, const struct vv_layer_file *f, size_t block, const uint8_t *raw)
{
	const struct vv_block *b = &f->blocks.v[block];
	uint64_t first = f->blocks.extent.v[b->extent].pos;
	const struct vv_extent *last = &f->blocks.extent.v[b->extent + b->n_extents - 1];

	for (size_t g = 0; g < f->digests.n_groups; g++) {
		const struct vv_digest_group *group = &f->digests.group[g];
		uint64_t i = first > group->pos ? (first - group->pos) / group->chunk : 0;

		for (; i < group->count && group->pos + i * group->chunk < last->pos + last->len; i++)
			check_chunk(h, f, block, raw, group->pos + i * group->chunk, group->chunk,
			      &f->digests.v[group->digest + i]);
	}
}

/* Marks all entries of the layer, which are adjacent, as bad: so a missing layer is requested and
 * reported only once. */
static void give_up_layer(struct vv_index_cache *h, uint32_t entry)
{
	size_t k = layer_number(h, entry);

	for (uint32_t e = entry; e < h->n_loaded && layer_number(h, e) == k; e++)
		h->entry_trust[e] = BAD;
	for (uint32_t e = entry; e-- > 0 && layer_number(h, e) == k;)
		h->entry_trust[e] = BAD;
}

/* Reads the block of the entry and judges all its chunks. */
static void look(const struct vv_lineage *lin, struct vv_index_cache *h, uint32_t entry)
{
	struct vv_layer_file *f = open_layer(lin, h, layer_number(h, entry));
	size_t block = f ? vv_payload_block_find(&f->blocks, vv_index_pos(&h->index, entry)) : 0;
	uint8_t *raw = NULL;

	if (!f)
		give_up_layer(h, entry);
	if (f && block < f->blocks.n) {
		const struct vv_block *b = &f->blocks.v[block];
		int rc;

		raw = vv_context_pool_room((size_t)b->raw_len + b->stored_len);
		rc = raw ? vv_layer_file_read_block(f, block, raw, raw + b->raw_len) : VV_ENOMEM;
		if (rc)
			vv_log_warn("%s; its content is stored again where it is needed", vv_err_last());
		check_block(h, f, block, rc ? NULL : raw);
	}
	if (h->entry_trust[entry] == UNSEEN)
		h->entry_trust[entry] = BAD;
	vv_context_pool_room_back(raw);
	vv_err_clear();
}

bool vv_trust_is_verified(const struct vv_index_cache *h, uint32_t entry)
{
	return entry >= h->n_loaded || h->entry_trust[entry] == GOOD;
}

bool vv_trust_check_entry(const struct vv_lineage *lin, struct vv_index_cache *h, uint32_t entry)
{
	if (vv_trust_is_verified(h, entry))
		return true;
	if (h->entry_trust[entry] == UNSEEN)
		look(lin, h, entry);
	return h->entry_trust[entry] == GOOD;
}

void vv_trust_mark_good(struct vv_index_cache *h, uint32_t entry)
{
	if (entry < h->n_loaded)
		h->entry_trust[entry] = GOOD;
}
