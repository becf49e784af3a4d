#include "engine/read/open_layers.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "track/write_protect.h"
#include <string.h>

enum {
	/* A large folio: if one page is cached, its neighbours are, too; if not, touching them
	 * reads them. */
	WINDOW = 2 << 20,
	AROUND = 64 << 10, /* the kernel maps so much around a page of a small folio */
	CACHED = 1,
	NOT_CACHED = 2,
	AT_ONCE = 32, /* windows that one thread touches, where there are many */
	SOME = 64, /* extents that may be listed even without many runs */
	/* between two pieces, on average: reading through takes no longer than a new read */
	APART = 32 << 10,
};

static size_t hash(uint64_t layer)
{
	return (size_t)((layer * 0x9e3779b97f4a7c15u) >> 32) % VV_OPEN_LAYERS_SLOTS;
}

size_t vv_open_layers_find(const struct vv_open_layers *w, uint64_t layer)
{
	for (size_t s = hash(layer); w->slot[s]; s = (s + 1) % VV_OPEN_LAYERS_SLOTS)
		if (w->layer[w->slot[s] - 1] == layer)
			return w->slot[s] - 1u;
	return w->n;
}

void vv_open_layers_build_index(struct vv_open_layers *w)
{
	memset(w->slot, 0, sizeof(w->slot));
	for (size_t i = 0; i < w->n; i++) {
		size_t s = hash(w->layer[i]);

		while (w->slot[s])
			s = (s + 1) % VV_OPEN_LAYERS_SLOTS;
		w->slot[s] = (uint8_t)(i + 1);
	}
}

static bool is_cached(const struct vv_open_layers *w, size_t i, uint64_t off, uint64_t len)
{
	for (uint64_t k = off / WINDOW; k <= (off + len - 1) / WINDOW; k++) {
		unsigned char known = atomic_load_explicit(&w->window[i][k], memory_order_relaxed);

		if (!known) {
			const uint8_t *page = w->file[i]->get->map + (k * WINDOW > off ? k * WINDOW : off);

			known = vv_fs_is_cached(page) ? CACHED : NOT_CACHED;
			atomic_store_explicit(&w->window[i][k], known, memory_order_relaxed);
		}
		if (known == NOT_CACHED)
			return false;
	}
	return true;
}

bool vv_open_layers_may_touch(const struct vv_open_layers *w, size_t i, uint64_t off, uint64_t len)
{
	return is_cached(w, i, off, len) || w->dense[i];
}

struct vv_open_layers_extent vv_open_layers_get_extent(const struct vv_open_layers *w, size_t layer, const struct vv_plain_extent *at)
{
	const struct vv_layer_file *f = w->file[layer];
	struct vv_open_layers_extent l = { .lo = at->lo, .hi = at->hi, .chunk = at->chunk };

	if (at->digest) {
		uint64_t n = (at->lo - at->first) / at->chunk;

		l.digest = at->digest + n;
		l.first = at->first + n * at->chunk;
	}
	if (l.digest && w->chunk[layer]) /* digests may have been read since */
		l.state = w->chunk[layer] + (l.digest - f->digests.v);
	if (at->off == at->block->off && l.hi - l.lo == at->block->raw_len)
		l.full_block = at->block;
	if (at->block->codec == 0 && w->window[layer]) {
		l.bytes = f->get->map + at->off;
		l.may_touch = vv_open_layers_may_touch(w, layer, at->off, l.hi - l.lo);
	}
	return l;
}

struct open_layers_look {
	const struct vv_open_layers *warm;
	size_t layer;
	uint64_t at, end;
};

/* Touching the first byte of a large folio maps all of it. Otherwise the core would wait twice
 * while copying pages: for the mapping, and for data that it could not prefetch. The rest at the
 * end of a file has no such folio. */
static void touch(void *arg)
{
	const struct open_layers_look *l = arg;
	const volatile uint8_t *map = l->warm->file[l->layer]->get->map;

	for (uint64_t at = l->at; at < l->end; at += l->end - at < WINDOW ? AROUND : WINDOW)
		if (is_cached(l->warm, l->layer, at, 1))
			(void)map[at];
}

static void touch_some(void *arg, size_t i)
{
	struct open_layers_look l = *(const struct open_layers_look *)arg;

	l.at += (uint64_t)i * AT_ONCE * WINDOW;
	l.end = l.end - l.at < AT_ONCE * WINDOW ? l.end : l.at + AT_ONCE * WINDOW;
	if (vv_write_protect_try_read(touch, &l) < 0)
		vv_err_clear(); /* a later reader reports the error */
}

static void touch_all(const struct vv_open_layers *w, size_t layer, struct vv_pool *pool)
{
	struct open_layers_look l = { w, layer, 0, w->file[layer]->get->size };
	size_t steps = (size_t)((l.end / WINDOW + AT_ONCE) / AT_ONCE);

	if (pool && steps > 1)
		vv_pool_each(pool, steps, touch_some, &l);
	for (size_t k = 0; !(pool && steps > 1) && k < steps; k++)
		touch_some(&l, k);
}

