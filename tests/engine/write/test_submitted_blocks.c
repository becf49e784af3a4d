/* A store that writes submitted blocks from where they lie may end a write long before the call that submitted it returns. Until
 * that call has returned, the object belongs to the thread that writes: neither drain nor finish returns, so that the caller does
 * not read the object's length, add a table or end the object too early. A ring that gets smaller when blocks are compressed writes
 * all blocks in order, and frees them (for builds that look for leaks). A chunk that is longer than a block counts as stored when all
 * its blocks are written, in whatever order they are. */
#include "base/pool.h"
#include "engine/write/block_writer.h"
#include "engine/write/codec_choice.h"
#include "vv_config.h"
#include "store/backend/backend.h"
#include "support/gen.h"
#include "vv_test.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { UNIT = 4096, BLOCK = 256 << 10, BLOCKS = 40, LONG_MS = 5, SAMPLE_EVERY = 64 << 20, SMALL = 64 << 10, PIECES = BLOCK / SMALL, TAG = 7 };

static _Alignas(UNIT) uint8_t content[BLOCK];
static unsigned pause_ms;
static size_t n_submitted, n_written;
static int inside; /* calls that have not returned */

static int put_write(struct vv_put *p, const struct iovec *iov, int n)
{
	(void)p;
	(void)iov;
	(void)n;
	n_written++;
	return 0;
}

static void *end_write(void *arg)
{
	vv_backend_write_ended(arg);
	return NULL;
}

static int put_submit(struct vv_put *p, const struct iovec *iov, int n, struct vv_pending_write *w)
{
	pthread_t t;

	(void)p;
	(void)iov;
	(void)n;
	__atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
	n_submitted++;
	CHECK_EQ(pthread_create(&t, NULL, end_write, w), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	usleep(pause_ms * 1000);
	__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
	return 0;
}

static const struct vv_store_ops ops = { .put_write = put_write, .put_submit = put_submit };

static struct vv_block_writer *open_writer(struct vv_pool *pool, struct vv_put *put, const struct vv_block_writer_options *opt)
{
	struct vv_block_writer *f = NULL;

	CHECK_EQ(vv_block_writer_open(pool, put, opt, &f), 0);
	return f;
}

static void test_returned(struct vv_pool *pool, struct vv_store *s)
{
	struct vv_put put = { .store = s, .unit = UNIT };
	struct vv_block_writer_options opt = { .block = BLOCK };
	struct vv_block_writer *f = open_writer(pool, &put, &opt);
	const struct vv_blocks *blocks = NULL;

	pause_ms = LONG_MS;
	n_submitted = 0;
	for (size_t i = 1; i <= BLOCKS; i++) {
		CHECK_EQ(vv_block_writer_add(f, content, BLOCK, NULL, 0, false), 0);
		if (i % 2)
			continue;
		CHECK_EQ(vv_block_writer_drain(f, &blocks), 0);
		CHECK_EQ(__atomic_load_n(&inside, __ATOMIC_SEQ_CST), 0);
		CHECK_EQ(put.written, i * BLOCK);
		CHECK_EQ(blocks->n, i);
	}
	CHECK_EQ(n_submitted, BLOCKS);
	vv_block_writer_free(f);
}

static void test_smaller_ring(struct vv_pool *pool, struct vv_store *s)
{
	struct vv_put put = { .store = s, .unit = UNIT };
	struct vv_costs costs = { 0 };
	struct vv_block_writer_options opt = { .block = BLOCK, .costs = &costs, .always = true };
	struct vv_block_writer *f;
	struct vv_blocks blocks = { 0 };
	size_t random = SAMPLE_EVERY / BLOCK, i;

	CHECK_EQ(vv_codec_choice_parse("auto", &opt), 0);
	f = open_writer(pool, &put, &opt);
	pause_ms = 0;
	n_submitted = n_written = 0;
	for (i = 0; i < random; i++)
		CHECK_EQ(vv_block_writer_add(f, content, BLOCK, NULL, 0, false), 0);
	for (; i < random + BLOCKS; i++) {
		static uint8_t zeros[BLOCK];

		CHECK_EQ(vv_block_writer_add(f, zeros, BLOCK, NULL, 0, false), 0);
	}
	CHECK_EQ(vv_block_writer_finish(f, &blocks), 0);
	CHECK_EQ(n_submitted, random);
	CHECK_EQ(n_written, BLOCKS);
	CHECK_EQ(blocks.n, random + BLOCKS);
	for (i = 0; i < blocks.n; i++)
		CHECK_EQ(blocks.v[i].codec != VV_CODEC_NONE, i >= random);
	vv_payload_blocks_fini(&blocks);
	vv_block_writer_free(f);
}

static struct vv_pending_write *queue[PIECES];
static size_t n_queued, n_calls, n_stored;

static int queue_write(struct vv_put *p, const struct iovec *iov, int n)
{
	(void)p;
	(void)iov;
	(void)n;
	__atomic_add_fetch(&n_calls, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int queue_submit(struct vv_put *p, const struct iovec *iov, int n, struct vv_pending_write *w)
{
	queue[n_queued++] = w;
	return queue_write(p, iov, n);
}

static void note_stored(void *arg, const struct vv_block_writer_tag_count *owed, int n)
{
	(void)arg;
	for (int i = 0; i < n; i++)
		if (owed[i].tag == TAG)
			__atomic_add_fetch(&n_stored, owed[i].adds, __ATOMIC_SEQ_CST);
}

static void test_long_chunk(struct vv_pool *pool)
{
	static const struct vv_store_ops queueing = { .put_write = queue_write, .put_submit = queue_submit };
	struct vv_store s = { 0 };
	struct vv_put put = { .store = &s, .unit = UNIT };
	struct vv_block_writer_options opt = { .block = SMALL, .stored = note_stored };
	struct vv_block_writer *f;
	struct vv_blocks blocks = { 0 };

	CHECK_EQ(vv_backend_init(&s, &queueing, "test:", &(struct vv_store_options){ 0 }), 0);
	f = open_writer(pool, &put, &opt);
	CHECK_EQ(vv_block_writer_add(f, content, BLOCK, NULL, TAG, false), 0);
	CHECK_EQ(vv_block_writer_push(f), 0);
	while (__atomic_load_n(&n_calls, __ATOMIC_SEQ_CST) < PIECES)
		usleep(1000);
	CHECK(n_queued);
	for (size_t left = n_queued; left--;) { /* the last block first */
		CHECK_EQ(__atomic_load_n(&n_stored, __ATOMIC_SEQ_CST), 0);
		vv_backend_write_ended(queue[left]);
	}
	CHECK_EQ(vv_block_writer_finish(f, &blocks), 0);
	CHECK_EQ(n_stored, 1);
	CHECK_EQ(blocks.n, PIECES);
	vv_payload_blocks_fini(&blocks);
	vv_block_writer_free(f);
	vv_backend_fini(&s);
}

int main(void)
{
	struct vv_store s = { 0 };
	struct vv_pool *pool = NULL;
	uint64_t g = 20;

	for (size_t i = 0; i < BLOCK; i++)
		content[i] = (uint8_t)gen_below(&g, 256);
	CHECK_EQ(vv_backend_init(&s, &ops, "test:", &(struct vv_store_options){ 0 }), 0);
	CHECK_EQ(vv_pool_new(1, &pool), 0);
	test_returned(pool, &s);
	if (VV_HAVE_ZSTD)
		test_smaller_ring(pool, &s);
	test_long_chunk(pool);
	vv_pool_free(pool);
	vv_backend_fini(&s);
	return 0;
}
