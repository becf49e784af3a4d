/* A ring of blocks: the caller fills one while others are being compressed, and a thread writes
 * them in order. While that thread waits for the sink, the pool continues to hash and compress.
 * Plain bytes are written from their own memory, without a copy, if they stay unchanged. A store
 * that writes several blocks at the same time needs them aligned; if they are not, they are copied
 * while they are checked. A chunk counts as stored with its last block. So a block that ends inside
 * a chunk is written in order. With `on_caller` there is one block and no thread. */
#include "engine/write/block_writer.h"
#include "engine/write/codec_choice.h"
#include "engine/write/delta_source.h"
#include "engine/write/block_list.h"
#include "base/err.h"
#include "base/held.h"
#include "base/mem.h"
#include "codec/context_pool.h"
#include "codec/section.h"
#include "store/backend/throughput.h"
#include "track/write_protect.h"
#include "track/thread.h"
#include <pthread.h>
#include <string.h>

enum {
	RING_MAX = 64,
	RING_PLAIN = 9,          /* enough to keep a sink busy that takes plain bytes */
	RING_PLAIN_MOST = 17,    /* the same where many cores make them, */
	PLAIN_MEMORY = 17 << 20, /* in at most so many bytes */
	RING_MIN = 3,
	/* in a ring of at most this size, for four threads, all may use large pages */
	RING_WIDE = 9,
	BLOCK_MIN = 64 << 10,
	CHECK_ALONE = 64 << 10,  /* below this a check is done before another thread would begin */
	BIG = 4 << 20,           /* a larger block never keeps its memory */
	PARTS = 1024,            /* pieces of memory per block, before they are gathered */
	SAMPLE = 128 << 10,      /* bytes of a sample of `auto` */
	SAMPLE_EVERY = 64 << 20, /* and of its interval */
	MUCH = 16 << 20,         /* in a layer: small tables are less than one part in 250 of it */
};

static const double PROMPT = 1e-3; /* seconds that a block may be in progress */

struct block_writer_delta {
	struct vv_delta how;
	struct vv_delta_base base[VV_DELTA_BASES_EXTENTS];
	size_t n;    /* 0: the block is no difference */
	size_t most; /* a longer one does not pay */
};

struct block_writer {
	struct vv_task task;
	struct vv_pending_write write;
	struct vv_block_writer *flush;
	struct iovec part[PARTS];
	int n_parts;
	struct vv_block_writer_tag_count owed[PARTS]; /* the tags to report when it is written */
	int n_owed;
	size_t raw_len;
	struct vv_form form; /* of its numbers, if all have the same form */
	struct vv_recipe how;
	bool gathered; /* the bytes are in `raw`, not in the parts */
	const struct vv_codec *codec; /* NULL: none */
	bool alone; /* the writer does the work, not the pool */
	bool piece; /* part of a block of several pieces */
	bool cut;   /* it ends inside a chunk */
	bool aligned; /* the store can write it from aligned memory without another copy */
	bool written; /* under the lock: it was submitted, and the store reads it no longer */
	struct block_writer_delta *delta; /* NULL: never needed */
	uint8_t *raw, *coded;
	size_t stored_len; /* of compressed bytes; 0 = stored uncompressed */
	uint64_t check;
	int rc;
	struct vv_err_state error;
};

struct vv_block_writer {
	struct vv_pool *pool;
	struct vv_put *put;
	struct vv_block_writer_options opt;
	struct block_writer *ring[RING_MAX];
	size_t size;
	size_t coding_size;  /* automatic: the size of the ring while it compresses */
	size_t room;         /* of a block's own memory */
	uint64_t added;      /* bytes handed over */
	uint64_t at;         /* the position of the next block in the object, */
	bool at_unknown;     /* unless a block was compressed */
	uint64_t sampled_at; /* auto: 1 + bytes before the last sample; 0: none yet */
	double saved;        /* auto: part of the sample's bytes that compression saved */
	bool coding;         /* auto: its decision */
	struct vv_codec_choice choice;
	struct { /* vv_block_writer_set_codec */
		bool set;
		const struct vv_codec *codec;
		struct vv_recipe how;
		size_t block;
		const struct vv_delta *delta;
	} turn;
	bool plain; /* vv_block_writer_set_plain */

