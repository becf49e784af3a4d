#include "engine/write/index_cache.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/lineage/layer_file.h"
#include "engine/write/needed_entries.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = { 'V', 'A', 'R', 'V', 'E', 'I', 'D', 'X' };

enum { SAVE_EVERY = 64, LEAST_SOURCE = 8 + 2 };
#define MAX_CACHE (8ull << 30)

void vv_index_cache_fini(struct vv_index_cache *h)
{
	vv_index_fini(&h->index);
	vv_mem_free(h->digests_check);
	vv_mem_free(h->entry_trust);
	vv_mem_free(h->layer_trust);
	vv_layer_file_close(h->open);
	*h = (struct vv_index_cache){ 0 };
}

int vv_index_cache_set_check(struct vv_index_cache *h, uint64_t layer, uint64_t check)
{
	size_t n = h->index.n_layers, k = n;

	if (n > h->checks_cap) {
		size_t cap = n * 2;
		uint64_t *v = vv_mem_grow(h->digests_check, cap, sizeof(*v));

		if (!v)
			return VV_ENOMEM;
		h->digests_check = v;
		h->checks_cap = cap;
	}
	while (k && h->index.layer[k - 1] != layer && vv_run_epoch(h->index.layer[k - 1]) == vv_run_epoch(layer))
		k--; /* entries of other ranks of the epoch may have come after it */
	if (k && h->index.layer[k - 1] == layer)
		h->digests_check[k - 1] = check; /* otherwise it brought nothing new */
	return 0;
}

/* ---- the cache ------------------------------------------------------------------------------- */

struct index_cache_source { /* of the cache: entries of one layer */
	uint64_t layer, tie;
	size_t n;
	struct vv_wire gap;
	const uint8_t *digest;
};

/* The check that ties it to its layer, then its entries: positions (as gaps), digests. */
static int get_source(struct vv_wire *w, struct index_cache_source *out)
{
	out->tie = vv_wire_u64(w);
	out->n = (size_t)vv_wire_var_max(w, VV_INDEX_MAX);
	out->gap = *w;
	if (w->bad || out->n > vv_wire_left(w) / 17)
		return VV_EDAMAGED;
	for (size_t i = 0; i < out->n; i++)
		vv_wire_var(w);
	out->digest = vv_wire_bytes(w, out->n * sizeof(struct vv_digest));
	return out->digest ? 0 : VV_EDAMAGED;
}

/* Adds all entries, or only the needed ones. */
static int add_source(struct vv_index_cache *h, const struct index_cache_source *from, const struct vv_needed_entries *only)
{
	struct vv_wire gap = from->gap;
	uint64_t pos = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < from->n; i++) {
		uint64_t step = vv_wire_var_max(&gap, VV_MAX_PAYLOAD);
		struct vv_digest d;
		uint32_t number;

		memcpy(&d, from->digest + i * sizeof(d), sizeof(d));
		pos += step;
		if (gap.bad || pos >= VV_MAX_PAYLOAD || (i && !step))
			return VV_EDAMAGED;
		if (!only || vv_needed_entries_chunk(only, from->layer, pos))
			rc = vv_index_add(&h->index, &d, from->layer, pos, &number);
	}
	return rc ? rc : vv_index_cache_set_check(h, from->layer, from->tie);
}

/* Magic, version, check, lineage; the rest of w are the sources. */
static int open_cache(const struct vv_lineage *lin, const uint8_t *p, size_t n, struct vv_wire *w, uint8_t *kind,
		      uint64_t *covers)
{
	struct vv_wire end = vv_wire_over(p + (n < 8 ? 0 : n - 8), n < 8 ? 0 : 8);
	const uint8_t *m, *id;

	*w = vv_wire_over(p, n < 8 ? 0 : n - 8);
	m = vv_wire_bytes(w, 8);
	if (!m || memcmp(m, magic, 8) != 0 || vv_wire_u64(&end) != vv_digest_check(p, n - 8))
		return VV_EDAMAGED;
	if (vv_wire_u16(w) != 1 || vv_wire_u16(w) != 0)
		return VV_EDAMAGED;
	*kind = vv_wire_u8(w);
	w->bad |= vv_wire_u8(w) != 0;
	w->bad |= vv_wire_u16(w) != 0;
	id = vv_wire_bytes(w, 16);
	*covers = vv_wire_u64(w);
	return w->bad || memcmp(id, lin->id, 16) != 0 ? VV_EDAMAGED : 0;
}

