/* wants -> pieces (one per run) -> sorted by layer -> cut at block borders and grouped by block -> one job per block.
 * A block that is stored as it is and goes to one place is read straight into it. */
#include "engine/restore.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "engine/layerio.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	LAYERS_AT_ONCE = 128,      /* open files */
	ZERO_STEP = 8 << 20,
};

struct piece {
	uint64_t layer;
	uint64_t pos;
	uint64_t len;
	uint8_t *to;
};

struct pieces {
	struct piece *v;
	size_t n, cap;
};

/* A stretch of one decoded block. */
struct copy {
	uint32_t from, len;
	uint8_t *to;
};

struct job {
	struct vv_layerio *file;
	size_t block;
	struct copy *copy;
	size_t n;
};

struct scratch {
	struct scratch *next;
	size_t size;
	uint8_t bytes[];
};

struct reader {
	struct job *job;
	size_t n_jobs, jobs_cap;
	atomic_int failed;
	pthread_mutex_t lock;
	struct vv_err_state error;
	struct scratch *free; /* buffers between jobs */
};

static int add_piece(struct pieces *p, struct piece piece)
{
	if (vv_mem_room(&p->v, p->n, &p->cap, sizeof(*p->v)) < 0)
		return VV_ENOMEM;
	p->v[p->n++] = piece;
	return 0;
}

static int cut_want(const struct vv_want *w, struct pieces *out)
{
	uint64_t end = w->at + w->len;
	int rc = 0;

	for (size_t i = vv_run_find(w->runs, w->at); rc == 0 && i < w->runs->n && w->runs->v[i].at < end; i++) {
		const struct vv_run *r = &w->runs->v[i];
		uint64_t from = r->at > w->at ? r->at : w->at;
		uint64_t to = r->at + r->len < end ? r->at + r->len : end;

		rc = add_piece(out, (struct piece){ r->layer, r->layer ? r->pos + (from - r->at) : 0, to - from,
						    w->to + (from - w->at) });
	}
	return rc;
}

static int by_place(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return (x->pos > y->pos) - (x->pos < y->pos);
}

/* Payloads are laid down in region order, so the pieces are often in order already. */
static void sort_pieces(struct pieces *p)
{
	for (size_t i = 1; i < p->n; i++)
		if (by_place(&p->v[i - 1], &p->v[i]) > 0) {
			qsort(p->v, p->n, sizeof(*p->v), by_place);
			return;
		}
}

static void fail(struct reader *r, int rc)
{
	pthread_mutex_lock(&r->lock);
	if (!atomic_load(&r->failed))
		vv_err_save(rc, &r->error);
	atomic_store(&r->failed, 1);
	pthread_mutex_unlock(&r->lock);
}

static struct scratch *take_scratch(struct reader *r, size_t size)
{
	struct scratch *s;

	pthread_mutex_lock(&r->lock);
	s = r->free;
	if (s)
		r->free = s->next;
	pthread_mutex_unlock(&r->lock);
	if (s && s->size >= size)
		return s;
	vv_mem_free(s);
	s = vv_mem_new(1, sizeof(*s) + size);
	if (s)
		s->size = size;
	return s;
}

static void give_scratch(struct reader *r, struct scratch *s)
{
	pthread_mutex_lock(&r->lock);
	s->next = r->free;
	r->free = s;
	pthread_mutex_unlock(&r->lock);
}

/* A plain block in steps, each checked while it is in the cache. */
static int read_steps(struct vv_layerio *f, const struct vv_block *b, uint8_t *to, uint64_t *got)
{
	size_t step = f->get->store->read_step ? f->get->store->read_step : b->raw_len;
	struct vv_digest_stream check;
	int rc = 0;

	vv_digest_stream_init(&check);
	for (size_t at = 0; rc == 0 && at < b->raw_len; at += step) {
		size_t n = b->raw_len - at < step ? b->raw_len - at : step;

		rc = vv_store_get_read(f->get, b->off + at, to + at, n);
		if (rc == 0)
			vv_digest_stream_add(&check, to + at, n);
	}
	*got = vv_digest_stream_check(&check);
	return rc;
}

/* The whole of a plain block to one place, without a copy of our own. What is in the page cache is taken from the mapped
 * file, checked on the way; a mapping is touched only where no read can fail behind it. */