	pthread_t writer;
	bool started;
	/* Under the lock: */
	pthread_mutex_t lock;
	pthread_cond_t change;
	size_t held; /* bytes in blocks that are being compressed or written */
	/* count blocks from head on are being compressed or written, the first ones of them are
	 * submitted to the store; the next is being filled */
	size_t head, count, submitted;
	bool closing;
	struct vv_err_state error; /* the first failure of the writer */
	struct vv_block_list done; /* used by the writer only */
};

/* Room for n bytes, compressed in any possible way. */
static size_t coded_bound(const struct vv_block_writer *f, size_t n)
{
	size_t most = vv_codec_choice_bound(&f->choice, n, f->opt.copy);

	return f->opt.deltas && vv_delta_bound(n) > most ? vv_delta_bound(n) : most;
}

/* Compressed blocks need memory of their own, twice: for the contiguous bytes and for the
 * result. */
static bool is_too_large(const struct vv_block_writer *f)
{
	return f->opt.memory && f->size * (f->opt.block + coded_bound(f, f->opt.block)) > f->opt.memory;
}

static void shrink_ring(struct vv_block_writer *f, size_t least)
{
	while (f->size > least && is_too_large(f))
		f->size--;
}

static size_t plain_size(const struct vv_block_writer *f)
{
	size_t n = (size_t)vv_pool_width(f->pool) + 1, fits = PLAIN_MEMORY / f->opt.block;

	n = n < fits ? n : fits;
	return n < RING_PLAIN ? RING_PLAIN : n < RING_PLAIN_MOST ? n : RING_PLAIN_MOST;
}

/* If memory is short, blocks become smaller before a core is left without one. */
static void size_ring(struct vv_block_writer *f)
{
	struct vv_block_writer_options *o = &f->opt;
	size_t most = o->codec ? RING_MAX : RING_PLAIN, width = vv_pool_width(f->pool);

	f->size = o->on_caller ? 1 : 2 * width + 1;
	f->size = f->size < most ? f->size : most;
	if (!o->codec || o->copy) {
		f->size = f->put->unit && !o->copy ? plain_size(f) : f->size;
		return;
	}
	shrink_ring(f, width + 1 > RING_MIN ? width + 1 : RING_MIN);
	while (o->block > BLOCK_MIN && is_too_large(f))
		o->block /= 2;
	shrink_ring(f, RING_MIN);
	f->coding_size = f->size;
	if (f->put->unit && o->automatic && f->size < plain_size(f))
		f->size = plain_size(f);
}

int vv_block_writer_open(struct vv_pool *pool, struct vv_put *put, const struct vv_block_writer_options *opt, struct vv_block_writer **out)
{
	struct vv_block_writer *f = vv_mem_new(1, sizeof(*f));

	if (!f)
		return VV_ENOMEM;
	*f = (struct vv_block_writer){ .pool = pool, .put = put, .opt = *opt };
	vv_codec_choice_init(&f->choice, opt->codec, opt->level);
	size_ring(f);
	f->room = opt->copy ? vv_block_writer_slab(opt->block) : f->opt.block;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->change, NULL);
	*out = f;
	return 0;
}

static size_t block_len(const struct vv_block_writer *f)
{
	return f->turn.set ? f->turn.block : f->opt.block;
}

/* If blocks have different sizes, the memory limits how many are in progress; one always is. */
static bool is_full(const struct vv_block_writer *f)
{
	return f->opt.copy && f->opt.memory && f->count && f->held + block_len(f) > f->opt.memory;
}

/* The block to fill; waits until there is one. NULL if the writer has failed, or for lack of
 * memory. */
static struct block_writer *filling(struct vv_block_writer *f)
{
	size_t i;
	bool failed;

	pthread_mutex_lock(&f->lock);
	while ((f->count == f->size || is_full(f)) && !f->error.code)
		pthread_cond_wait(&f->change, &f->lock);
	failed = f->error.code && vv_err_restore(&f->error);
	i = (f->head + f->count) % f->size;
	pthread_mutex_unlock(&f->lock);
	if (failed)
		return NULL;
	if (!f->ring[i])
		f->ring[i] = vv_mem_new(1, sizeof(struct block_writer));
	if (f->ring[i])
		f->ring[i]->flush = f;
	return f->ring[i];
}