struct cache {
	uint8_t *p;
	uint64_t covers;
	struct index_cache_source *source; /* ascending */
	size_t n, sum;         /* number of sources, and of their entries */
};

static void close_cache(struct cache *c)
{
	vv_mem_free(c->p);
	vv_mem_free(c->source);
	*c = (struct cache){ 0 };
}

static int get_sources(struct vv_wire *w, uint32_t rank, struct cache *c)
{
	uint64_t count = vv_wire_var_max(w, 1 << 24);
	int rc = 0;

	if (w->bad || count > vv_wire_left(w) / LEAST_SOURCE)
		return VV_EDAMAGED;
	c->source = vv_mem_new((size_t)count, sizeof(*c->source));
	if (!c->source)
		return VV_ENOMEM;
	for (; rc == 0 && c->n < count; c->n++) {
		struct index_cache_source *s = &c->source[c->n];
		uint64_t epoch = vv_wire_var_max(w, c->covers);

		s->layer = vv_run_layer(epoch, rank);
		if (w->bad || epoch == 0 || (c->n && s->layer <= s[-1].layer))
			return VV_EDAMAGED;
		rc = get_source(w, s);
		c->sum += s->n;
	}
	return rc ? rc : vv_wire_left(w) ? VV_EDAMAGED : 0;
}

/* kind 0: any. */
static int read_cache(const struct vv_lineage *lin, uint32_t rank, uint8_t kind, struct cache *out)
{
	char object[VV_NAME_MAX];
	struct cache c = { 0 };
	struct vv_wire w;
	uint8_t its_kind = 0;
	size_t n = 0;
	int rc;

	vv_name_index(object, lin->name, rank);
	rc = vv_store_get(lin->store, object, MAX_CACHE, &c.p, &n);
	if (rc == 0)
		rc = open_cache(lin, c.p, n, &w, &its_kind, &c.covers);
	if (rc == 0 && kind && its_kind != kind)
		rc = VV_EDAMAGED;
	if (rc == 0)
		rc = get_sources(&w, rank, &c);
	if (rc)
		close_cache(&c);
	else
		*out = c;
	return rc;
}

int vv_index_cache_check(const struct vv_lineage *lin, uint32_t rank)
{
	struct vv_index_cache h = { 0 };
	struct cache c = { 0 };
	int rc = read_cache(lin, rank, 0, &c);

	for (size_t i = 0; rc == 0 && i < c.n; i++)
		rc = add_source(&h, &c.source[i], NULL);
	close_cache(&c);
	vv_index_cache_fini(&h);
	if (rc == VV_EDAMAGED)
		vv_err_set(rc, "'%s/%s/index.r%u': the index cache is damaged (nothing is lost; the next writer makes it again)",
			   lin->store->url, lin->name, rank);
	return rc;
}

/* ---- reading: the newest first, until the room is used; then the needed entries -------------- */

struct index_cache_fresh { /* a layer that the cache does not cover */
	uint64_t layer, tie;
	struct vv_digests digests;
};

struct index_cache_loading {
	const struct vv_lineage *lin;
	uint32_t rank;
	uint8_t kind;
	const struct vv_needed_entries *needs;
	uint64_t oldest;
	size_t room;
	struct cache cache;
	struct index_cache_fresh *fresh; /* the newest first */
	size_t n_fresh, cap;
	struct vv_index_cache h;
};

/* Drops all loaded entries. */
static void give_up(struct index_cache_loading *l)
{
	for (size_t i = 0; i < l->n_fresh; i++)
		vv_payload_digests_fini(&l->fresh[i].digests);
	vv_mem_free(l->fresh);
	close_cache(&l->cache);
	vv_index_cache_fini(&l->h);
}

