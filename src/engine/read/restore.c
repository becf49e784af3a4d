/* Cached bytes, and layers wanted nearly in full, are copied by copy_mapped.c. The rest: pieces,
 * sorted by layer -> cut at block borders and grouped by block -> one job per block. */
#include "engine/read/restore.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/read/block_plan.h"
#include "engine/read/read_many.h"
#include "engine/read/unmap_later.h"
#include "engine/read/layer_list.h"
#include "base/budget.h"
#include "engine/read/copy_mapped.h"
#include "track/memory.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	STRIPE = 8 << 20, /* of a destination: the unit of work of a thread */
	LEAST_STRIPE = 256 << 10,
	ZERO_STEP = 8 << 20,
	MEMORY = 208 << 20, /* of the blocks in progress */
	APART = 32 << 10,   /* a larger gap between two parts is not read */
	SCATTERED = 8,      /* one byte in so many of a layer is not read */
	FEW = 4,            /* blocks: the way of reading so few does not matter */
};

struct restore_job {
	struct vv_layer_file *file;
	size_t block;
	struct vv_part *part;
	size_t n;
};

struct jobs {
	struct restore_job *v;
	size_t n, cap;
};

struct restore_reader {
	struct jobs jobs;
	struct jobs deep;      /* of layers on the disk: many reads should be in progress */
	struct jobs *now;      /* the jobs in progress */
	struct vv_budget rooms; /* room for blocks */
	atomic_int failed;
	pthread_mutex_t lock;
	struct vv_err_state error;
};

static void fail(struct restore_reader *r, int rc)
{
	pthread_mutex_lock(&r->lock);
	if (!atomic_load(&r->failed))
		vv_err_save(rc, &r->error);
	atomic_store(&r->failed, 1);
	pthread_mutex_unlock(&r->lock);
}

static void run_job(void *arg, size_t i)
{
	struct restore_reader *r = arg;
	struct restore_job *j = &r->now->v[i];
	const struct vv_block *b = &j->file->blocks.v[j->block];
	struct vv_budget_buffer *room;
	int rc;

	if (atomic_load(&r->failed))
		return;
	room = vv_budget_take(&r->rooms, (size_t)b->raw_len + (b->codec ? b->stored_len : 0) + VV_STORE_AROUND, 0);
	if (!room) {
		fail(r, VV_ENOMEM);
		return;
	}
	rc = vv_layer_file_read_parts(j->file, j->block, j->part, j->n, room->bytes);
	vv_budget_give(&r->rooms, room);
	if (rc)
		fail(r, rc);
}

/* A layer that bytes come from. */
struct restore_source {
	const struct vv_pending_piece *piece;
	size_t n_pieces;
	struct vv_block_plan plan;
	bool scattered; /* the wanted parts are scattered */
};

static int plan_source(struct restore_source *s, struct vv_layer_file *f)
{
	int rc = 0;

	s->plan = (struct vv_block_plan){ .file = f };
	for (size_t i = 0; rc == 0 && i < s->n_pieces; i++) {
		const struct vv_pending_piece *p = &s->piece[i];

		rc = vv_block_plan_add(&s->plan, p->pos, p->len, (struct vv_part){ .to = p->to, .region = VV_PART_MEMORY });
	}
	if (rc == 0)
		rc = vv_block_plan_group(&s->plan);
	return rc ? rc : vv_block_plan_digests(&s->plan);
}

struct usage { /* of a layer's blocks */
	size_t blocks;  /* with wanted bytes */
	uint64_t whole; /* stored bytes of all blocks */
	uint64_t apart; /* bytes in gaps between wanted parts that are too large to be read */
};

static void measure_block(const struct vv_block *b, const struct vv_part *part, size_t n, struct usage *u)
{
	uint32_t end = 0;

	u->whole += b->stored_len;
	u->apart += n ? 0 : b->stored_len;
	for (size_t i = 0; i < n; i++) {
		if (b->codec == 0 && part[i].from > end && part[i].from - end > APART)
			u->apart += part[i].from - end;
		end = part[i].from + part[i].len > end ? part[i].from + part[i].len : end;
	}
	u->blocks += n > 0;
}

static struct usage measure(const struct vv_block_plan *p)
{
	struct usage u = { 0 };

	for (size_t i = 0, first = 0; i < p->file->blocks.n; first = p->end[i++])
		measure_block(&p->file->blocks.v[i], p->part + first, p->end[i] - first, &u);
	return u;
}