static int failure(const struct vv_block_writer *f)
{
	return f->error.code ? f->error.code : VV_ENOMEM;
}

/* A large page is as expensive as forty small ones. It is allocated even for a few bytes, so there
 * must not be many. */
static bool has_room(const struct vv_block_writer *f, uint8_t **p, size_t n, bool full)
{
	if (!*p)
		*p = full || (f->opt.copy && f->size <= RING_WIDE && !f->opt.small_pages) ? vv_mem_map_wide(n) : vv_mem_map(n);
	return *p;
}

static bool has_own_room(struct block_writer *b)
{
	return has_room(b->flush, &b->raw, b->flush->room, b->flush->room > VV_BLOCK_WRITER_SLAB);
}

/* Makes the block's bytes contiguous; copied bytes are already. */
static int gather(struct block_writer *b, bool copied)
{
	size_t at = 0;

	if (b->gathered || !has_own_room(b))
		return b->gathered ? 0 : VV_ENOMEM;
	for (int i = 0; !copied && i < b->n_parts; at += b->part[i++].iov_len)
		if (b->part[i].iov_base != b->raw + at)
			memcpy(b->raw + at, b->part[i].iov_base, b->part[i].iov_len);
	b->part[0] = (struct iovec){ b->raw, b->raw_len };
	b->n_parts = 1;
	b->gathered = true;
	return 0;
}

static void run_gather(void *arg)
{
	struct block_writer *b = arg;

	b->rc = gather(b, false);
}

static bool may_be_delta(const struct block_writer *b)
{
	return b->delta && b->delta->n;
}

/* Where the base cannot be read, the block is stored without. */
static int encode_delta(struct block_writer *b, size_t cap)
{
	const struct vv_delta_source *from = b->flush->opt.deltas;
	struct block_writer_delta *d = b->delta;
	size_t sum = (size_t)vv_delta_bases_sum(d->base, d->n);
	uint8_t *base = vv_context_pool_room(sum);
	int rc = base ? from->read(from->arg, d->base, d->n, base) : VV_ENOMEM;

	if (rc == 0)
		rc = vv_delta_encode(&d->how, b->part[0].iov_base, b->raw_len, base, sum, b->coded, cap, &b->stored_len);
	else if (rc != VV_ENOMEM)
		vv_err_clear();
	vv_context_pool_room_back(base);
	if (rc || b->stored_len > d->most)
		b->stored_len = 0;
	if (!b->stored_len)
		d->n = 0;
	return rc == VV_ENOMEM ? rc : 0;
}

static int encode(struct block_writer *b)
{
	size_t cap = coded_bound(b->flush, b->flush->opt.block);

	if (b->n_parts > 1 && gather(b, false) < 0)
		return VV_ENOMEM;
	if (!has_room(b->flush, &b->coded, cap, false))
		return VV_ENOMEM;
	if (may_be_delta(b)) {
		int rc = encode_delta(b, cap);

		if (rc || b->stored_len || !b->codec)
			return rc;
	}
	return b->codec->encode(b->part[0].iov_base, b->raw_len, &b->how, b->coded, cap, b->flush->opt.level, &b->stored_len);
}

static bool is_aligned(const struct block_writer *b)
{
	uintptr_t all = 0;

	for (int i = 0; i < b->n_parts; i++)
		all |= (uintptr_t)b->part[i].iov_base | b->part[i].iov_len;
	return all % b->flush->put->unit == 0;
}

/* Copies the parts to the block's own memory, piece by piece while they are in the cache. */
static int check_and_gather(struct block_writer *b)
{
	enum { PIECE = 16 << 10 };
	struct vv_digest_stream s;
	size_t at = 0;

	if (!has_own_room(b))
		return VV_ENOMEM;
	if (b->n_parts == 1) {
		b->check = vv_digest_check_copy(b->raw, b->part[0].iov_base, b->raw_len);
		return gather(b, true);
	}
	vv_digest_stream_init(&s);
	for (int i = 0; i < b->n_parts; i++)
		for (size_t k = 0, n; k < b->part[i].iov_len; k += n, at += n) {
			const uint8_t *from = (const uint8_t *)b->part[i].iov_base + k;

			n = b->part[i].iov_len - k < PIECE ? b->part[i].iov_len - k : PIECE;
			memcpy(b->raw + at, from, n);
			vv_digest_stream_add(&s, b->raw + at, n);
		}
	b->check = vv_digest_stream_check(&s);
	return gather(b, true);
}

