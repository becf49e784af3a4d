#include "engine/read/newest_page.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "track/write_protect.h"

enum {
	PAGE = VV_NEWEST_PAGE_PAGE,
	SOON = 4, /* pages: their digests are prefetched */
};

struct page_source { /* the source of a page */
	const uint8_t *from; /* NULL: not known yet */
	const struct vv_digest *digest; /* NULL: it is zero */
};

struct page_map {
	const struct vv_open_layers *warm;
	const struct vv_runs *const *table;
	size_t n_tables;
	const struct vv_want *part;
	struct page_source *page_source;
	size_t n, left;
	bool done;
	const struct vv_open_layers_extent *lane[VV_OPEN_LAYERS_LAYERS]; /* the last used ones */
};

static const struct vv_open_layers_extent *find_extent(struct page_map *m, size_t layer, uint64_t pos)
{
	const struct vv_open_layers_extent *l = m->lane[layer], *v = m->warm->extent[layer];
	size_t i;

	if (l && pos >= l->lo && pos < l->hi)
		return l;
	VV_SEARCH(i, 0, m->warm->n_extents[layer], v[i].hi <= pos);
	if (i == m->warm->n_extents[layer] || v[i].lo > pos || !v[i].may_touch || !v[i].digest || v[i].chunk != PAGE)
		return NULL;
	m->lane[layer] = &v[i];
	return &v[i];
}

/* Sets the pages from k to end, except those of newer layers. */
static void set(struct page_map *m, size_t k, size_t end, struct page_source first)
{
	for (; k < end; k++, first.from += PAGE, first.digest++)
		if (!m->page_source[k].from) {
			m->page_source[k] = first;
			m->left--;
		}
}

static void set_zero(struct page_map *m, size_t k, size_t end)
{
	static const uint8_t any;

	for (; k < end; k++)
		if (!m->page_source[k].from) {
			m->page_source[k] = (struct page_source){ &any, NULL };
			m->left--;
		}
}

/* Sets the pages from at to end of the region, of a run. */
static bool set_run(struct page_map *m, const struct vv_run *r, uint64_t at, uint64_t end)
{
	size_t k = (size_t)((at - m->part->at) / PAGE), layer;

	if ((at - m->part->at) % PAGE || (end - at) % PAGE)
		return false;
	if (end - at == PAGE && m->page_source[k].from)
		return true;
	if (!r->layer) {
		set_zero(m, k, k + (size_t)((end - at) / PAGE));
		return true;
	}
	layer = vv_open_layers_find(m->warm, r->layer);
	for (uint64_t len; at < end; at += len, k += (size_t)(len / PAGE)) {
		uint64_t pos = r->pos + (at - r->at);
		const struct vv_open_layers_extent *l = layer < m->warm->n ? find_extent(m, layer, pos) : NULL;

		len = l && (pos - l->first) % PAGE == 0 ? l->hi - pos : 0;
		len = (len < end - at ? len : end - at) / PAGE * PAGE;
		if (!len && !m->page_source[k].from)
			return false;
		if (!len) { /* gc has removed bytes that only older epochs needed */
			len = PAGE;
			continue;
		}
		set(m, k, k + (size_t)(len / PAGE), (struct page_source){ l->bytes + (pos - l->lo), &l->digest[(pos - l->first) / PAGE] });
	}
	return true;
}

static bool set_table(struct page_map *m, const struct vv_runs *runs)
{
	uint64_t stop = m->part->at + m->part->len;
	bool fits = true;

	for (size_t i = vv_run_find(runs, m->part->at); fits && i < runs->n && runs->v[i].at < stop; i++) {
		const struct vv_run *r = &runs->v[i];
		uint64_t at = r->at > m->part->at ? r->at : m->part->at, end = r->at + r->len;

		fits = set_run(m, r, at, end < stop ? end : stop);
	}
	return fits;
}

/* The next page's source is known: it is prefetched while this one is copied. */
static bool copy(const struct page_map *m)
{
	for (size_t k = 0; k < m->n; k++) {
		const struct page_source *s = &m->page_source[k];
		uint8_t *to = m->part->to + k * PAGE;

		__builtin_prefetch(s[SOON].digest);
		if (!s->digest)
			vv_mem_zero(to, PAGE);
		else if (!vv_digest_fits_copy(to, s->from, PAGE, s[1].digest ? s[1].from : s->from + PAGE, s->digest))
			return false;
	}
	return true;
}

static void copy_page(void *arg)
{
	struct page_map *m = arg;

	for (size_t i = 0; i < m->n_tables && m->left; i++)
		if (!set_table(m, m->table[i]))
			return;
	m->done = !m->left && copy(m);
}

/* An unreadable mapped file raises SIGBUS, memory that may not be written SIGSEGV. */
bool vv_newest_page_copy(const struct vv_open_layers *w, const struct vv_runs *const *table, size_t n, const struct vv_want *part)
{
	struct page_map m = { .warm = w, .table = table, .n_tables = n, .part = part, .n = (size_t)(part->len / PAGE), .left = (size_t)(part->len / PAGE) };

	m.page_source = part->len % PAGE ? NULL : vv_mem_new(m.n + SOON, sizeof(*m.page_source));
	if (!m.page_source || vv_write_protect_try_read(copy_page, &m) < 0)
		vv_err_clear();
	vv_mem_free(m.page_source);
	return m.done;
}