struct restore_stripe { /* of a want's destination */
	const struct vv_want *want;
	uint64_t at, end;
	struct vv_pending_list left;
	uint64_t got;
};

struct restore_batch { /* layers that are open together */
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	struct restore_reader *reader;
	const struct vv_layer_list_layer *layer;
	size_t most;  /* limit of layers: VV_OPEN_LAYERS_LAYERS, or by the number of descriptors */
	uint64_t got; /* bytes of layers, so far */
	bool zeros;   /* fill zeros, too */
	struct restore_stripe *stripe;
	size_t n_stripes;
	struct vv_make_writable writable; /* memory that the program had write-protected */
	struct vv_open_layers warm;
	struct restore_source source[VV_OPEN_LAYERS_LAYERS];
};

static int cut_stripes(const struct vv_want *want, size_t n, uint64_t len, struct restore_batch *b)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += (size_t)((want[i].len + len - 1) / len);
	b->n_stripes = 0;
	b->stripe = vv_mem_new(count, sizeof(*b->stripe));
	if (!b->stripe)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (uint64_t at = want[i].at, end = at + want[i].len; at < end; at += len)
			b->stripe[b->n_stripes++] = (struct restore_stripe){ .want = &want[i], .at = at, .end = end - at < len ? end : at + len };
	return 0;
}

static void open_layer(void *arg, size_t i)
{
	struct restore_batch *b = arg;
	int rc;

	if (atomic_load(&b->reader->failed))
		return;
	rc = vv_open_layers_open(&b->warm, i, b->lin, b->pool, b->layer[i].layer, b->layer[i].n_runs, b->layer[i].bytes);
	if (rc)
		fail(b->reader, rc);
}

static void copy_stripe(void *arg, size_t i)
{
	struct restore_batch *b = arg;
	struct restore_stripe *s = &b->stripe[i];
	int rc;

	if (atomic_load(&b->reader->failed))
		return;
	rc = vv_copy_mapped_read(&b->warm, s->want, s->at, s->end, b->zeros, &s->left, &s->got);
	if (rc)
		fail(b->reader, rc);
}

static void plan_layer(void *arg, size_t i)
{
	struct restore_batch *b = arg;
	struct restore_source *s = &b->source[i];
	struct usage u = { 0 };
	int rc;

	if (!s->n_pieces || atomic_load(&b->reader->failed))
		return;
	vv_open_layers_stop_mapping(&b->warm, i);
	rc = plan_source(s, b->warm.file[i]);
	if (rc == 0)
		u = measure(&s->plan);
	s->scattered = u.blocks > FEW && u.apart * SCATTERED > u.whole;
	if (s->scattered && !s->plan.file->get->unit)
		vv_store_get_advise(s->plan.file->get, VV_STORE_SCATTERED, 0, s->plan.file->get->size);
	if (rc)
		fail(b->reader, rc);
}

static bool is_near(const struct restore_batch *b, size_t source, size_t block)
{
	const struct vv_block *x = &b->source[source].plan.file->blocks.v[block];

	return b->warm.window[source] && vv_open_layers_may_touch(&b->warm, source, x->off, x->stored_len);
}

static int add_jobs(struct restore_batch *b, size_t source)
{
	const struct restore_source *s = &b->source[source];
	const struct vv_block_plan *p = &s->plan;

	for (size_t k = 0, first = 0; s->n_pieces && k < p->file->blocks.n; first = p->end[k++]) {
		struct jobs *j = (s->scattered || p->file->get->unit) && !is_near(b, source, k) ? &b->reader->deep : &b->reader->jobs;

		if (p->end[k] == first)
			continue;
		if (vv_mem_room(&j->v, j->n, &j->cap, sizeof(*j->v)) < 0)
			return VV_ENOMEM;
		j->v[j->n++] = (struct restore_job){ p->file, k, p->part + first, p->end[k] - first };
	}
	return 0;
}

static void run_jobs(struct restore_batch *b, struct vv_pool *pool, struct jobs *j)
{
	b->reader->now = j;
	vv_store_each(b->lin->store, pool, j == &b->reader->deep, j->n, run_job, b->reader);
	j->n = 0;
}

static void drop_sources(struct restore_batch *b)
{
	for (size_t i = 0; i < b->warm.n; i++) {
		vv_block_plan_fini(&b->source[i].plan);
		b->source[i] = (struct restore_source){ 0 };
	}
}

