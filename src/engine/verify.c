/* Every layer that a live epoch reaches is read from the first byte to the last. */
#include "engine/verify.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/layerio.h"
#include "engine/reach.h"
#include "engine/table.h"
#include <inttypes.h>

struct verifier {
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	vv_verify_tell tell;
	void *arg;
	const struct vv_progress *progress;
	struct vv_verify_report report;
	uint64_t total, done;
	pthread_mutex_t lock;
	/* the layer under way */
	struct vv_layerio *file;
	struct vv_err_state failure; /* of a block, other than damage */
};

/* Only damage is a problem to go on after; the rest ends the run. */
static int note(struct verifier *v, int rc)
{
	if (rc != VV_EDAMAGED && rc != VV_ENOENT && rc != VV_ENOTSUP)
		return rc;
	pthread_mutex_lock(&v->lock);
	v->report.problems++;
	if (v->tell)
		v->tell(v->arg, vv_err_last());
	pthread_mutex_unlock(&v->lock);
	return 0;
}

/* ---- one layer ---------------------------------------------------------------------------------------------------- */

/* The bytes of a decoded block at payload position pos, or NULL if the block does not hold all len of them. */
static const uint8_t *inside(const struct vv_blocks *b, size_t k, const uint8_t *raw, uint64_t pos, uint64_t len)
{
	for (size_t e = b->v[k].extent; e < b->v[k].extent + b->v[k].n_extents; e++) {
		const struct vv_extent *x = &b->extent.v[e];

		if (pos >= x->pos && pos + len <= x->pos + x->len)
			return raw + (pos - x->pos);
		raw += x->len;
	}
	return NULL;
}

/* Checks the digests of the chunks that lie in the block. One that spans two (only where chunks are larger than blocks) is
 * left to the checks of those. */
static int check_chunks(struct verifier *v, size_t k, const uint8_t *raw)
{
	const struct vv_digests *d = &v->file->digests;
	const struct vv_blocks *b = &v->file->blocks;
	const struct vv_extent *first = &b->extent.v[b->v[k].extent];
	const struct vv_extent *last = first + b->v[k].n_extents - 1;
	vv_digest_fn fn = vv_digest_of_kind(v->file->head.digest_kind);

	for (size_t g = 0; g < d->n_groups; g++) {
		const struct vv_digest_group *group = &d->group[g];
		uint64_t i = first->pos > group->pos ? (first->pos - group->pos) / group->chunk : 0;

		if (group->pos >= last->pos + last->len)
			break;
		for (; i < group->count && group->pos + i * group->chunk < last->pos + last->len; i++) {
			uint64_t pos = group->pos + i * group->chunk;
			const uint8_t *p = inside(b, k, raw, pos, group->chunk);
			struct vv_digest got;

			if (!p)
				continue;
			fn(p, group->chunk, &got);
			if (!vv_digest_equal(&got, &d->v[group->digest + i])) {
				vv_err_set(VV_EDAMAGED, "section DIGESTS: the chunk at position %" PRIu64 " has another digest",
					   pos);
				return vv_layerio_blame(v->file, VV_EDAMAGED);
			}
		}
	}
	return 0;
}

static void check_block(void *arg, size_t k)
{
	struct verifier *v = arg;
	const struct vv_block *b = &v->file->blocks.v[k];
	uint8_t *raw = vv_mem_new((size_t)b->raw_len + b->stored_len, 1);
	int rc = raw ? vv_layerio_read_block(v->file, k, raw, raw + b->raw_len) : VV_ENOMEM;

	if (rc == 0)
		rc = check_chunks(v, k, raw);
	vv_mem_free(raw);
	rc = note(v, rc);
	pthread_mutex_lock(&v->lock);
	if (rc && !v->failure.code)
		vv_err_save(rc, &v->failure);
	v->done += b->stored_len;
	vv_progress_tell(v->progress, v->done, v->total);
	pthread_mutex_unlock(&v->lock);
}

/* Invariant 2: what is referred to is there. */
static int check_needed(const struct vv_layerio *f, const struct vv_extents *need)
{
	for (size_t i = 0; i < need->n; i++)
		if (!vv_payload_extent_has(&f->blocks.extent, need->v[i].pos, need->v[i].len)) {
			vv_err_set(VV_EDAMAGED,
				   "section BLOCKS: positions %" PRIu64 "..%" PRIu64 " are referred to but not all there",
				   need->v[i].pos, need->v[i].pos + need->v[i].len);
			return vv_layerio_blame(f, VV_EDAMAGED);
		}
	return 0;
}

