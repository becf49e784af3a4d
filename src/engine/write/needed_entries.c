#include "engine/write/needed_entries.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "core/format/manifest.h"
#include <stdlib.h>
#include <string.h>

void vv_needed_entries_fini(struct vv_needed_entries *n)
{
	vv_mem_free(n->v);
	*n = (struct vv_needed_entries){ 0 };
}

int vv_needed_entries_add(struct vv_needed_entries *n, uint64_t layer, uint64_t pos, uint64_t len, uint32_t chunk)
{
	struct vv_need *last = n->n ? &n->v[n->n - 1] : NULL;

	if (last && last->layer == layer && last->end == pos && last->chunk == chunk && (!chunk || (last->end - last->pos) % chunk == 0)) {
		last->end += len;
		return 0;
	}
	if (vv_mem_room(&n->v, n->n, &n->cap, sizeof(*n->v)) < 0)
		return VV_ENOMEM;
	n->v[n->n++] = (struct vv_need){ .layer = layer, .pos = pos, .end = pos + len, .chunk = chunk };
	return 0;
}

/* Are its regions files? Those are cut by content, at unknown positions. */
static bool is_packed(const struct vv_run_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->region[i].name, VV_MANIFEST_REGION) == 0)
			return true;
	return false;
}

/* Only chunks within one run can be found. */
int vv_needed_entries_add_table(struct vv_needed_entries *n, const struct vv_run_table *t, uint32_t rank, const bool *left_out)
{
	bool packed = is_packed(t);
	int rc = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct vv_run_table_region *r = &t->region[i];
		uint64_t chunk = r->shape.chunk;

		for (size_t k = 0; rc == 0 && !(left_out && left_out[i]) && k < r->runs.n; k++) {
			const struct vv_run *run = &r->runs.v[k];
			uint64_t first = (run->at + chunk - 1) / chunk * chunk, end = run->at + run->len;

			end = end == r->shape.len ? end : end / chunk * chunk;
			if (!run->layer || vv_run_rank(run->layer) != rank)
				continue;
			if (packed)
				rc = vv_needed_entries_add(n, run->layer, run->pos, run->len, 0);
			else if (first < end)
				rc = vv_needed_entries_add(n, run->layer, run->pos + (first - run->at), end - first, (uint32_t)chunk);
		}
	}
	return rc;
}

static int by_place(const void *a, const void *b)
{
	const struct vv_need *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return (x->pos > y->pos) - (x->pos < y->pos);
}

void vv_needed_entries_sort(struct vv_needed_entries *n)
{
	if (n->n)
		qsort(n->v, n->n, sizeof(*n->v), by_place);
	for (size_t i = 0; i < n->n; i++) {
		struct vv_need *d = &n->v[i];

		d->reach = i && d[-1].layer == d->layer && d[-1].reach > d->end ? d[-1].reach : d->end;
	}
}

/* The last need that begins at or before the position; NULL if there is none in the layer. */
static const struct vv_need *find(const struct vv_needed_entries *n, uint64_t layer, uint64_t pos)
{
	size_t i;

	VV_SEARCH(i, 0, n->n, n->v[i].layer < layer || (n->v[i].layer == layer && n->v[i].pos <= pos));
	return i && n->v[i - 1].layer == layer ? &n->v[i - 1] : NULL;
}

bool vv_needed_entries_layer(const struct vv_needed_entries *n, uint64_t layer)
{
	return find(n, layer, UINT64_MAX) != NULL;
}

bool vv_needed_entries_chunk(const struct vv_needed_entries *n, uint64_t layer, uint64_t pos)
{
	const struct vv_need *d = find(n, layer, pos);

	return d && pos < d->reach;
}

/* The beginnings of chunks are unknown: if no entry of the layer begins before the need's end, the
 * index has dropped this part. */
static bool is_known(const struct vv_need *d, const struct vv_index *x, size_t entries)
{
	size_t i = vv_index_first(x, entries, d->layer, d->end);

	return i && vv_index_layer(x, (uint32_t)i - 1) == d->layer;
}

bool vv_needed_entries_are_in(const struct vv_needed_entries *n, const struct vv_index *x, size_t entries)
{
	uint32_t e = 0;

	for (size_t i = 0; i < n->n; i++) {
		if (!n->v[i].chunk && !is_known(&n->v[i], x, entries))
			return false;
		for (uint64_t pos = n->v[i].pos; n->v[i].chunk && pos < n->v[i].end; pos += n->v[i].chunk) {
			e = vv_index_near(x, entries, n->v[i].layer, pos, e);
			if (e++ == VV_INDEX_NONE)
				return false;
		}
	}
	return true;
}
