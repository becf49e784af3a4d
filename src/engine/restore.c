/* wants -> pieces (one per run), sorted by layer -> cut at block borders and grouped by block -> one job per block. */
#include "engine/restore.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/layerio.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	LAYERS_AT_ONCE = 128, /* open files */
	ZERO_STEP = 8 << 20,
	DIGIT = 256,
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

struct job {
	struct vv_layerio *file;
	size_t block;
	struct vv_part *part;
	size_t n;
};

struct jobs {
	struct job *v;
	size_t n, cap;
};

struct scratch {
	struct scratch *next;
	size_t size;
	uint8_t bytes[];
};

struct reader {
	struct jobs jobs;
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

/* One pass of a radix sort by layer, stable: by the eight bits from `shift` on. */
static void sort_digit(const struct pieces *from, unsigned shift, struct piece *to)
{
	size_t start[DIGIT + 1] = { 0 };

	for (size_t i = 0; i < from->n; i++)
		start[(from->v[i].layer >> shift) % DIGIT + 1]++;
	for (size_t d = 1; d < DIGIT; d++)
		start[d] += start[d - 1];
	for (size_t i = 0; i < from->n; i++)
		to[start[(from->v[i].layer >> shift) % DIGIT]++] = from->v[i];
}

/* By layer. A few dozen layers differ in a few bits, so this is one pass or two. */
static int sort_pieces(struct pieces *p)
{
	uint64_t differ = 0;
	bool sorted = true;

	for (size_t i = 1; i < p->n; i++) {
		differ |= p->v[i].layer ^ p->v[i - 1].layer;
		sorted &= p->v[i].layer >= p->v[i - 1].layer;
	}
	while (!sorted && differ) {
		unsigned shift = (unsigned)__builtin_ctzll(differ);
		struct piece *to = vv_mem_new(p->n, sizeof(*to));

		if (!to)
			return VV_ENOMEM;
		sort_digit(p, shift, to);
		vv_mem_free(p->v);
		p->v = to;
		differ &= ~((uint64_t)(DIGIT - 1) << shift);
	}
	return 0;
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

static int by_from(const void *a, const void *b)
{
	const struct vv_part *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* Payloads are often laid down in region order, so the parts are often in order already. */
static void sort_parts(struct vv_part *part, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (part[i - 1].from > part[i].from) {
			qsort(part, n, sizeof(*part), by_from);
			return;
		}
}

static void run_job(void *arg, size_t i)
{
	struct reader *r = arg;
	struct job *j = &r->jobs.v[i];
	const struct vv_block *b = &j->file->blocks.v[j->block];
	struct scratch *s;
	int rc;

	if (atomic_load(&r->failed))
		return;
	s = take_scratch(r, (size_t)b->raw_len + (b->codec ? b->stored_len : 0));
	if (!s) {
		fail(r, VV_ENOMEM);
		return;
	}
	sort_parts(j->part, j->n);
	rc = vv_layerio_read_parts(j->file, j->block, j->part, j->n, s->bytes);
	give_scratch(r, s);
	if (rc)
		fail(r, rc);
}

struct cursor { /* the extent that was looked at last, and how much of its block lies before it */
	size_t block, extent;
	uint64_t before;
};

static int nowhere(const struct vv_layerio *f, uint64_t pos)
{
	vv_err_set(VV_EDAMAGED, "position %" PRIu64 " is referred to, but is in no block", pos);
	return vv_layerio_blame(f, VV_EDAMAGED);
}

/* Puts the cursor on the extent that holds pos. It is mostly the same as for the piece before, or one behind it. */
static int locate(const struct vv_layerio *f, uint64_t pos, struct cursor *c)
{
	const struct vv_blocks *b = &f->blocks;
	const struct vv_extent *x = &b->extent.v[c->extent];

	while (pos >= x->pos + x->len && c->extent + 1 < b->v[c->block].extent + b->v[c->block].n_extents) {
		c->before += x->len;
		x = &b->extent.v[++c->extent];
	}
	if (pos >= x->pos && pos < x->pos + x->len)
		return 0;
	c->block = vv_payload_block_find(b, pos);
	if (c->block == b->n)
		return nowhere(f, pos);
	c->before = 0;
	for (c->extent = b->v[c->block].extent;; c->extent++) {
		x = &b->extent.v[c->extent];
		if (pos < x->pos + x->len)
			return 0;
		c->before += x->len;
	}
}

struct cut { /* a part with the block it belongs to, before they are grouped */
	struct vv_part part;
	size_t block;
};

struct cuts {
	struct cut *v;
	size_t n, cap;
};

static int cut_piece(const struct vv_layerio *f, const struct piece *p, struct cursor *c, struct cuts *out)
{
	uint64_t done = 0;

	while (done < p->len) {
		uint64_t pos = p->pos + done, len = p->len - done, from;
		const struct vv_extent *x;
		int rc = locate(f, pos, c);

		if (rc)
			return rc;
		x = &f->blocks.extent.v[c->extent];
		from = c->before + (pos - x->pos);
		len = len < x->pos + x->len - pos ? len : x->pos + x->len - pos;
		if (vv_mem_room(&out->v, out->n, &out->cap, sizeof(*out->v)) < 0)
			return VV_ENOMEM;
		out->v[out->n++] =
			(struct cut){ { pos, p->to + done, (uint32_t)from, (uint32_t)len }, c->block };
		done += len;
	}
	return 0;
}

/* A layer that bytes come from. */
struct source {
	uint64_t layer;
	const struct piece *piece;
	size_t n_pieces;
	struct vv_layerio *file;
	struct vv_part *part; /* by block */
	size_t *end;          /* block b has those from end[b - 1] to end[b] */
};

static int cut_pieces(struct source *s, struct cuts *out)
{
	const struct vv_layerio *f = s->file;
	struct cursor c = { 0 };
	int rc = 0;

	if (f->blocks.n == 0)
		return nowhere(f, s->piece[0].pos);
	for (size_t i = 0; rc == 0 && i < s->n_pieces; i++)
		rc = cut_piece(f, &s->piece[i], &c, out);
	return rc;
}

/* Groups what is read of the layer by block: a counting sort. */
static int plan_source(struct source *s)
{
	size_t n = s->file->blocks.n;
	struct cuts c = { 0 };
	int rc = cut_pieces(s, &c);

	if (rc == 0) {
		s->end = vv_mem_new(n + 2, sizeof(*s->end));
		s->part = s->end ? vv_mem_new(c.n, sizeof(*s->part)) : NULL;
		rc = s->part ? 0 : VV_ENOMEM;
	}
	for (size_t i = 0; rc == 0 && i < c.n; i++)
		s->end[c.v[i].block + 1]++;
	for (size_t b = 1; rc == 0 && b < n; b++)
		s->end[b] += s->end[b - 1];
	for (size_t i = 0; rc == 0 && i < c.n; i++)
		s->part[s->end[c.v[i].block]++] = c.v[i].part;
	vv_mem_free(c.v);
	return rc;
}

/* Bytes of plain blocks that are not used, and need not be looked at if the chunks' own digests are known. */
static uint64_t count_unused(const struct source *s)
{
	const struct vv_blocks *b = &s->file->blocks;
	uint64_t sum = 0;

	for (size_t i = 0, k = 0; i < b->n; i++) {
		uint64_t used = 0;

		for (; k < s->end[i]; k++)
			used += s->part[k].len;
		if (b->v[i].codec == 0 && used && used < b->v[i].raw_len)
			sum += b->v[i].raw_len - used;
	}
	return sum;
}

/* Digests are worth reading where they save more. If they are damaged the blocks may still be whole. */
static int want_digests(struct source *s)
{
	uint64_t len = vv_layer_section(&s->file->frame, VV_SECTION_DIGESTS)->len;
	int rc = 0;

	if (s->file->head.digest_kind == VV_DIGEST_XXH3 && count_unused(s) > 2 * len)
		rc = vv_layerio_load_digests(s->file);
	if (rc && rc != VV_ENOMEM) {
		vv_err_clear();
		rc = 0;
	}
	return rc;
}

struct batch { /* layers that are open together */
	const struct vv_lineage *lin;
	struct reader *reader;
	size_t n;
	struct source source[LAYERS_AT_ONCE];
};

static void open_one(void *arg, size_t i)
{
	struct batch *b = arg;
	struct source *s = &b->source[i];
	int rc;

	if (atomic_load(&b->reader->failed))
		return;
	rc = vv_layerio_open(b->lin, s->layer, VV_LAYERIO_BLOCKS, &s->file);
	if (rc == 0)
		rc = plan_source(s);
	if (rc == 0)
		rc = want_digests(s);
	if (rc)
		fail(b->reader, rc);
}

static int add_jobs(struct jobs *j, const struct source *s)
{
	for (size_t b = 0, first = 0; b < s->file->blocks.n; first = s->end[b++]) {
		if (s->end[b] == first)
			continue;
		if (vv_mem_room(&j->v, j->n, &j->cap, sizeof(*j->v)) < 0)
			return VV_ENOMEM;
		j->v[j->n++] = (struct job){ s->file, b, s->part + first, s->end[b] - first };
	}
	return 0;
}

/* Taking a large mapping down takes its time, so this is done on all cores as well. */
static void close_one(void *arg, size_t i)
{
	struct source *s = &((struct batch *)arg)->source[i];

	vv_layerio_close(s->file);
	vv_mem_free(s->part);
	vv_mem_free(s->end);
	*s = (struct source){ 0 };
}

static int run_batch(struct batch *b, struct vv_pool *pool)
{
	struct reader *r = b->reader;
	int rc = 0;

	vv_pool_each(pool, b->n, open_one, b);
	r->jobs.n = 0;
	for (size_t i = 0; rc == 0 && i < b->n && !atomic_load(&r->failed); i++)
		rc = add_jobs(&r->jobs, &b->source[i]);
	if (rc)
		fail(r, rc);
	else if (!atomic_load(&r->failed))
		vv_pool_each(pool, r->jobs.n, run_job, r);
	vv_pool_each(pool, b->n, close_one, b);
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
		b->source[b->n++] = (struct source){ p->v[first].layer, &p->v[first], i - first, NULL, NULL, NULL };
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
	if (rc == 0)
		rc = sort_pieces(&p);
	if (rc == 0)
		rc = read_pieces(lin, pool, &p, &r);
	while (r.free) {
		struct scratch *s = r.free;

		r.free = s->next;
		vv_mem_free(s);
	}
	vv_mem_free(r.jobs.v);
	vv_mem_free(p.v);
	return rc;
}