struct zeros {
	uint8_t *to;
	uint64_t len;
};

static void zero_step(void *arg, size_t i)
{
	struct zeros *z = arg;
	uint64_t at = (uint64_t)i * ZERO_STEP;

	vv_mem_zero(z->to + at, z->len - at < ZERO_STEP ? (size_t)(z->len - at) : ZERO_STEP);
}

/* Zero runs have layer 0 and come first. */
static size_t fill_zeros(const struct vv_pending_list *p, struct vv_pool *pool)
{
	size_t i = 0;

	for (; i < p->n && p->v[i].layer == 0; i++) {
		struct zeros z = { p->v[i].to, p->v[i].len };

		vv_pool_each(pool, (size_t)((z.len + ZERO_STEP - 1) / ZERO_STEP), zero_step, &z);
	}
	return i;
}

/* For write-protected memory, the kernel reports only that a read failed, and a copy ends the
 * program. So the protection is checked before. */
int vv_restore_make_writable(const struct vv_want *want, size_t n, struct vv_make_writable *writable)
{
	struct vv_memory_range *r = vv_mem_new(n, sizeof(*r)), bad = { 0 };
	size_t k = 0;
	int rc;

	if (!r)
		return VV_ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (want[i].name && want[i].len)
			r[k++] = (struct vv_memory_range){ (uintptr_t)want[i].to, (uintptr_t)want[i].to + want[i].len, false };
	rc = vv_make_writable_begin(writable, r, k, &bad);
	for (size_t i = 0; rc == VV_EINVAL && i < n; i++)
		if (want[i].name && (uintptr_t)want[i].to < bad.hi && (uintptr_t)want[i].to + want[i].len > bad.lo) {
			vv_err_context(rc, "region '%s', of %" PRIu64 " bytes at %p", want[i].name, want[i].len, (void *)want[i].to);
			break;
		}
	vv_mem_free(r);
	return rc;
}

/* Collects the pieces left by the stripes, by layer. */
static int gather(struct restore_batch *b, struct vv_pending_list *out)
{
	int rc = 0;

	for (size_t i = 0; i < b->n_stripes; i++) {
		struct vv_pending_list *left = &b->stripe[i].left;

		for (size_t k = 0; rc == 0 && k < left->n; k++)
			rc = vv_pending_add(out, left->v[k]);
		vv_mem_free(left->v);
		*left = (struct vv_pending_list){ 0 };
		b->got += b->stripe[i].got;
	}
	return rc ? rc : vv_pending_sort(out);
}

static int read_pieces(struct restore_batch *b, struct vv_pool *pool, const struct vv_pending_list *p)
{
	struct restore_reader *r = b->reader;
	int rc = 0;

	for (size_t i = fill_zeros(p, pool), first = i; i < p->n; first = i) {
		struct restore_source *s = &b->source[vv_open_layers_find(&b->warm, p->v[first].layer)];

		while (i < p->n && p->v[i].layer == p->v[first].layer)
			i++;
		s->piece = &p->v[first];
		s->n_pieces = i - first;
	}
	/* plan_layer may read digests */
	vv_store_each(b->lin->store, pool, false, b->warm.n, plan_layer, b);
	for (size_t i = 0; rc == 0 && i < b->warm.n && !atomic_load(&r->failed); i++)
		rc = add_jobs(b, i);
	if (rc == 0 && !atomic_load(&r->failed)) {
		run_jobs(b, pool, &r->deep);
		run_jobs(b, pool, &r->jobs);
	}
	return rc;
}

/* Opens n of the layers, from the first on. */
static int open_batch(struct restore_batch *b, struct vv_pool *pool, const struct vv_layer_list_layer *first, size_t n)
{
	b->layer = first;
	b->warm.n = n < b->most ? n : b->most;
	b->warm.all = b->zeros && b->warm.n == n;
	vv_store_each(b->lin->store, pool, false, b->warm.n, open_layer, b);
	if (atomic_load(&b->reader->failed))
		return vv_err_restore(&b->reader->error);
	vv_open_layers_build_index(&b->warm);
	return 0;
}