/* It pays if there are not more extents than runs. */
static int list_extents(struct vv_open_layers *w, size_t i, size_t n_runs)
{
	const struct vv_layer_file *f = w->file[i];
	struct vv_plain_extents list = { 0 };
	int rc = 0;

	if (f->blocks.extent.n + f->digests.n_groups > n_runs + SOME)
		return 0;
	rc = vv_plain_extent_list(f, &list);
	if (rc == 0) {
		w->extent[i] = vv_mem_new(list.n, sizeof(*w->extent[i]));
		rc = w->extent[i] ? 0 : VV_ENOMEM;
	}
	for (size_t k = 0; rc == 0 && k < list.n; k++)
		w->extent[i][k] = vv_open_layers_get_extent(w, i, &list.v[k]);
	w->n_extents[i] = rc ? 0 : list.n;
	vv_mem_free(list.v);
	return rc;
}

struct borrowing {
	struct vv_layer_file *file;
	const struct vv_section *section;
	int rc;
};

static void borrow_digests(void *arg)
{
	struct borrowing *l = arg;

	const uint8_t *p = l->file->get->map + l->section->off;

	l->rc = vv_layer_check_section(l->section, p);
	if (l->rc == 0)
		l->rc = vv_payload_lend_digests(&l->file->digests, p, (size_t)l->section->len, l->file->head.payload);
}

/* The digests in the mapped file, if they are in memory. A reader must be prepared for SIGBUS, as
 * with the bytes. */
static int get_digests(struct vv_open_layers *w, size_t i)
{
	struct borrowing l = { w->file[i], vv_layer_section(&w->file[i]->frame, VV_SECTION_DIGESTS), 0 };

	if (!(l.section->flags & VV_SECTION_CODED) && is_cached(w, i, l.section->off, l.section->len) && vv_write_protect_try_read(borrow_digests, &l) == 0 && l.rc == 0)
		return 0;
	vv_err_clear();
	vv_payload_digests_fini(&l.file->digests);
	return vv_layer_file_load_digests(l.file);
}

void vv_open_layers_stop_mapping(struct vv_open_layers *w, size_t i)
{
	if (w->file[i]->digests.lent)
		vv_payload_digests_fini(&w->file[i]->digests);
}

/* Another rank may read its layers at the same time, from the page cache or into it. */
static bool is_only_reader(const struct vv_lineage *lin, uint64_t layer)
{
	return lin->ranks <= 1 || vv_run_rank(layer) == lin->rank;
}

/* Most of the layer is wanted. Parts that are not cached are read past the page cache, or else
 * touched. */
static void choose_reading(struct vv_open_layers *w, size_t i, const struct vv_lineage *lin)
{
	struct vv_get *g = w->file[i]->get;

	if (!w->dense[i] || (g->map && is_cached(w, i, 0, g->size)))
		return;
	if (is_only_reader(lin, w->layer[i]) && vv_store_get_direct(g))
		w->dense[i] = false;
	else if (g->map)
		vv_store_get_advise(g, VV_STORE_MAPPED, 0, g->size);
}

/* Few runs are mostly whole blocks, which have checks of their own. Damaged digests are not used:
 * the blocks may still be intact. */
int vv_open_layers_open(struct vv_open_layers *w, size_t i, const struct vv_lineage *lin, struct vv_pool *pool, uint64_t layer, size_t n_runs, uint64_t bytes)
{
	struct vv_layer_file *f = NULL;
	int rc = vv_layer_file_open_on(lin, pool, layer, VV_LAYER_FILE_BLOCKS, &f);

	w->layer[i] = layer;
	w->file[i] = f;
	if (rc)
		return rc;
	w->dense[i] = bytes && bytes + n_runs * APART >= f->head.payload;
	if (!f->get->map) {
		choose_reading(w, i, lin);
		w->dense[i] = false;
		return 0;
	}
	w->window[i] = vv_mem_new((size_t)(f->get->size / WINDOW) + 1, sizeof(*w->window[i]));
	if (!w->window[i])
		return VV_ENOMEM;
	if (w->dense[i] || n_runs > f->get->size / WINDOW) /* hardly any will be skipped */
		touch_all(w, i, pool);
	if (f->head.digest_kind == VV_DIGEST_XXH3 && 8 * n_runs > f->blocks.n)
		rc = get_digests(w, i);
	if (rc && rc != VV_ENOMEM) {
		vv_err_clear();
		rc = 0;
	}
	choose_reading(w, i, lin);
	if (rc == 0 && f->digests.n) {
		w->chunk[i] = vv_mem_new(f->digests.n, sizeof(*w->chunk[i]));
		rc = w->chunk[i] ? list_extents(w, i, n_runs) : VV_ENOMEM;
	}
	return rc;
}

int vv_open_layers_check(const struct vv_open_layers *w)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->n; i++)
		if (w->file[i] && w->file[i]->get->map)
			rc = vv_store_get_check(w->file[i]->get);
	return rc;
}

void vv_open_layers_close(struct vv_open_layers *w, size_t i)
{
	vv_layer_file_close(w->file[i]);
	vv_mem_free(w->window[i]);
	vv_mem_free(w->chunk[i]);
	vv_mem_free(w->extent[i]);
	w->file[i] = NULL;
	w->window[i] = NULL;
	w->chunk[i] = NULL;
	w->extent[i] = NULL;
	w->n_extents[i] = 0;
	w->dense[i] = false;
}