static int read_straight(struct vv_layerio *f, size_t block, uint8_t *to)
{
	const struct vv_block *b = &f->blocks.v[block];
	const uint8_t *map = f->get->map ? f->get->map + b->off : NULL;
	uint64_t got = 0;
	int rc = 0;

	if (map && vv_fs_resident(map, b->raw_len))
		got = vv_digest_check_copy(to, map, b->raw_len);
	else
		rc = read_steps(f, b, to, &got);
	if (rc == 0 && got != b->check) {
		vv_err_set(VV_EDAMAGED, "block %zu at offset %" PRIu64 ": check differs", block, b->off);
		rc = vv_layerio_blame(f, VV_EDAMAGED);
	}
	return rc;
}

static int read_scattered(struct reader *r, const struct job *j)
{
	const struct vv_block *b = &j->file->blocks.v[j->block];
	size_t coded = b->codec ? b->stored_len : 0;
	struct scratch *s = take_scratch(r, (size_t)b->raw_len + coded);
	int rc;

	if (!s)
		return VV_ENOMEM;
	rc = vv_layerio_read_block(j->file, j->block, s->bytes, s->bytes + b->raw_len);
	for (size_t i = 0; rc == 0 && i < j->n; i++)
		memcpy(j->copy[i].to, s->bytes + j->copy[i].from, j->copy[i].len);
	give_scratch(r, s);
	return rc;
}

static void run_job(void *arg, size_t i)
{
	struct reader *r = arg;
	struct job *j = &r->job[i];
	const struct vv_block *b = &j->file->blocks.v[j->block];
	int rc;

	if (atomic_load(&r->failed))
		return;
	if (b->codec == 0 && j->n == 1 && j->copy[0].from == 0 && j->copy[0].len == b->raw_len)
		rc = read_straight(j->file, j->block, j->copy[0].to);
	else
		rc = read_scattered(r, j);
	if (rc)
		fail(r, rc);
}

/* Where a position lies: block, offset in the decoded block, and how many bytes follow without a break. */
static int locate(const struct vv_layerio *f, uint64_t pos, size_t *block, uint64_t *from, uint64_t *run)
{
	const struct vv_blocks *b = &f->blocks;
	size_t k = vv_payload_block_find(b, pos);
	uint64_t before = 0;

	if (k == b->n) {
		vv_err_set(VV_EDAMAGED, "position %" PRIu64 " is referred to, but is in no block", pos);
		return vv_layerio_blame(f, VV_EDAMAGED);
	}
	for (size_t e = b->v[k].extent;; e++) {
		const struct vv_extent *x = &b->extent.v[e];

		if (pos < x->pos + x->len) {
			*block = k;
			*from = before + (pos - x->pos);
			*run = x->pos + x->len - pos;
			return 0;
		}
		before += x->len;
	}
}

struct cut { /* a copy with the block it belongs to, before they are grouped */
	struct copy copy;
	size_t block;
};

struct cuts {
	struct cut *v;
	size_t n, cap;
};

static int add_cut(struct cuts *c, size_t block, struct copy copy)
{
	if (vv_mem_room(&c->v, c->n, &c->cap, sizeof(*c->v)) < 0)
		return VV_ENOMEM;
	c->v[c->n++] = (struct cut){ copy, block };
	return 0;
}

static int cut_pieces(const struct vv_layerio *f, const struct piece *p, size_t n, struct cuts *out)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t done = 0;

		while (done < p[i].len) {
			size_t block = 0;
			uint64_t from = 0, run = 0, len = p[i].len - done;
			int rc = locate(f, p[i].pos + done, &block, &from, &run);

			if (rc)
				return rc;
			len = len < run ? len : run;
			rc = add_cut(out, block, (struct copy){ (uint32_t)from, (uint32_t)len, p[i].to + done });
			if (rc)
				return rc;
			done += len;
		}
	}
	return 0;
}

static int add_job(struct reader *r, struct job job)
{
	if (vv_mem_room(&r->job, r->n_jobs, &r->jobs_cap, sizeof(*r->job)) < 0)
		return VV_ENOMEM;
	r->job[r->n_jobs++] = job;
	return 0;
}