/* If the cache is missing, damaged, or newer than the lineage, the layers are read instead. */
static int load_cache(struct index_cache_loading *l)
{
	uint64_t highest = 0;
	int rc = read_cache(l->lin, l->rank, l->kind, &l->cache);

	if (rc == 0)
		rc = vv_catalog_highest(l->lin, &highest);
	if (rc == VV_EDAMAGED || rc == VV_ENOENT || (rc == 0 && l->cache.covers > highest)) {
		close_cache(&l->cache);
		vv_err_clear();
		rc = 0;
	}
	return rc;
}

/* The needed digests of a layer. */
static int sort_out(const struct vv_needed_entries *needs, uint64_t layer, const struct vv_digests *d, struct vv_digests *out)
{
	int rc = 0;

	for (size_t g = 0; rc == 0 && g < d->n_groups; g++)
		for (uint64_t i = 0; rc == 0 && i < d->group[g].count; i++) {
			uint64_t pos = d->group[g].pos + i * d->group[g].chunk;

			if (vv_needed_entries_chunk(needs, layer, pos))
				rc = vv_payload_digest_add(out, pos, d->group[g].chunk, &d->v[d->group[g].digest + i]);
		}
	return rc;
}

static int take_layer(struct index_cache_loading *l, struct vv_layer_file *f)
{
	struct index_cache_fresh *to;

	if (f->head.digest_kind != l->kind || !f->digests.n)
		return 0;
	if (vv_mem_room(&l->fresh, l->n_fresh, &l->cap, sizeof(*l->fresh)) < 0)
		return VV_ENOMEM;
	to = &l->fresh[l->n_fresh++];
	*to = (struct index_cache_fresh){ .layer = f->layer, .tie = vv_layer_section(&f->frame, VV_SECTION_DIGESTS)->check };
	if (f->digests.n > l->room) {
		l->room = 0;
		return sort_out(l->needs, f->layer, &f->digests, &to->digests);
	}
	l->room -= f->digests.n;
	to->digests = f->digests;
	f->digests = (struct vv_digests){ 0 };
	return 0;
}

static int read_layer(struct index_cache_loading *l, uint64_t layer)
{
	struct vv_layer_file *f = NULL;
	int rc;

	l->h.n_layers_since++;
	if (!l->room && !vv_needed_entries_layer(l->needs, layer))
		return 0;
	rc = vv_layer_file_open(l->lin, layer, VV_LAYER_FILE_DIGESTS, &f);
	if (rc == VV_EDAMAGED) {
		vv_log_warn("%s; its content will not be referred to", vv_err_last());
		return 0;
	}
	if (rc == 0)
		rc = take_layer(l, f);
	vv_layer_file_close(f);
	return rc;
}

static int read_layers(struct index_cache_loading *l)
{
	struct vv_listing all = { 0 };
	int rc = vv_catalog_list(l->lin, l->cache.covers + 1 > l->oldest ? l->cache.covers + 1 : l->oldest, &all);

	for (size_t i = all.n_layers; rc == 0 && i-- > 0;)
		if (vv_run_rank(all.layer[i].layer) == l->rank)
			rc = read_layer(l, all.layer[i].layer);
	vv_catalog_listing_fini(&all);
	return rc;
}

/* In the order of the layers: entries of the cache, then those of the layers. */
static int fill(struct index_cache_loading *l)
{
	struct vv_index_cache *h = &l->h;
	size_t left = l->cache.sum;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->cache.n; i++) {
		if (vv_run_epoch(l->cache.source[i].layer) >= l->oldest)
			rc = add_source(h, &l->cache.source[i], left > l->room ? l->needs : NULL);
		left -= l->cache.source[i].n;
	}
	h->cached = l->cache.covers;
	h->n_cached_layers = h->index.n_layers;
	for (; rc == 0 && l->n_fresh; l->n_fresh--) {
		struct index_cache_fresh *f = &l->fresh[l->n_fresh - 1];

		rc = vv_index_add_layer(&h->index, f->layer, &f->digests);
		if (rc == 0)
			rc = vv_index_cache_set_check(h, f->layer, f->tie);
		vv_payload_digests_fini(&f->digests);
	}
	return rc;
}

static int load(struct index_cache_loading *l, bool use_cache)
{
	int rc = use_cache ? load_cache(l) : 0;

	if (rc == 0)
		rc = read_layers(l);
	return rc ? rc : fill(l);
}

