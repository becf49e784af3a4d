/* Sorts the runs of the newest epoch by the layers that they refer to. Then it finds the blocks
 * that contain them, and the codecs of these blocks. */
#include "cli/report/report_restore.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/report/report.h"
#include <stdlib.h>
#include <string.h>

/* layers whose blocks are counted; each rank has its own count, because it reads them separately */
enum { OPENED = 1 << 14 };

struct report_restore_piece { /* a run of some region */
	uint64_t layer, pos, len;
	size_t region;
};

struct pieces {
	struct report_restore_piece *v;
	size_t n;
};

void vv_report_restore_fini(struct vv_report_restore *r)
{
	for (size_t i = 0; i < r->n_regions; i++)
		vv_mem_free(r->region[i].name);
	vv_mem_free(r->region);
	vv_mem_free(r->source);
	vv_map_fini(&r->by_name);
	vv_show_files_fini(&r->files);
	*r = (struct vv_report_restore){ 0 };
}

static int region_of(struct vv_report_restore *r, const struct vv_run_table_region *t, size_t *out)
{
	size_t i = vv_map_get(&r->by_name, t->name);
	int rc = 0;

	if (i == VV_MAP_NONE) {
		struct vv_report_region new = { .shape = t->shape };

		rc = vv_mem_room(&r->region, r->n_regions, &r->regions_cap, sizeof(*r->region));
		new.name = rc ? NULL : vv_mem_strdup(t->name);
		if (rc == 0)
			rc = new.name ? vv_map_put(&r->by_name, new.name, r->n_regions) : VV_ENOMEM;
		if (rc) {
			vv_mem_free(new.name);
			return rc;
		}
		i = r->n_regions++;
		r->region[i] = new;
	}
	r->region[i].differs |= !vv_head_same_shape(&r->region[i].shape, &t->shape);
	r->region[i].ranks++;
	r->region[i].bytes += t->shape.len;
	r->region[i].runs += t->runs.n;
	*out = i;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct report_restore_piece *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return (x->pos > y->pos) - (x->pos < y->pos);
}

static int collect(struct vv_report_restore *r, const struct vv_run_table *t, struct pieces *p)
{
	size_t runs = 0, region = 0;
	int rc = 0;

	for (size_t i = 0; i < t->n; i++)
		runs += t->region[i].runs.n;
	p->v = vv_mem_new(runs, sizeof(*p->v));
	if (!p->v)
		return VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < t->n; i++) {
		rc = region_of(r, &t->region[i], &region);
		for (size_t k = 0; rc == 0 && k < t->region[i].runs.n; k++) {
			const struct vv_run *run = &t->region[i].runs.v[k];

			if (run->layer) {
				p->v[p->n++] = (struct report_restore_piece){ run->layer, run->pos, run->len, region };
			} else {
				r->zero += run->len;
				r->region[region].zero += run->len;
			}
		}
	}
	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), by_place);
	return rc;
}

static int source_of(struct vv_report_restore *r, uint64_t epoch, struct vv_report_source **out)
{
	size_t i = r->n_sources;
	int rc;

	while (i > 0 && r->source[i - 1].epoch > epoch)
		i--;
	if (i == 0 || r->source[i - 1].epoch != epoch) {
		rc = vv_mem_room(&r->source, r->n_sources, &r->sources_cap, sizeof(*r->source));
		if (rc)
			return rc;
		memmove(r->source + i + 1, r->source + i, (r->n_sources - i) * sizeof(*r->source));
		r->source[i] = (struct vv_report_source){ .epoch = epoch };
		r->n_sources++;
		i++;
	}
	*out = &r->source[i - 1];
	return 0;
}

/* Codecs that do not fit into the list are counted with its last one. */
static size_t codec_of(struct vv_report_restore *r, uint32_t codec)
{
	for (size_t i = 0; i < r->n_codecs; i++)
		if (r->codec[i].codec == codec)
			return i;
	if (r->n_codecs == VV_REPORT_CODECS)
		return VV_REPORT_CODECS - 1;
	r->codec[r->n_codecs].codec = codec;
	return r->n_codecs++;
}