static void code_block(void *arg)
{
	struct block_writer *b = arg;

	b->stored_len = 0;
	b->rc = b->codec || may_be_delta(b) ? encode(b) : 0;
	if (b->aligned && !b->gathered && !is_aligned(b)) {
		b->rc = check_and_gather(b);
		return;
	}
	if (b->piece)
		b->check = vv_block_list_check_piece(&b->flush->done, b->part, b->n_parts, b->raw_len, b->flush->opt.block);
	else if (b->rc == 0)
		b->check = b->stored_len ? vv_digest_check(b->coded, b->stored_len) : vv_digest_check_parts(b->part, b->n_parts);
}

/* The bytes are the program's: it may have unmapped them. */
static void run_block(struct vv_task *t)
{
	struct block_writer *b = (struct block_writer *)t;
	int rc = vv_write_protect_try_read(code_block, b);

	b->rc = rc ? rc : b->rc;
	if (b->rc)
		vv_err_save(b->rc, &b->error);
}

static void sample(void *arg)
{
	struct block_writer *b = arg;
	struct vv_block_writer *f = b->flush;
	size_t n = b->raw_len < SAMPLE ? b->raw_len : SAMPLE;

	if (b->part[0].iov_len >= n || gather(b, false) == 0)
		f->saved = vv_codec_choice_sample(f->opt.costs, b->codec, &b->how, f->opt.level, b->part[0].iov_base, n, vv_pool_width(f->pool));
}

/* Ranks of a group use the price that they measured together, so that equal data are compressed
 * alike. Before that, only a configured limit is used. */
static bool pays(struct vv_block_writer *f)
{
	struct vv_costs *c = f->opt.costs, now = *c;
	uint64_t bytes, ns;

	if (f->opt.always)
		return f->saved > VV_CODEC_CHOICE_LEAST;
	if (!c->shared || (c->price <= 0 && f->put->store->bandwidth)) {
		vv_throughput_get(f->put->store, &bytes, &ns);
		vv_codec_choice_set_price(&now, (double)bytes, (double)ns, (double)c->coded_bytes, (double)c->coded_ns);
	}
	if (!c->shared)
		c->price = now.price;
	return vv_codec_choice_pays(&now, f->saved);
}

/* auto compresses a sample of the first block that is large enough, and again at intervals. It
 * decides at each block. Storing the block reports memory that is gone. */
static const struct vv_codec *codec_for(struct vv_block_writer *f, struct block_writer *b)
{
	bool look = !f->sampled_at || f->added + 1 - f->sampled_at >= SAMPLE_EVERY;

	if (!f->opt.codec || (f->opt.automatic && b->raw_len < 4096))
		return NULL;
	if (f->opt.automatic && !look)
		f->coding = pays(f);
	if (f->opt.automatic && !look && !f->coding)
		return NULL;
	if (vv_codec_choice_is_due(&f->choice, &b->form, f->added) && vv_write_protect_try_read(run_gather, b) == 0 && b->rc == 0)
		vv_codec_choice_try(&f->choice, &b->form, f->added, b->raw, b->raw_len);
	b->codec = vv_codec_choice_codec(&f->choice, &b->form, &b->how);
	if (!f->opt.automatic || !look)
		return b->codec;
	f->saved = 0;
	vv_write_protect_try_read(sample, b);
	f->sampled_at = f->added + 1;
	f->coding = pays(f);
	return f->coding ? b->codec : NULL;
}

static void put_block(void *arg)
{
	struct block_writer *b = arg;
	struct iovec coded = { b->coded, b->stored_len };

	b->rc = vv_store_put_write(b->flush->put, b->stored_len ? &coded : b->part, b->stored_len ? 1 : b->n_parts);
}

struct submission {
	struct block_writer *block; /* filled again as soon as it is written */
	int rc;
};