/* A cache need not name all content of the layers: if it lacks needed entries, the layers
 * themselves are read. */
int vv_index_cache_load(const struct vv_lineage *lin, uint32_t rank, uint8_t digest_kind, uint64_t oldest, size_t room,
			const struct vv_needed_entries *needs, struct vv_index_cache *out)
{
	struct index_cache_loading none = { .lin = lin, .rank = rank, .kind = digest_kind, .needs = needs, .room = room, .oldest = oldest }, l = none;
	struct vv_index_cache *h = &l.h;
	int rc = load(&l, true);

	if (rc == VV_EDAMAGED || (rc == 0 && h->cached && !vv_needed_entries_are_in(needs, &h->index, h->index.n))) {
		give_up(&l);
		l = none;
		vv_err_clear();
		rc = load(&l, false);
	}
	if (rc == 0) {
		h->n_loaded = h->index.n;
		h->entry_trust = vv_mem_new(h->n_loaded, 1);
		h->layer_trust = vv_mem_new(h->n_cached_layers, 1);
		rc = h->entry_trust && h->layer_trust ? 0 : VV_ENOMEM;
	}
	if (rc == 0) {
		*out = *h;
		*h = (struct vv_index_cache){ 0 };
	}
	give_up(&l);
	return rc;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

/* Moves the kept ones of n elements together; returns their number. */
static size_t close_ranks(void *v, size_t n, size_t size, const uint32_t *moved)
{
	uint8_t *p = v;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (moved[i])
			memmove(p + kept++ * size, p + i * size, size);
	return kept;
}

int vv_index_cache_shrink(struct vv_index_cache *h, size_t limit, uint32_t *moved)
{
	size_t kept = 0, n_layers = h->index.n_layers;
	uint32_t *source = vv_mem_new(n_layers, sizeof(*source));

	if (!source)
		return VV_ENOMEM;
	for (size_t i = 0; i < h->index.n; i++)
		kept += moved[i] != 0;
	for (size_t i = h->index.n; i-- > 0 && kept < limit;) {
		kept += !moved[i];
		moved[i] = 1;
	}
	vv_index_compact(&h->index, moved, source);
	h->n_loaded = close_ranks(h->entry_trust, h->n_loaded, sizeof(*h->entry_trust), moved);
	h->n_cached_layers = close_ranks(h->layer_trust, h->n_cached_layers, sizeof(*h->layer_trust), source);
	close_ranks(h->digests_check, n_layers < h->checks_cap ? n_layers : h->checks_cap, sizeof(*h->digests_check), source);
	vv_mem_free(source);
	return 0;
}

/* ---- writing the cache ----------------------------------------------------------------------- */

/* Orders the entries of the rank's own layers by layer and position. New entries of a layer may
 * have come in any order, mixed with entries of other ranks. */
static int by_place(const void *a, const void *b, void *arg)
{
	const struct vv_index *x = arg;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	uint64_t l = vv_index_layer(x, i), m = vv_index_layer(x, k);

	if (l != m)
		return l < m ? -1 : 1;
	return (vv_index_pos(x, i) > vv_index_pos(x, k)) - (vv_index_pos(x, i) < vv_index_pos(x, k));
}

static uint32_t *sort_entries(struct vv_index *x, uint32_t rank, size_t *n)
{
	uint32_t *list = vv_mem_new(x->n, sizeof(*list));
	bool sorted = true;

	*n = 0;
	for (size_t i = 0; list && i < x->n; i++) {
		if (vv_run_rank(vv_index_layer(x, (uint32_t)i)) != rank)
			continue;
		list[(*n)++] = (uint32_t)i;
		sorted &= *n < 2 || by_place(&list[*n - 2], &list[*n - 1], x) < 0;
	}
	if (!sorted)
		qsort_r(list, *n, sizeof(*list), by_place, x);
	return list;
}

/* The file during writing: one check covers all of it, but it need not be in memory at once. */
struct writing {
	struct vv_put *put;
	struct vv_buf b;
	struct vv_digest_stream check;
	int rc;
};

static void write_out(struct writing *w)
{
	struct iovec iov = { w->b.p, w->b.n };

	if (w->rc == 0)
		w->rc = vv_buf_check(&w->b);
	if (w->rc == 0 && w->b.n) {
		vv_digest_stream_add(&w->check, w->b.p, w->b.n);
		w->rc = vv_store_put_write(w->put, &iov, 1);
	}
	w->b.n = 0;
}

static void write_some(struct writing *w)
{
	enum { PIECE = 256 << 10 };

	if (w->b.n >= PIECE)
		write_out(w);
}

static void put_source(struct writing *w, const struct vv_index_cache *h, const uint32_t *list, size_t n)
{
	const struct vv_index *x = &h->index;
	uint64_t pos = 0;

	vv_wire_put_var(&w->b, vv_run_epoch(vv_index_layer(x, list[0])));
	vv_wire_put_u64(&w->b, h->digests_check[vv_index_from(x, list[0])]);
	vv_wire_put_var(&w->b, n);
	for (size_t i = 0; i < n; i++) {
		vv_wire_put_var(&w->b, vv_index_pos(x, list[i]) - pos);
		pos = vv_index_pos(x, list[i]);
		write_some(w);
	}
	for (size_t i = 0; i < n; i++) {
		vv_buf_add(&w->b, &x->digest[list[i]], sizeof(struct vv_digest));
		write_some(w);
	}
}

static void put_sources(struct writing *w, const struct vv_index_cache *h, const uint32_t *list, size_t n)
{
	const struct vv_index *x = &h->index;
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += i == 0 || vv_index_layer(x, list[i]) != vv_index_layer(x, list[i - 1]);
	vv_wire_put_var(&w->b, count);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && vv_index_layer(x, list[end]) == vv_index_layer(x, list[i]);)
			end++;
		put_source(w, h, list + i, end - i);
	}
}