/* Counts one layer: p[0..n) are all the pieces in it. */
static void count_blocks(struct vv_report_restore *r, struct vv_report_source *s, const struct vv_blocks *b,
			 const struct report_restore_piece *p, size_t n)
{
	size_t next = 0; /* blocks before it are counted; pieces ascend */

	for (size_t i = 0; i < n; i++)
		for (uint64_t at = p[i].pos, end = p[i].pos + p[i].len; at < end;) {
			size_t block = vv_payload_block_find(b, at), e = vv_payload_extent_find(&b->extent, at), codec;
			uint64_t stop;

			if (block >= b->n || e >= b->extent.n)
				break; /* a hole: verify reports it */
			stop = b->extent.v[e].pos + b->extent.v[e].len;
			stop = stop < end ? stop : end;
			codec = codec_of(r, b->v[block].codec);
			r->region[p[i].region].from[codec] += stop - at;
			if (block >= next) {
				s->blocks++;
				s->read += b->v[block].stored_len;
				r->codec[codec].blocks++;
				r->codec[codec].raw += b->v[block].raw_len;
				r->codec[codec].stored += b->v[block].stored_len;
			}
			next = block >= next ? block + 1 : next;
			at = stop;
		}
}

/* A damaged layer, or one on another host, is left out of the counts. */
static int count_layer(struct vv_report_restore *r, const struct vv_lineage *lin, const struct report_restore_piece *p, size_t n)
{
	struct vv_report_source *s = NULL;
	struct vv_layer_file *f = NULL;
	int rc = source_of(r, vv_run_epoch(p->layer), &s);

	if (rc)
		return rc;
	s->layers++;
	for (size_t i = 0; i < n; i++)
		s->bytes += p[i].len;
	if (r->opened >= OPENED) {
		r->partial = true;
		return 0;
	}
	r->opened++;
	rc = vv_layer_file_open(lin, p->layer, VV_LAYER_FILE_BLOCKS, &f);
	if (rc == 0)
		count_blocks(r, s, &f->blocks, p, n);
	else if (rc == VV_ENOMEM)
		return rc;
	r->partial |= rc != 0;
	vv_layer_file_close(f);
	vv_err_clear();
	return 0;
}

static int count_layers(struct vv_report_restore *r, const struct vv_lineage *lin, const struct pieces *p)
{
	int rc = 0;

	for (size_t i = 0, k; rc == 0 && i < p->n; i = k) {
		for (k = i; k < p->n && p->v[k].layer == p->v[i].layer; k++)
			;
		rc = count_layer(r, lin, &p->v[i], k - i);
	}
	return rc;
}

int vv_report_restore_add(struct vv_report_restore *r, struct vv_verb_context *job, const struct vv_lineage *lin,
			  const struct vv_commit *c, uint32_t rank)
{
	struct pieces p = { 0 };
	struct vv_run_table t = { 0 };
	int rc = vv_run_table_load(lin, c->epoch, rank, &(struct vv_run_table_how){ .pool = job->pool, .commit = c }, &t);

	r->epoch = c->epoch;
	r->ranks++;
	if (rc)
		return rc;
	r->heads += t.layers;
	rc = collect(r, &t, &p);
	if (rc == 0)
		rc = count_layers(r, lin, &p);
	if (rc == 0)
		rc = vv_show_files_add(&r->files, job, lin, &t);
	vv_mem_free(p.v);
	vv_run_table_fini(&t);
	return rc;
}

static int by_size(const void *a, const void *b)
{
	const struct vv_report_region *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->name, y->name);
}

void vv_report_restore_finish(struct vv_report_restore *r)
{
	if (r->n_regions)
		qsort(r->region, r->n_regions, sizeof(*r->region), by_size);
	vv_map_clear(&r->by_name);
}