static bool is_delta(const struct block_writer *b)
{
	return b->stored_len && may_be_delta(b);
}

static void submit_block(void *arg)
{
	struct submission *s = arg;

	s->rc = vv_store_put_submit(s->block->flush->put, s->block->part, s->block->n_parts, &s->block->write);
}

static int list_block(struct vv_block_writer *f, struct block_writer *b)
{
	int rc;

	if (b->piece)
		return vv_block_list_add_piece(&f->done, b->raw_len, b->check);
	rc = vv_block_list_add(&f->done, is_delta(b) ? VV_CODEC_DELTA : b->stored_len ? b->codec->number : VV_CODEC_NONE, b->raw_len,
			       b->stored_len ? b->stored_len : b->raw_len, b->check);
	if (rc == 0 && is_delta(b))
		rc = vv_delta_bases_add(&f->done.blocks.bases, f->done.blocks.n - 1, b->delta->base, b->delta->n);
	return rc;
}

/* Stores read the bytes during the call, and hold no locks meanwhile. If they are submitted, b
 * belongs to the store, and block_written ends it. */
static int write_block(struct vv_block_writer *f, struct block_writer *b, bool *submitted)
{
	int rc = b->rc ? vv_err_restore(&b->error) : list_block(f, b);
	struct submission s = { b, 0 };

	*submitted = rc == 0 && b->aligned;
	if (*submitted) {
		rc = vv_write_protect_try_read(submit_block, &s);
		return rc ? rc : s.rc;
	}
	if (rc == 0)
		rc = vv_write_protect_try_read(put_block, b);
	rc = rc ? rc : b->rc;
	if (rc == 0 && f->opt.stored)
		f->opt.stored(f->opt.arg, b->owed, b->n_owed);
	return rc;
}

/* A large block does not keep its memory. The blocks of a ring together keep at most the limit of
 * bytes in progress. */
static size_t kept(const struct vv_block_writer *f)
{
	size_t share = f->opt.copy && f->opt.memory ? f->opt.memory / f->size : BIG;

	return share < BIG ? share : BIG;
}

static void empty_block(struct block_writer *b)
{
	if (b->raw && b->raw_len > kept(b->flush)) {
		vv_mem_discard(b->raw, b->raw_len);
		vv_mem_discard(b->coded, b->coded ? b->stored_len : 0);
	}
	b->n_parts = b->n_owed = 0;
	b->raw_len = 0;
	b->gathered = b->aligned = b->cut = false;
}

/* After a failure, a block in progress is waited for, and not written. */
static int end_block(struct vv_block_writer *f, struct block_writer *b, bool failed, bool *submitted)
{
	if (b->alone)
		run_block(&b->task);
	else
		vv_pool_wait(f->pool, &b->task);
	return failed ? 0 : write_block(f, b, submitted);
}

static int note_end(struct vv_block_writer *f, int rc)
{
	if (rc) {
		vv_err_save(rc, &f->error);
		if (f->opt.stored)
			f->opt.stored(f->opt.arg, NULL, 0);
	}
	return rc;
}

/* Called with the lock held. Blocks may be written in another order than they were submitted. The
 * writer has come back from the store for each of the submitted blocks. */
static void free_written(struct vv_block_writer *f)
{
	VV_HELD(&f->lock);
	while (f->submitted && f->ring[f->head]->written) {
		empty_block(f->ring[f->head]);
		f->head = (f->head + 1) % f->size;
		f->count--;
		f->submitted--;
	}
	pthread_cond_broadcast(&f->change);
}

/* Called with the lock held. */
static void note_written(struct vv_block_writer *f, struct block_writer *b)
{
	VV_HELD(&f->lock);
	f->held -= b->raw_len;
	b->written = true;
	free_written(f);
}

/* On a thread of the store. */
static void block_written(struct vv_pending_write *w)
{
	struct block_writer *b = (struct block_writer *)(void *)((char *)w - offsetof(struct block_writer, write));
	struct vv_block_writer *f = b->flush;

	if (f->opt.stored)
		f->opt.stored(f->opt.arg, b->owed, b->n_owed);
	pthread_mutex_lock(&f->lock);
	note_written(f, b);
	pthread_mutex_unlock(&f->lock);
}

