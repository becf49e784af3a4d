#include "engine/history.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/layerio.h"
#include <inttypes.h>
#include <string.h>

static const char magic[8] = { 'V', 'A', 'R', 'V', 'E', 'I', 'D', 'X' };

enum { SAVE_EVERY = 64 };
enum { UNSEEN, THERE, GONE };
#define MAX_CACHE (8ull << 30)

void vv_history_fini(struct vv_history *h)
{
	vv_index_fini(&h->index);
	vv_mem_free(h->looked);
	*h = (struct vv_history){ 0 };
}

/* One source: its entries are positions (as gaps) and then digests. */
static int get_source(struct vv_wire *w, uint64_t layer, struct vv_index *x)
{
	size_t n = (size_t)vv_wire_var_max(w, VV_INDEX_MAX);
	struct vv_wire gap = *w;
	const uint8_t *digests;
	uint64_t pos = 0;
	int rc = vv_index_reserve(x, n);

	if (rc || n > vv_wire_left(w) / 17)
		return rc ? rc : VV_EDAMAGED;
	for (size_t i = 0; i < n; i++)
		vv_wire_var(w);
	digests = vv_wire_bytes(w, n * sizeof(struct vv_digest));
	for (size_t i = 0; rc == 0 && digests && i < n; i++) {
		struct vv_digest d;
		uint32_t number;

		memcpy(&d, digests + i * sizeof(d), sizeof(d));
		pos += vv_wire_var_max(&gap, VV_MAX_PAYLOAD);
		rc = vv_index_add(x, &d, layer, pos, &number);
	}
	return rc ? rc : w->bad ? VV_EDAMAGED : 0;
}

static int get_cache(const struct vv_lineage *lin, uint32_t rank, uint8_t kind, const uint8_t *p, size_t n,
		     struct vv_history *h)
{
	struct vv_wire w = vv_wire_over(p, n < 8 ? 0 : n - 8), end = vv_wire_over(p + (n < 8 ? 0 : n - 8), n < 8 ? 0 : 8);
	const uint8_t *m = vv_wire_bytes(&w, 8), *id;
	uint64_t before = 0, count;
	int rc = 0;

	if (!m || memcmp(m, magic, 8) != 0 || vv_wire_u64(&end) != vv_digest_check(p, n - 8))
		return VV_EDAMAGED;
	if (vv_wire_u16(&w) != 1 || vv_wire_u16(&w) != 0 || vv_wire_u8(&w) != kind || vv_wire_u8(&w) != 0)
		return VV_EDAMAGED;
	w.bad |= vv_wire_u16(&w) != 0;
	id = vv_wire_bytes(&w, 16);
	h->cached = vv_wire_u64(&w);
	count = vv_wire_var_max(&w, 1 << 24);
	if (w.bad || memcmp(id, lin->id, 16) != 0)
		return VV_EDAMAGED;
	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		uint64_t epoch = vv_wire_var_max(&w, h->cached), layer = vv_run_layer(epoch, rank);

		if (w.bad || layer <= before || epoch == 0)
			return VV_EDAMAGED;
		rc = get_source(&w, layer, &h->index);
		before = layer;
	}
	return rc ? rc : vv_wire_left(&w) ? VV_EDAMAGED : 0;
}

/* A cache that is missing or not whole means: read the layers instead. */
static int load_cache(const struct vv_lineage *lin, uint32_t rank, uint8_t kind, struct vv_history *h)
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
	if (rc == VV_EDAMAGED || rc == VV_ENOENT) {
		vv_history_fini(h);
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
	if (rc == 0) {
		h.n_looked = h.index.n_layers;
		h.looked = vv_mem_new(h.n_looked, sizeof(*h.looked));
		rc = h.looked ? 0 : VV_ENOMEM;
	}
	for (size_t i = 0; rc == 0 && i < l.n_layers; i++)
		if (vv_run_rank(l.layer[i].layer) == rank)
			rc = add_layer(lin, l.layer[i].layer, digest_kind, &h);
	vv_catalog_listing_fini(&l);
	if (rc)
		vv_history_fini(&h);
	else
		*out = h;
	return rc;
}

/* A cache may be older than the folder it lies in, and looking for all its layers at every start would cost more than the
 * cache saves. So a layer is looked for when something first refers to it. */
bool vv_history_has(const struct vv_lineage *lin, struct vv_history *h, uint32_t entry)
{
	size_t k = (size_t)(h->index.entry[entry].where >> 40);
	char object[VV_NAME_MAX];
	struct vv_get *g = NULL;
	uint64_t layer;

	if (k >= h->n_looked)
		return true;
	if (h->looked[k] == UNSEEN) {
		layer = h->index.layer[k];
		vv_name_layer(object, lin->name, vv_run_epoch(layer), vv_run_rank(layer));
		h->looked[k] = vv_store_get_open(lin->store, object, &g) == VV_ENOENT ? GONE : THERE;
		vv_store_get_close(g);
		vv_err_clear();
	}
	return h->looked[k] == THERE;
}

static void put_source(struct vv_buf *b, const struct vv_index *x, size_t first, size_t end)
{
	uint64_t pos = 0;

	vv_wire_put_var(b, vv_run_epoch(vv_index_layer(x, (uint32_t)first)));
	vv_wire_put_var(b, end - first);
	for (size_t i = first; i < end; i++) {
		vv_wire_put_var(b, vv_index_pos(x, (uint32_t)i) - pos);
		pos = vv_index_pos(x, (uint32_t)i);
	}
	for (size_t i = first; i < end; i++)
		vv_buf_add(b, &x->entry[i].digest, sizeof(struct vv_digest));
}

static void put_cache(const struct vv_lineage *lin, uint8_t kind, uint64_t epoch, const struct vv_index *x,
		      struct vv_buf *b)
{
	size_t count = 0;

	for (size_t i = 0; i < x->n; i++)
		count += i == 0 || x->entry[i].where >> 40 != x->entry[i - 1].where >> 40;
	vv_buf_add(b, magic, sizeof(magic));
	vv_wire_put_u16(b, 1);
	vv_wire_put_u16(b, 0);
	vv_wire_put_u8(b, kind);
	vv_wire_put_u8(b, 0);
	vv_wire_put_u16(b, 0);
	vv_buf_add(b, lin->id, sizeof(lin->id));
	vv_wire_put_u64(b, epoch);
	vv_wire_put_var(b, count);
	for (size_t i = 0, end; i < x->n; i = end) {
		for (end = i + 1; end < x->n && x->entry[end].where >> 40 == x->entry[i].where >> 40;)
			end++;
		put_source(b, x, i, end);
	}
	if (!b->failed)
		vv_wire_put_u64(b, vv_digest_check(b->p, b->n));
}

void vv_history_save(const struct vv_lineage *lin, uint32_t rank, uint8_t digest_kind, uint64_t epoch,
		     struct vv_history *h)
{
	char object[VV_NAME_MAX];
	struct vv_buf b = { 0 };

	if (++h->since < SAVE_EVERY)
		return;
	put_cache(lin, digest_kind, epoch, &h->index, &b);
	vv_name_index(object, lin->name, rank);
	if (vv_buf_check(&b) < 0 || vv_store_put(lin->store, object, b.p, b.n) < 0)
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
