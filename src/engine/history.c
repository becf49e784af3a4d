#include "engine/history.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/layerio.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = { 'V', 'A', 'R', 'V', 'E', 'I', 'D', 'X' };

enum { SAVE_EVERY = 64, LEAST_SOURCE = 8 + 2 };
#define MAX_CACHE (8ull << 30)

void vv_history_fini(struct vv_history *h)
{
	vv_index_fini(&h->index);
	vv_mem_free(h->tie);
	vv_mem_free(h->entry_trust);
	vv_mem_free(h->layer_trust);
	vv_layerio_close(h->open);
	*h = (struct vv_history){ 0 };
}

int vv_history_tie(struct vv_history *h, uint64_t layer, uint64_t check)
{
	size_t n = h->index.n_layers, k = n;

	if (n > h->ties_cap) {
		size_t cap = n * 2;
		uint64_t *v = vv_mem_grow(h->tie, cap, sizeof(*v));

		if (!v)
			return VV_ENOMEM;
		h->tie = v;
		h->ties_cap = cap;
	}
	while (k && h->index.layer[k - 1] != layer && vv_run_epoch(h->index.layer[k - 1]) == vv_run_epoch(layer))
		k--; /* what other ranks stored of the epoch may have come behind it */
	if (k && h->index.layer[k - 1] == layer)
		h->tie[k - 1] = check; /* else it brought nothing new */
	return 0;
}

/* One source: the check that ties it to its layer, then its entries: positions (as gaps), digests. */
static int get_source(struct vv_wire *w, uint64_t layer, struct vv_history *h)
{
	uint64_t tie = vv_wire_u64(w), pos = 0;
	size_t n = (size_t)vv_wire_var_max(w, VV_INDEX_MAX);
	struct vv_wire gap = *w;
	const uint8_t *digests;
	int rc;

	if (w->bad || n > vv_wire_left(w) / 17)
		return VV_EDAMAGED;
	for (size_t i = 0; i < n; i++)
		vv_wire_var(w);
	digests = vv_wire_bytes(w, n * sizeof(struct vv_digest));
	if (!digests)
		return VV_EDAMAGED;
	rc = vv_index_reserve(&h->index, n);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct vv_digest d;
		uint32_t number;

		memcpy(&d, digests + i * sizeof(d), sizeof(d));
		pos += vv_wire_var_max(&gap, VV_MAX_PAYLOAD);
		if (pos >= VV_MAX_PAYLOAD || (i && pos == vv_index_pos(&h->index, (uint32_t)h->index.n - 1)))
			return VV_EDAMAGED;
		rc = vv_index_add(&h->index, &d, layer, pos, &number);
	}
	return rc ? rc : vv_history_tie(h, layer, tie);
}

/* Magic, version, check, lineage; what is left in w are the sources. */
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

static int get_cache(const struct vv_lineage *lin, uint32_t rank, uint8_t kind, const uint8_t *p, size_t n,
		     struct vv_history *h)
{
	struct vv_wire w;
	uint64_t before = 0, count;
	uint8_t its_kind = 0;
	int rc = open_cache(lin, p, n, &w, &its_kind, &h->cached);

	if (rc || (kind && its_kind != kind))
		return VV_EDAMAGED;
	count = vv_wire_var_max(&w, 1 << 24);
	if (w.bad || count > vv_wire_left(&w) / LEAST_SOURCE)
		return VV_EDAMAGED;
	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		uint64_t epoch = vv_wire_var_max(&w, h->cached), layer = vv_run_layer(epoch, rank);

		if (w.bad || layer <= before || epoch == 0)
			return VV_EDAMAGED;
		rc = get_source(&w, layer, h);
		before = layer;
	}
	return rc ? rc : vv_wire_left(&w) ? VV_EDAMAGED : 0;
}

static int read_cache(const struct vv_lineage *lin, uint32_t rank, uint8_t kind, struct vv_history *h)
{
	char object[VV_NAME_MAX];
	uint8_t *p = NULL;
	size_t n = 0;
	int rc;

	vv_name_index(object, lin->name, rank);
	rc = vv_store_get(lin->store, object, MAX_CACHE, &p, &n);
	if (rc == 0)
		rc = get_cache(lin, rank, kind, p, n, h);
	vv_mem_free(p);
	return rc;
}

int vv_history_check(const struct vv_lineage *lin, uint32_t rank)
{
	struct vv_history h = { 0 };
	int rc = read_cache(lin, rank, 0, &h);

	vv_history_fini(&h);
	if (rc == VV_EDAMAGED)
		vv_err_set(rc, "'%s/%s/index.r%u': the index cache is damaged (nothing is lost; the next writer makes it anew)",
			   lin->store->url, lin->name, rank);
	return rc;
}

/* A cache that is missing, not whole, or newer than the lineage means: read the layers instead. */
static int load_cache(const struct vv_lineage *lin, uint32_t rank, uint8_t kind, struct vv_history *h)
{
	uint64_t highest = 0;
	int rc = read_cache(lin, rank, kind, h);

	if (rc == 0)
		rc = vv_catalog_highest(lin, &highest);
	if (rc == VV_EDAMAGED || rc == VV_ENOENT || (rc == 0 && h->cached > highest)) {
		vv_history_fini(h);
		vv_err_clear();
		rc = 0;
	}
	return rc;
}