static void *write_blocks(void *arg)
{
	struct vv_block_writer *f = arg;

	vv_thread_mark_own();
	pthread_mutex_lock(&f->lock);
	for (;;) {
		struct block_writer *b;
		bool failed = f->error.code != 0, submitted = false;
		int rc;

		if (f->count == f->submitted && f->closing)
			break;
		if (f->count == f->submitted) {
			pthread_cond_wait(&f->change, &f->lock);
			continue;
		}
		b = f->ring[(f->head + f->submitted) % f->size];
		pthread_mutex_unlock(&f->lock);
		rc = end_block(f, b, failed, &submitted);
		pthread_mutex_lock(&f->lock);
		(void)note_end(f, rc);
		f->submitted++;
		if (rc || !submitted)
			note_written(f, b);
		else
			free_written(f);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* Called with the block that was just filled. Without compression a ring may have more blocks,
 * since they need no memory. It changes its size when nothing is in progress. */
static void resize_ring(struct vv_block_writer *f)
{
	struct block_writer *b;
	size_t i;

	if (!f->coding_size || f->size == f->coding_size || !f->coding)
		return;
	pthread_mutex_lock(&f->lock);
	while (f->count)
		pthread_cond_wait(&f->change, &f->lock);
	i = f->head;
	b = f->ring[i];
	f->ring[i] = f->ring[0];
	f->ring[0] = b;
	f->head = 0;
	f->size = f->coding_size;
	pthread_mutex_unlock(&f->lock);
}

/* Can the store write the block from where it lies, at the same time as others? */
static void note_position(struct vv_block_writer *f, struct block_writer *b)
{
	size_t unit = f->put->unit;

	if (f->added == 0)
		f->at = f->put->written;
	f->at_unknown |= b->codec || may_be_delta(b);
	b->aligned = unit && !b->cut && !f->at_unknown && !f->opt.copy && f->at % unit == 0 && b->raw_len % unit == 0;
	f->at += b->raw_len;
}

static int end_on_caller(struct vv_block_writer *f, struct block_writer *b)
{
	bool submitted;
	int rc = end_block(f, b, false, &submitted);

	empty_block(b);
	return rc;
}

static int find_bases(struct vv_block_writer *f, struct block_writer *b)
{
	if (b->delta)
		b->delta->n = 0;
	if (!f->turn.set || !f->turn.delta)
		return 0;
	if (!b->delta)
		b->delta = vv_mem_new(1, sizeof(*b->delta));
	if (!b->delta)
		return VV_ENOMEM;
	b->delta->how = *f->turn.delta;
	b->delta->n = f->opt.deltas->find(f->opt.deltas->arg, f->turn.delta, f->added, b->raw_len, b->delta->base, &b->delta->most);
	return 0;
}

static int send(struct vv_block_writer *f, struct block_writer *b)
{
	int rc = f->started || f->opt.on_caller ? 0 : vv_thread_start(&f->writer, write_blocks, f);

	if (rc)
		return vv_thread_not_started(rc, "writes");
	f->started = !f->opt.on_caller;
	b->how = f->turn.how;
	b->codec = f->turn.set ? f->turn.codec : f->plain ? NULL : codec_for(f, b);
	rc = find_bases(f, b);
	if (rc)
		return rc;
	resize_ring(f);
	b->task.run = run_block;
	b->write.done = block_written;
	b->written = false;
	note_position(f, b);
	f->added += b->raw_len;
	b->alone = f->opt.on_caller || (!b->codec && !may_be_delta(b) && b->raw_len <= CHECK_ALONE);
	b->piece = b->alone && !b->aligned && !b->codec && !f->turn.set && !f->opt.copy && b->raw_len < f->opt.block;
	if (f->opt.on_caller)
		return note_end(f, end_on_caller(f, b));
	if (!b->alone)
		/* the sink waits for it, but not for the hashes of the next blocks */
		vv_pool_submit_first(f->pool, &b->task);
	pthread_mutex_lock(&f->lock);
	f->held += b->raw_len;
	f->count++;
	pthread_cond_broadcast(&f->change);
	pthread_mutex_unlock(&f->lock);
	return 0;
}

struct block_writer_copy {
	struct block_writer *to;
	const uint8_t *from;
	size_t n;
};

static void run_copy(void *arg)
{
	struct block_writer_copy *c = arg;
	struct block_writer *b = c->to;

	b->rc = b->n_parts == PARTS ? gather(b, false) : has_own_room(b) ? 0 : VV_ENOMEM;
	if (b->rc == 0)
		memcpy(b->raw + b->raw_len, c->from, c->n);
}

/* Do the bytes at p follow the last part? */
static bool goes_on(const struct block_writer *b, const uint8_t *p)
{
	return b->n_parts && (uint8_t *)b->part[b->n_parts - 1].iov_base + b->part[b->n_parts - 1].iov_len == p;
}

/* Adds n bytes at p to the block: by reference, or copied into the block's own memory. When copied,
 * their memory may be gone. */
static int note(struct block_writer *b, const uint8_t *p, size_t n, bool copy)
{
	union {
		const void *in;
		void *out;
	} at = { .in = p };

	if (copy || b->gathered || (b->n_parts == PARTS && !goes_on(b, p))) {
		int rc = vv_write_protect_try_read(run_copy, &(struct block_writer_copy){ b, p, n });

		if (rc || b->rc)
			return rc ? rc : b->rc;
		at.out = b->raw + b->raw_len;
	}
	if (goes_on(b, at.in))
		b->part[b->n_parts - 1].iov_len += n;
	else
		b->part[b->n_parts++] = (struct iovec){ at.out, n };
	b->raw_len += n;
	return 0;
}

/* A block of sufficient size is not spoiled by numbers of another form. */
static bool is_other(const struct vv_block_writer *f, const struct block_writer *b, const struct vv_form *form)
{
	return form && f->opt.codec && !f->turn.set && b->raw_len >= BLOCK_MIN && !vv_recipe_same_form(&b->form, form);
}

static void note_form(struct block_writer *b, const struct vv_form *form, size_t n)
{
	static const struct vv_form none = { 0 };
	const struct vv_form *f = form ? form : &none;

	b->form = b->raw_len ? vv_recipe_common_form(&b->form, f) : *f;
	if (n % vv_head_type_size(b->form.type))
		b->form = none;
}

static bool count_chunk(struct block_writer *b, uint32_t tag)
{
	struct vv_block_writer_tag_count *last = b->n_owed ? &b->owed[b->n_owed - 1] : NULL;

	if (last && last->tag == tag)
		last->adds++;
	else if (b->n_owed < PARTS)
		b->owed[b->n_owed++] = (struct vv_block_writer_tag_count){ tag, 1 };
	else
		return false;
	return true;
}

/* With a slow sink, a large block is long in progress and delays its waiters. So it is cut, unless
 * it is to be compressed. */
static bool is_enough(struct vv_block_writer *f, const struct block_writer *b)
{
	double rate = f->opt.low_latency && !f->coding && (!f->opt.codec || f->opt.automatic) ? vv_throughput_rate(f->put->store) : 0;

	return rate > 0 && b->raw_len >= BLOCK_MIN && (double)b->raw_len >= rate * PROMPT;
}

int vv_block_writer_add(struct vv_block_writer *f, const void *p, size_t n, const struct vv_form *form, uint32_t tag, bool copy)
{
	const uint8_t *from = p;
	size_t block = block_len(f);

	while (n > 0) {
		struct block_writer *b = filling(f);
		size_t take;
		int rc;

		if (!b)
			return failure(f);
		take = block - b->raw_len;
		if ((take < n && n <= block) || is_other(f, b, form) || (take >= n && !count_chunk(b, tag))) {
			rc = send(f, b); /* a chunk is not cut unless it must be */
			if (rc)
				return rc;
			continue;
		}
		b->cut = take < n;
		take = take < n ? take : n;
		note_form(b, form, take);
		rc = note(b, from, take, copy || f->opt.copy);
		if (rc == 0 && (b->raw_len == block || (take == n && is_enough(f, b))))
			rc = send(f, b);
		if (rc)
			return rc;
		from += take;
		n -= take;
	}
	return 0;
}

int vv_block_writer_take(struct vv_block_writer *f, uint8_t **slab, size_t room, size_t n, bool *taken)
{
	struct block_writer *b = filling(f);

	if (!b || gather(b, false) < 0)
		return failure(f);
	*taken = b->raw_len == 0 && n <= block_len(f) && f->room == room;
	if (!*taken)
		return 0;
	b->part[0] = (struct iovec){ *slab, n };
	*slab = b->raw;
	b->raw = b->part[0].iov_base;
	b->raw_len = n;
	return n == block_len(f) ? send(f, b) : 0;
}

bool vv_block_writer_has_room(struct vv_block_writer *f, size_t n)
{
	bool room;

	pthread_mutex_lock(&f->lock);
	room = f->count + n / f->opt.block + 1 < f->size || f->count == 0 || f->error.code;
	pthread_mutex_unlock(&f->lock);
	return room;
}

int vv_block_writer_push(struct vv_block_writer *f)
{
	struct block_writer *b = filling(f);

	if (!b)
		return failure(f);
	return b->raw_len ? send(f, b) : 0;
}

/* auto: if blocks are not worth compressing, neither are large tables. Nor are small ones in a
 * large layer: a restart from many layers decodes them all. */
vv_layer_coder vv_block_writer_coder(const struct vv_block_writer *f)
{
	if (!f->opt.codec || f->opt.codec->number != VV_CODEC_ZSTD || (f->opt.automatic && !f->coding && f->added >= MUCH))
		return NULL;
	return f->opt.automatic && !f->coding ? vv_section_encode_small : vv_section_encode;
}

int vv_block_writer_set_codec(struct vv_block_writer *f, const struct vv_codec *codec, const struct vv_recipe *how, size_t block)
{
	int rc = vv_block_writer_push(f);

	f->turn.set = true;
	f->turn.codec = codec;
	f->turn.how = *how;
	f->turn.delta = NULL;
	f->turn.block = block < f->opt.block ? block : f->opt.block;
	return rc;
}

int vv_block_writer_set_plain(struct vv_block_writer *f, bool plain)
{
	int rc = vv_block_writer_push(f);

	f->plain = plain;
	return rc;
}

void vv_block_writer_set_delta(struct vv_block_writer *f, const struct vv_delta *how)
{
	f->turn.delta = f->opt.deltas ? how : NULL;
}

int vv_block_writer_drain(struct vv_block_writer *f, const struct vv_blocks **out)
{
	int rc = vv_block_writer_push(f);

	pthread_mutex_lock(&f->lock);
	while (f->count)
		pthread_cond_wait(&f->change, &f->lock);
	if (f->error.code)
		rc = vv_err_restore(&f->error);
	pthread_mutex_unlock(&f->lock);
	*out = &f->done.blocks;
	f->done.open = false; /* bytes added later are in another block than the returned ones */
	return rc;
}

int vv_block_writer_finish(struct vv_block_writer *f, struct vv_blocks *out)
{
	const struct vv_blocks *all = NULL;
	int rc = vv_block_writer_drain(f, &all);

	if (rc == 0) {
		*out = *all;
		f->done.blocks = (struct vv_blocks){ 0 };
	}
	return rc;
}

void vv_block_writer_free(struct vv_block_writer *f)
{
	if (!f)
		return;
	if (f->started) {
		pthread_mutex_lock(&f->lock);
		f->closing = true;
		if (!f->error.code)
			f->error.code = VV_EIO; /* remaining bytes are not written */
		pthread_cond_broadcast(&f->change);
		pthread_mutex_unlock(&f->lock);
		pthread_join(f->writer, NULL);
		pthread_mutex_lock(&f->lock);
		while (f->count)
			pthread_cond_wait(&f->change, &f->lock);
		pthread_mutex_unlock(&f->lock);
	}
	for (size_t i = 0; i < RING_MAX; i++) { /* the ring may have been larger */
		if (!f->ring[i])
			continue;
		vv_mem_unmap(f->ring[i]->raw, f->room);
		vv_mem_unmap(f->ring[i]->coded, coded_bound(f, f->opt.block));
		vv_mem_free(f->ring[i]->delta);
		vv_mem_free(f->ring[i]);
	}
	vv_block_list_fini(&f->done);
	pthread_cond_destroy(&f->change);
	pthread_mutex_destroy(&f->lock);
	vv_mem_free(f);
}