static void put_cache(struct writing *w, const struct vv_lineage *lin, uint8_t kind, uint64_t epoch, const struct vv_index_cache *h, const uint32_t *list,
		      size_t n)
{
	vv_digest_stream_init(&w->check);
	vv_buf_add(&w->b, magic, sizeof(magic));
	vv_wire_put_u16(&w->b, 1);
	vv_wire_put_u16(&w->b, 0);
	vv_wire_put_u8(&w->b, kind);
	vv_wire_put_u8(&w->b, 0);
	vv_wire_put_u16(&w->b, 0);
	vv_buf_add(&w->b, lin->id, sizeof(lin->id));
	vv_wire_put_u64(&w->b, epoch);
	put_sources(w, h, list, n);
	write_out(w);
	vv_wire_put_u64(&w->b, vv_digest_stream_check(&w->check));
	write_out(w);
}

static int save(const struct vv_lineage *lin, uint32_t rank, uint8_t kind, uint64_t epoch, struct vv_index_cache *h)
{
	char object[VV_NAME_MAX];
	struct writing w = { 0 };
	size_t n = 0;
	uint32_t *list = sort_entries(&h->index, rank, &n);

	vv_name_index(object, lin->name, rank);
	w.rc = list ? vv_store_put_open(lin->store, object, n * (sizeof(struct vv_digest) + 2), &w.put) : VV_ENOMEM;
	if (w.rc == 0)
		put_cache(&w, lin, kind, epoch, h, list, n);
	if (w.rc == 0)
		w.rc = vv_store_put_commit(w.put);
	else
		vv_store_put_abort(w.put);
	vv_buf_fini(&w.b);
	vv_mem_free(list);
	return w.rc;
}

void vv_index_cache_save(const struct vv_lineage *lin, uint32_t rank, uint8_t digest_kind, uint64_t epoch,
		     struct vv_index_cache *h)
{
	if (++h->n_layers_since < SAVE_EVERY)
		return;
	if (save(lin, rank, digest_kind, epoch, h) < 0)
		vv_log_warn("the index cache was not written, the next start will be slower: %s", vv_err_last());
	h->cached = epoch;
	h->n_layers_since = 0;
}

int vv_index_cache_forget(const struct vv_lineage *lin, uint32_t rank)
{
	char object[VV_NAME_MAX];

	vv_name_index(object, lin->name, rank);
	return vv_store_remove(lin->store, object);
}