/* Groups the cuts by block (a counting sort) and adds a job per block; the copies end up in *own. */
static int plan_layer(struct reader *r, struct vv_layerio *f, const struct piece *p, size_t n, struct copy **own)
{
	struct cuts c = { 0 };
	size_t *start = NULL;
	struct copy *sorted = NULL;
	int rc = cut_pieces(f, p, n, &c);

	if (rc == 0) {
		start = vv_mem_new(f->blocks.n + 2, sizeof(*start));
		sorted = start ? vv_mem_new(c.n, sizeof(*sorted)) : NULL;
		rc = sorted ? 0 : VV_ENOMEM;
	}
	for (size_t i = 0; rc == 0 && i < c.n; i++)
		start[c.v[i].block + 2]++;
	for (size_t b = 2; rc == 0 && b < f->blocks.n + 2; b++)
		start[b] += start[b - 1];
	for (size_t i = 0; rc == 0 && i < c.n; i++)
		sorted[start[c.v[i].block + 1]++] = c.v[i].copy;
	for (size_t b = 0; rc == 0 && b < f->blocks.n; b++)
		if (start[b + 1] > start[b])
			rc = add_job(r, (struct job){ f, b, sorted + start[b], start[b + 1] - start[b] });
	*own = sorted;
	vv_mem_free(start);
	vv_mem_free(c.v);
	return rc;
}

struct batch { /* layers that are open together */
	const struct vv_lineage *lin;
	struct reader *reader;
	size_t n;
	uint64_t layer[LAYERS_AT_ONCE];
	const struct piece *piece[LAYERS_AT_ONCE];
	size_t n_pieces[LAYERS_AT_ONCE];
	struct vv_layerio *file[LAYERS_AT_ONCE];
	struct copy *copy[LAYERS_AT_ONCE];
};

static void open_one(void *arg, size_t i)
{
	struct batch *b = arg;
	int rc;

	if (atomic_load(&b->reader->failed))
		return;
	rc = vv_layerio_open(b->lin, b->layer[i], VV_LAYERIO_BLOCKS, &b->file[i]);
	if (rc)
		fail(b->reader, rc);
}

static int run_batch(struct batch *b, struct vv_pool *pool)
{
	struct reader *r = b->reader;
	int rc = 0;

	vv_pool_each(pool, b->n, open_one, b);
	r->n_jobs = 0;
	for (size_t i = 0; rc == 0 && i < b->n && !atomic_load(&r->failed); i++)
		rc = plan_layer(r, b->file[i], b->piece[i], b->n_pieces[i], &b->copy[i]);
	if (rc)
		fail(r, rc);
	else if (!atomic_load(&r->failed))
		vv_pool_each(pool, r->n_jobs, run_job, r);
	for (size_t i = 0; i < b->n; i++) {
		vv_layerio_close(b->file[i]);
		vv_mem_free(b->copy[i]);
		b->file[i] = NULL;
		b->copy[i] = NULL;
	}
	b->n = 0;
	return atomic_load(&r->failed) ? vv_err_restore(&r->error) : 0;
}

struct zeros {
	uint8_t *to;
	uint64_t len;
};

static void zero_step(void *arg, size_t i)
{
	struct zeros *z = arg;
	uint64_t at = (uint64_t)i * ZERO_STEP;

	memset(z->to + at, 0, z->len - at < ZERO_STEP ? (size_t)(z->len - at) : ZERO_STEP);
}

/* Zero runs have layer 0 and come first. */
static size_t fill_zeros(const struct pieces *p, struct vv_pool *pool)
{
	size_t i = 0;

	for (; i < p->n && p->v[i].layer == 0; i++) {
		struct zeros z = { p->v[i].to, p->v[i].len };

		vv_pool_each(pool, (size_t)((z.len + ZERO_STEP - 1) / ZERO_STEP), zero_step, &z);
	}
	return i;
}

static int read_pieces(const struct vv_lineage *lin, struct vv_pool *pool, const struct pieces *p, struct reader *r)
{
	struct batch *b = vv_mem_new(1, sizeof(*b));
	size_t i = fill_zeros(p, pool);
	int rc = b ? 0 : VV_ENOMEM;

	if (b) {
		b->lin = lin;
		b->reader = r;
	}
	while (rc == 0 && i < p->n) {
		size_t first = i;

		while (i < p->n && p->v[i].layer == p->v[first].layer)
			i++;
		b->layer[b->n] = p->v[first].layer;
		b->piece[b->n] = &p->v[first];
		b->n_pieces[b->n++] = i - first;
		if (b->n == LAYERS_AT_ONCE || i == p->n)
			rc = run_batch(b, pool);
	}
	vv_mem_free(b);
	return rc;
}

int vv_restore_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_want *want, size_t n)
{
	struct reader r = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct pieces p = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = cut_want(&want[i], &p);
	if (rc == 0) {
		sort_pieces(&p);
		rc = read_pieces(lin, pool, &p, &r);
	}
	while (r.free) {
		struct scratch *s = r.free;

		r.free = s->next;
		vv_mem_free(s);
	}
	vv_mem_free(r.job);
	vv_mem_free(p.v);
	return rc;
}