static int add_layer(const struct vv_lineage *lin, uint64_t layer, uint8_t kind, struct vv_history *h)
{
	struct vv_layerio *f = NULL;
	int rc = vv_layerio_open(lin, layer, VV_LAYERIO_DIGESTS, &f);

	if (rc == VV_EDAMAGED) {
		vv_log_warn("%s; its content will not be referred to", vv_err_last());
		return 0;
	}
	if (rc == 0 && f->head.digest_kind == kind)
		rc = vv_index_add_layer(&h->index, layer, &f->digests);
	if (rc == 0 && f->head.digest_kind == kind && f->digests.n)
		rc = vv_history_tie(h, layer, vv_layer_section(&f->frame, VV_SECTION_DIGESTS)->check);
	vv_layerio_close(f);
	h->since++;
	return rc;
}

int vv_history_load(const struct vv_lineage *lin, uint32_t rank, uint8_t digest_kind, struct vv_history *out)
{
	struct vv_history h = { 0 };
	struct vv_listing l = { 0 };
	int rc = load_cache(lin, rank, digest_kind, &h);

	if (rc == 0)
		rc = vv_catalog_list(lin, h.cached + 1, &l);
	h.n_cached_layers = h.index.n_layers;
	for (size_t i = 0; rc == 0 && i < l.n_layers; i++)
		if (vv_run_rank(l.layer[i].layer) == rank)
			rc = add_layer(lin, l.layer[i].layer, digest_kind, &h);
	vv_catalog_listing_fini(&l);
	if (rc == 0) {
		h.n_loaded = h.index.n;
		h.entry_trust = vv_mem_new(h.n_loaded, 1);
		h.layer_trust = vv_mem_new(h.n_cached_layers, 1);
		rc = h.entry_trust && h.layer_trust ? 0 : VV_ENOMEM;
	}
	if (rc)
		vv_history_fini(&h);
	else
		*out = h;
	return rc;
}

/* The entries of the rank's own layers, by layer and position: new content of a layer may have come in any order, and between it what
 * other ranks hold. */
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

static void put_source(struct vv_buf *b, const struct vv_history *h, const uint32_t *list, size_t n)
{
	const struct vv_index *x = &h->index;
	uint64_t pos = 0;

	vv_wire_put_var(b, vv_run_epoch(vv_index_layer(x, list[0])));
	vv_wire_put_u64(b, h->tie[x->entry[list[0]].where >> 40]);
	vv_wire_put_var(b, n);
	for (size_t i = 0; i < n; i++) {
		vv_wire_put_var(b, vv_index_pos(x, list[i]) - pos);
		pos = vv_index_pos(x, list[i]);
	}
	for (size_t i = 0; i < n; i++)
		vv_buf_add(b, &x->entry[list[i]].digest, sizeof(struct vv_digest));
}

static void put_sources(struct vv_buf *b, const struct vv_history *h, const uint32_t *list, size_t n)
{
	const struct vv_index *x = &h->index;
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += i == 0 || vv_index_layer(x, list[i]) != vv_index_layer(x, list[i - 1]);
	vv_wire_put_var(b, count);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && vv_index_layer(x, list[end]) == vv_index_layer(x, list[i]);)
			end++;
		put_source(b, h, list + i, end - i);
	}
}

static int put_cache(const struct vv_lineage *lin, uint32_t rank, uint8_t kind, uint64_t epoch, struct vv_history *h,
		     struct vv_buf *b)
{
	size_t n = 0;
	uint32_t *list = sort_entries(&h->index, rank, &n);

	if (!list)
		return VV_ENOMEM;
	vv_buf_add(b, magic, sizeof(magic));
	vv_wire_put_u16(b, 1);
	vv_wire_put_u16(b, 0);
	vv_wire_put_u8(b, kind);
	vv_wire_put_u8(b, 0);
	vv_wire_put_u16(b, 0);
	vv_buf_add(b, lin->id, sizeof(lin->id));
	vv_wire_put_u64(b, epoch);
	put_sources(b, h, list, n);
	if (!b->failed)
		vv_wire_put_u64(b, vv_digest_check(b->p, b->n));
	vv_mem_free(list);
	return vv_buf_check(b);
}

void vv_history_save(const struct vv_lineage *lin, uint32_t rank, uint8_t digest_kind, uint64_t epoch,
		     struct vv_history *h)
{
	char object[VV_NAME_MAX];
	struct vv_buf b = { 0 };

	if (++h->since < SAVE_EVERY)
		return;
	vv_name_index(object, lin->name, rank);
	if (put_cache(lin, rank, digest_kind, epoch, h, &b) < 0 || vv_store_put(lin->store, object, b.p, b.n) < 0)
		vv_log_warn("the index cache was not written, the next start will be slower: %s", vv_err_last());
	h->cached = epoch;
	h->since = 0;
	vv_buf_fini(&b);
}

int vv_history_forget(const struct vv_lineage *lin, uint32_t rank)
{
	char object[VV_NAME_MAX];

	vv_name_index(object, lin->name, rank);
	return vv_store_remove(lin->store, object);
}