static int check_layer(struct verifier *v, const struct vv_reach_layer *l)
{
	int rc = vv_layerio_open(v->lin, l->layer, VV_LAYERIO_HEAD | VV_LAYERIO_BLOCKS | VV_LAYERIO_DIGESTS, &v->file);

	v->report.layers++;
	if (rc)
		return note(v, rc);
	v->report.blocks += v->file->blocks.n;
	v->report.bytes += v->file->get->size;
	rc = note(v, vv_layerio_check_header(v->file));
	if (rc == 0)
		rc = note(v, vv_layerio_check_sections(v->file));
	if (rc == 0)
		rc = note(v, check_needed(v->file, &l->need));
	if (rc == 0) {
		vv_pool_each(v->pool, v->file->blocks.n, check_block, v);
		rc = v->failure.code ? vv_err_restore(&v->failure) : 0;
	}
	vv_layerio_close(v->file);
	v->file = NULL;
	return rc;
}

/* ---- epochs ------------------------------------------------------------------------------------------------------- */

/* Invariant 1: each rank's runs cover its regions; and the record, the head and the file agree. */
static int check_rank(struct verifier *v, const struct vv_commit *c, uint32_t rank)
{
	struct vv_table t = { 0 };
	struct vv_layerio *f = NULL;
	int rc = vv_table_load(v->lin, c->epoch, rank, &t);

	vv_table_fini(&t);
	if (rc == 0)
		rc = vv_layerio_open(v->lin, vv_run_layer(c->epoch, rank), 0, &f);
	if (rc == 0 && (f->get->size > c->rank[rank].file_len || f->head.payload != c->rank[rank].payload ||
			f->head.ranks != c->n_ranks || (f->head.parent && f->head.parent != c->parent))) {
		vv_err_set(VV_EDAMAGED, "its length, payload, ranks or parent are not those of the commit record");
		rc = vv_layerio_blame(f, VV_EDAMAGED);
	}
	vv_layerio_close(f);
	return note(v, rc);
}

static int check_epoch(struct verifier *v, struct vv_reach *r, const struct vv_listing *live, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	size_t before = v->report.problems;
	int rc = vv_catalog_commit(v->lin, epoch, &c);

	v->report.epochs++;
	if (rc)
		return note(v, rc);
	for (uint32_t rank = 0; rc == 0 && rank < c.n_ranks; rank++)
		rc = check_rank(v, &c, rank);
	vv_commit_fini(&c);
	if (rc == 0 && v->report.problems == before)
		rc = note(v, vv_reach_add_epoch(r, live, epoch));
	return rc;
}

static int check_reached(struct verifier *v, struct vv_reach *r, bool all)
{
	int rc = vv_reach_settle(r);

	for (size_t i = 0; i < r->n; i++)
		v->total += r->v[i].chain || r->v[i].need.n ? r->v[i].size : 0;
	for (size_t i = 0; rc == 0 && i < r->n; i++) {
		if (r->v[i].chain || r->v[i].need.n)
			rc = check_layer(v, &r->v[i]);
		else if (all)
			v->report.orphans++;
	}
	return rc;
}

/* A layer that bears the number of a live epoch is reached even if its epoch is too damaged to say so. */
static void reach_own(struct vv_reach *r, uint64_t epoch)
{
	for (size_t i = 0; i < r->n; i++)
		if (vv_run_epoch(r->v[i].layer) == epoch)
			r->v[i].chain = true;
}

int vv_verify_run(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, vv_verify_tell tell, void *arg,
		  const struct vv_progress *progress, struct vv_verify_report *out)
{
	struct verifier v = { .lin = lin, .pool = pool, .tell = tell, .arg = arg, .progress = progress,
			      .lock = PTHREAD_MUTEX_INITIALIZER };
	struct vv_listing all = { 0 }, one = { .epoch = &epoch, .n_epochs = 1 };
	const struct vv_listing *live = epoch ? &one : &all;
	struct vv_reach r = { 0 };
	int rc = vv_catalog_list(lin, 0, &all);

	if (rc == 0)
		rc = vv_reach_init(&r, lin, &all);
	if (rc == 0 && lin->recovered) {
		vv_err_set(VV_EDAMAGED, "'%s/%s/lineage': the record is missing or damaged (the next writer restores it)",
			   lin->store->url, lin->name);
		note(&v, VV_EDAMAGED);
	}
	for (size_t i = 0; rc == 0 && i < live->n_epochs; i++) {
		rc = check_epoch(&v, &r, live, live->epoch[i]);
		reach_own(&r, live->epoch[i]);
	}
	if (rc == 0)
		rc = check_reached(&v, &r, epoch == 0);
	vv_reach_fini(&r);
	vv_catalog_listing_fini(&all);
	if (rc == 0)
		*out = v.report;
	return rc;
}