static int read_batch(struct restore_batch *b, struct vv_pool *pool, const struct vv_want *want, size_t n)
{
	struct restore_reader *r = b->reader;
	struct vv_pending_list left = { 0 };
	int rc = 0;

	vv_pool_each(pool, b->n_stripes, copy_stripe, b);
	rc = gather(b, &left);
	if (rc == 0 && left.n && !atomic_load(&r->failed))
		rc = vv_restore_make_writable(want, n, &b->writable);
	if (rc == 0 && left.n && !atomic_load(&r->failed))
		rc = read_pieces(b, pool, &left);
	if (rc == 0 && !atomic_load(&r->failed))
		rc = vv_open_layers_check(&b->warm);
	drop_sources(b);
	vv_mem_free(left.v);
	return atomic_load(&r->failed) ? vv_err_restore(&r->error) : rc;
}

static int read_layers(const struct vv_layer_list *l, struct restore_batch *b, struct vv_pool *pool, const struct vv_want *want, size_t n)
{
	size_t i = 0;
	int rc = cut_stripes(want, n, STRIPE, b);

	b->zeros = true;
	while (rc == 0 && (i < l->n || b->zeros)) {
		rc = open_batch(b, pool, l->v + i, l->n - i);
		if (rc == 0)
			rc = read_batch(b, pool, want, n);
		vv_unmap_later_close(&b->warm, pool);
		i += b->warm.n;
		b->zeros = false;
	}
	vv_mem_free(b->stripe);
	return rc;
}

/* Layers are opened once, if all can be open together. */
static int read_windows(const struct vv_layer_list *l, struct restore_batch *b, struct vv_pool *pool, const struct vv_want *want,
			const struct vv_windows *w)
{
	uint64_t stripe = w->len / (4 * vv_pool_width(pool)) + 1;
	bool at_once = l->n <= b->most;
	int rc;

	b->zeros = true;
	rc = at_once ? open_batch(b, pool, l->v, l->n) : 0;
	stripe = stripe < LEAST_STRIPE ? LEAST_STRIPE : stripe;
	for (uint64_t at = 0; rc == 0 && at < want->len; at += w->len) {
		uint64_t len = want->len - at < w->len ? want->len - at : w->len;
		struct vv_want part = { want->runs, want->at + at, len, NULL, NULL };

		rc = w->get_buffer(w->arg, &part.to);
		if (rc == 0 && at_once) {
			rc = cut_stripes(&part, 1, stripe, b);
			rc = rc ? rc : read_batch(b, pool, &part, 1);
			vv_mem_free(b->stripe);
		} else if (rc == 0) {
			rc = vv_restore_read(b->lin, pool, &part, 1);
		}
		if (rc == 0)
			rc = w->on_filled(w->arg, at, (size_t)len);
	}
	if (at_once)
		vv_unmap_later_close(&b->warm, pool);
	return rc;
}

int vv_restore_protect_again(struct vv_make_writable *writable, int rc)
{
	struct vv_err_state error;
	int late;

	vv_err_save(rc, &error);
	late = vv_make_writable_end(writable);
	return rc ? vv_err_restore(&error) : late;
}

static int restore(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_want *want, size_t n, const struct vv_windows *w)
{
	struct restore_reader r = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct restore_batch *b = vv_mem_new(1, sizeof(*b));
	struct vv_layer_list l = { 0 };
	int rc = b ? vv_layer_list_find(&l, pool, want, n) : VV_ENOMEM;

	vv_budget_init(&r.rooms, MEMORY);
	if (rc == 0) {
		b->lin = lin;
		b->pool = pool;
		b->reader = &r;
		b->most = vv_read_many_files(VV_OPEN_LAYERS_LAYERS, 2); /* its own, and one of its bases */
		rc = w ? read_windows(&l, b, pool, want, w) : read_layers(&l, b, pool, want, n);
		if (rc == 0 && b->got != l.bytes && !(w && l.n > b->most))
			rc = vv_err_set(VV_EIO, "%" PRIu64 " bytes were to be read, and %" PRIu64 " were: this is a fault of varve, please report it",
					l.bytes, b->got);
	}
	rc = b ? vv_restore_protect_again(&b->writable, rc) : rc;
	vv_budget_fini(&r.rooms);
	vv_mem_free(r.deep.v);
	vv_mem_free(r.jobs.v);
	vv_layer_list_fini(&l);
	vv_mem_free(b);
	return rc;
}

int vv_restore_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_want *want, size_t n)
{
	return restore(lin, pool, want, n, NULL);
}

int vv_restore_windows(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_want *want, const struct vv_windows *w)
{
	return restore(lin, pool, want, 1, w);
}
