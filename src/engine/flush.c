/* A ring of blocks: the caller fills one while others are being coded, and writes them out in order. While it waits for
 * the sink, the pool goes on hashing and coding. Plain bytes are written from where they lie, without a copy. */
#include "engine/flush.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

enum {
	RING_MAX = 64,
	PARTS = 1024,            /* pieces of memory per block, before they are gathered */
	SAMPLE = 128 << 10,      /* what `auto` tries the coder on */
	SAMPLE_EVERY = 64 << 20, /* and how often */
};

struct block {
	struct vv_task task;
	struct vv_flush *flush;
	struct iovec part[PARTS];
	int n_parts;
	size_t raw_len;
	bool gathered; /* the bytes are in `raw`, not in the parts */
	bool code;
	uint8_t *raw, *coded;
	size_t stored_len; /* of coded; 0 = stored as it is */
	uint64_t check;
	int rc;
	struct vv_err_state error;
};

struct vv_flush {
	struct vv_pool *pool;
	struct vv_put *put;
	struct vv_flush_options opt;
	struct block *ring[RING_MAX];
	size_t size, head, count; /* count blocks from head on are being coded; the next is being filled */
	struct vv_blocks blocks;
	uint64_t pos;        /* end of the payload */
	uint64_t sampled_at; /* auto: when it last decided */
	bool coding;         /* auto: what it decided */
};

int vv_flush_parse_codec(const char *text, struct vv_flush_options *out)
{
	size_t n = strcspn(text, ":");

	out->codec = NULL;
	out->automatic = strcmp(text, "auto") == 0;
	if (strcmp(text, "none") == 0)
		return 0;
	out->codec = out->automatic ? vv_codec_named("zstd", 4) : vv_codec_named(text, n);
	if (out->automatic && !out->codec)
		out->codec = vv_codec_named("lz4", 3);
	if (!out->codec)
		return out->automatic ? 0 : vv_err_set(VV_ENOTSUP, "codec '%s': this varve was built without it", text);
	out->level = text[n] ? atoi(text + n + 1) : out->codec->usual_level;
	if (text[n] && (out->level < out->codec->min_level || out->level > out->codec->max_level))
		return vv_err_set(VV_EINVAL, "codec '%s': levels are %d to %d", text, out->codec->min_level,
				  out->codec->max_level);
	return 0;
}

int vv_flush_open(struct vv_pool *pool, struct vv_put *put, const struct vv_flush_options *opt, struct vv_flush **out)
{
	struct vv_flush *f = vv_mem_new(1, sizeof(*f));

	if (!f)
		return VV_ENOMEM;
	f->pool = pool;
	f->put = put;
	f->opt = *opt;
	f->size = 2 * (size_t)vv_pool_width(pool) + 1;
	if (f->size > RING_MAX)
		f->size = RING_MAX;
	*out = f;
	return 0;
}

static struct block *filling(struct vv_flush *f)
{
	size_t i = (f->head + f->count) % f->size;

	if (!f->ring[i])
		f->ring[i] = vv_mem_new(1, sizeof(struct block));
	if (f->ring[i])
		f->ring[i]->flush = f;
	return f->ring[i];
}

/* The block's bytes in one piece. */
static int gather(struct block *b)
{
	size_t at = 0;

	if (b->gathered)
		return 0;
	if (!b->raw)
		b->raw = vv_mem_new(b->flush->opt.block, 1);
	if (!b->raw)
		return VV_ENOMEM;
	for (int i = 0; i < b->n_parts; at += b->part[i++].iov_len)
		memcpy(b->raw + at, b->part[i].iov_base, b->part[i].iov_len);
	b->part[0] = (struct iovec){ b->raw, b->raw_len };
	b->n_parts = 1;
	b->gathered = true;
	return 0;
}

static int encode(struct block *b)
{
	const struct vv_codec *c = b->flush->opt.codec;
	size_t cap = c->bound(b->flush->opt.block);

	if (b->n_parts > 1 && gather(b) < 0)
		return VV_ENOMEM;
	if (!b->coded)
		b->coded = vv_mem_new(cap, 1);
	if (!b->coded)
		return VV_ENOMEM;
	return c->encode(b->part[0].iov_base, b->raw_len, b->coded, cap, b->flush->opt.level, &b->stored_len);
}

static void run_block(struct vv_task *t)
{
	struct block *b = (struct block *)t;

	b->stored_len = 0;
	b->rc = b->code ? encode(b) : 0;
	if (b->rc)
		vv_err_save(b->rc, &b->error);
	else if (b->stored_len)
		b->check = vv_digest_check(b->coded, b->stored_len);
	else
		b->check = vv_digest_check_parts(b->part, b->n_parts);
}

/* Would coding make the whole faster? The sink takes `sink` bytes a second, all cores together code `speed`, and what
 * is left has size 1/ratio. */
