#include "engine/read/block_map.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/read/read_many.h"
#include "engine/read/layer_list.h"
#include <stdlib.h>

enum { LAYERS = 256 }; /* limit of layers that stay open */

const struct vv_block_map_part *vv_block_map_find(const struct vv_block_map_region *r, uint64_t at)
{
	size_t i;

	VV_SEARCH(i, 1, r->n, r->v[i].at <= at);
	return r->n ? &r->v[i - 1] : NULL;
}

static struct vv_block_map_layer *find_layer(const struct vv_block_map *s, uint64_t layer)
{
	size_t i;

	VV_SEARCH(i, 1, s->n_layers, s->layer[i].layer <= layer);
	return &s->layer[i - 1];
}

static int add_cut(struct vv_block_map_region *r, uint64_t at, uint64_t len, uint64_t from, size_t block)
{
	if (vv_mem_room(&r->v, r->n, &r->cap, sizeof(*r->v)) < 0)
		return VV_ENOMEM;
	r->v[r->n++] = (struct vv_block_map_part){ at, (uint32_t)len, (uint32_t)from, (uint32_t)block };
	return 0;
}

static int cut_zeros(struct vv_block_map_region *r, const struct vv_run *run)
{
	int rc = 0;

	for (uint64_t done = 0, len; rc == 0 && done < run->len; done += len) {
		len = run->len - done < INT32_MAX ? run->len - done : INT32_MAX;
		rc = add_cut(r, run->at + done, len, 0, VV_BLOCK_MAP_ZEROS);
	}
	return rc;
}

static int cut_run(struct vv_block_map *s, struct vv_block_map_region *r, const struct vv_run *run, struct vv_payload_cursor *cursor)
{
	const struct vv_block_map_layer *l = find_layer(s, run->layer);
	struct vv_payload_cursor *c = &cursor[l - s->layer];
	int rc = 0;

	for (uint64_t done = 0; rc == 0 && done < run->len;) {
		uint32_t from;
		int64_t n = vv_layer_file_locate(l->file, run->pos + done, run->len - done, c, &from);

		if (n < 0)
			return (int)n;
		s->used[l->first + c->block] += (uint64_t)n;
		rc = add_cut(r, run->at + done, (uint64_t)n, from, l->first + c->block);
		done += (uint64_t)n;
	}
	return rc;
}

static int cut_region(struct vv_block_map *s, struct vv_block_map_region *r, const struct vv_runs *runs, struct vv_payload_cursor *cursor)
{
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < runs->n; k++) {
		const struct vv_run *run = &runs->v[k];

		rc = run->layer ? cut_run(s, r, run, cursor) : cut_zeros(r, run);
	}
	return rc;
}

static int by_number(const void *a, const void *b)
{
	const struct vv_layer_list_layer *x = a, *y = b;

	return (x->layer > y->layer) - (x->layer < y->layer);
}

static int list_layers(struct vv_block_map *s, const struct vv_runs *const *runs, size_t n)
{
	struct vv_want *want = vv_mem_new(n, sizeof(*want));
	struct vv_layer_list l = { 0 };
	int rc = want ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++)
		want[i] = (struct vv_want){ .runs = runs[i], .len = UINT64_MAX };
	if (rc == 0)
		rc = vv_layer_list_find(&l, NULL, want, n);
	if (rc == 0 && l.n)
		qsort(l.v, l.n, sizeof(*l.v), by_number);
	s->layer = rc ? NULL : vv_mem_new(l.n, sizeof(*s->layer));
	rc = rc ? rc : s->layer ? 0 : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < l.n; i++)
		s->layer[s->n_layers++].layer = l.v[i].layer;
	vv_layer_list_fini(&l);
	vv_mem_free(want);
	return rc;
}

static int open_layers(struct vv_block_map *s, const struct vv_lineage *lin)
{
	size_t most = vv_read_many_files(LAYERS, 2); /* its own, and one of its bases */
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n_layers; i++) {
		struct vv_block_map_layer *l = &s->layer[i];

		rc = vv_layer_file_open(lin, l->layer, VV_LAYER_FILE_BLOCKS, &l->file);
		if (rc)
			break;
		if (i >= most)
			vv_layer_file_release(l->file);
		l->first = s->n_blocks;
		s->n_blocks += l->file->blocks.n;
	}
	return rc ? rc : s->n_blocks < VV_BLOCK_MAP_ZEROS ? 0 : vv_err_set(VV_EINVAL, "%zu blocks are more than can be read side by side", s->n_blocks);
}

static int cut_regions(struct vv_block_map *s, const struct vv_runs *const *runs, size_t n)
{
	struct vv_payload_cursor *cursor = vv_mem_new(s->n_layers, sizeof(*cursor));
	int rc = cursor ? 0 : VV_ENOMEM;

	s->region = rc ? NULL : vv_mem_new(n, sizeof(*s->region));
	rc = rc ? rc : s->region ? 0 : VV_ENOMEM;
	for (; rc == 0 && s->n_regions < n; s->n_regions++)
		rc = cut_region(s, &s->region[s->n_regions], runs[s->n_regions], cursor);
	vv_mem_free(cursor);
	return rc;
}

int vv_block_map_open(const struct vv_lineage *lin, const struct vv_runs *const *runs, size_t n, struct vv_block_map *out)
{
	int rc;

	*out = (struct vv_block_map){ 0 };
	rc = list_layers(out, runs, n);
	if (rc == 0)
		rc = open_layers(out, lin);
	out->used = rc ? NULL : vv_mem_new(out->n_blocks, sizeof(*out->used));
	rc = rc ? rc : out->used ? cut_regions(out, runs, n) : VV_ENOMEM;
	if (rc)
		vv_block_map_close(out);
	return rc;
}

void vv_block_map_close(struct vv_block_map *c)
{
	for (size_t i = 0; i < c->n_layers; i++)
		vv_layer_file_close(c->layer[i].file);
	for (size_t i = 0; c->region && i < c->n_regions; i++)
		vv_mem_free(c->region[i].v);
	vv_mem_free(c->layer);
	vv_mem_free(c->region);
	vv_mem_free(c->used);
	*c = (struct vv_block_map){ 0 };
}