static bool pays(struct vv_flush *f, const uint8_t *p, size_t n)
{
	size_t cap = f->opt.codec->bound(n), got = 0;
	uint8_t *to = vv_mem_new(cap, 1);
	double sink = vv_store_rate(f->put->store), start = vv_clock_s(), speed, ratio, through;
	int rc = to ? f->opt.codec->encode(p, n, to, cap, f->opt.level, &got) : VV_ENOMEM;

	vv_mem_free(to);
	if (rc || !got || sink <= 0)
		return false;
	speed = (double)n / (vv_clock_s() - start + 1e-9) * vv_pool_width(f->pool);
	ratio = (double)n / (double)got;
	through = speed < sink * ratio ? speed : sink * ratio;
	return ratio > 1.05 && through > 1.1 * sink;
}

/* auto looks at the first block that it can judge, and again every so often. */
static bool should_code(struct vv_flush *f, struct block *b)
{
	size_t n = b->raw_len < SAMPLE ? b->raw_len : SAMPLE;

	if (!f->opt.codec || !f->opt.automatic)
		return f->opt.codec != NULL;
	if (n < 4096)
		return false;
	if (f->sampled_at && f->pos - f->sampled_at < SAMPLE_EVERY)
		return f->coding;
	if (b->part[0].iov_len < n && gather(b) < 0)
		return false;
	f->coding = pays(f, b->part[0].iov_base, n);
	f->sampled_at = vv_store_rate(f->put->store) > 0 ? f->pos : 0;
	return f->coding;
}

/* Waits for the oldest block and writes it. */
static int write_oldest(struct vv_flush *f)
{
	struct block *b = f->ring[f->head];
	struct iovec coded;
	int rc;

	vv_pool_wait(f->pool, &b->task);
	f->head = (f->head + 1) % f->size;
	f->count--;
	if (b->rc)
		return vv_err_restore(&b->error);
	coded = (struct iovec){ b->coded, b->stored_len };
	rc = b->stored_len ? vv_store_put_write(f->put, &coded, 1) : vv_store_put_write(f->put, b->part, b->n_parts);
	if (rc == 0)
		rc = vv_payload_extent_add(&f->blocks.extent, f->pos, b->raw_len, 0);
	if (rc == 0)
		rc = vv_payload_block_add(&f->blocks, b->stored_len ? f->opt.codec->number : 0, (uint32_t)b->raw_len,
					  (uint32_t)(b->stored_len ? b->stored_len : b->raw_len), b->check);
	f->pos += b->raw_len;
	b->n_parts = 0;
	b->raw_len = 0;
	b->gathered = false;
	return rc;
}

static int send(struct vv_flush *f, struct block *b)
{
	b->code = should_code(f, b);
	b->task.run = run_block;
	vv_pool_submit(f->pool, &b->task);
	f->count++;
	return f->count == f->size ? write_oldest(f) : 0;
}

/* Notes n bytes at p in the block: joined to the last part, as a part of their own, or copied. */
static int note(struct block *b, const uint8_t *p, size_t n)
{
	struct iovec *last = b->n_parts ? &b->part[b->n_parts - 1] : NULL;
	union {
		const void *in;
		void *out;
	} at = { .in = p };

	if (!b->gathered && last && (uint8_t *)last->iov_base + last->iov_len == p) {
		last->iov_len += n;
	} else if (!b->gathered && b->n_parts < PARTS) {
		b->part[b->n_parts++] = (struct iovec){ at.out, n };
	} else {
		if (gather(b) < 0)
			return VV_ENOMEM;
		memcpy(b->raw + b->raw_len, p, n);
		b->part[0].iov_len += n;
	}
	b->raw_len += n;
	return 0;
}

int vv_flush_add(struct vv_flush *f, const void *p, size_t n)
{
	const uint8_t *from = p;

	while (n > 0) {
		struct block *b = filling(f);
		size_t take;
		int rc;

		if (!b)
			return VV_ENOMEM;
		take = f->opt.block - b->raw_len;
		if (take < n && n <= f->opt.block) { /* a chunk is not cut if it need not be */
			rc = send(f, b);
			if (rc)
				return rc;
			continue;
		}
		take = take < n ? take : n;
		rc = note(b, from, take);
		if (rc == 0 && b->raw_len == f->opt.block)
			rc = send(f, b);
		if (rc)
			return rc;
		from += take;
		n -= take;
	}
	return 0;
}

int vv_flush_finish(struct vv_flush *f, struct vv_blocks *out)
{
	struct block *b = f->ring[(f->head + f->count) % f->size];
	int rc = b && b->raw_len && f->count < f->size ? send(f, b) : 0;

	while (rc == 0 && f->count)
		rc = write_oldest(f);
	if (rc)
		return rc;
	*out = f->blocks;
	f->blocks = (struct vv_blocks){ 0 };
	return 0;
}

void vv_flush_free(struct vv_flush *f)
{
	if (!f)
		return;
	for (; f->count; f->count--, f->head = (f->head + 1) % f->size)
		vv_pool_wait(f->pool, &f->ring[f->head]->task);
	for (size_t i = 0; i < f->size; i++) {
		if (!f->ring[i])
			continue;
		vv_mem_free(f->ring[i]->raw);
		vv_mem_free(f->ring[i]->coded);
		vv_mem_free(f->ring[i]);
	}
	vv_payload_blocks_fini(&f->blocks);
	vv_mem_free(f);
}
