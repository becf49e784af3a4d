// ctest: TIMEOUT 60 COST 2
/* Threads that need the same compressed blocks at the same time, in memory for all, for a few, or for none of them: each gets the right bytes, or none. */
#include "engine/read/decoded_blocks.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_config.h"
#include "vv_test.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <varve/varve.h>

enum { BLOCK = 64 << 10, BLOCKS = 96, THREADS = 6, ROUNDS = 4 };

static struct vv_open_layers layers;
static struct vv_decoded_blocks decoded;
static uint8_t *want[BLOCKS + 1];
static atomic_size_t got, refused;

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* Words that shrink to a half. */
static void store_layer(const char *store)
{
	size_t n = (size_t)BLOCK * BLOCKS;
	uint8_t *p = malloc(n);
	uint64_t state = 7;
	varve *v = NULL;

	CHECK(p);
	gen_bytes(&state, p, n);
	for (size_t i = 0; i < n; i += 2)
		p[i] = 0x3f;
	ok(varve_open(store, "L", "codec=zstd block=65536", &v));
	ok(varve_protect(v, "p", p, n));
	ok(varve_checkpoint(v));
	ok(varve_close(v));
	free(p);
}

static void read_wanted(const struct vv_layer_file *file)
{
	uint8_t *stored = malloc(2 * BLOCK);

	CHECK(stored && file->blocks.n >= BLOCKS && file->blocks.n <= BLOCKS + 1);
	for (size_t b = 0; b < file->blocks.n; b++) {
		CHECK((want[b] = malloc(file->blocks.v[b].raw_len)));
		CHECK(file->blocks.v[b].stored_len <= 2 * BLOCK);
		ok(vv_layer_file_read_block(layers.file[0], b, want[b], stored));
	}
	free(stored);
}

static void check_bound(void)
{
	pthread_mutex_lock(&decoded.lock);
	CHECK(decoded.bytes <= decoded.most);
	pthread_mutex_unlock(&decoded.lock);
}

static void get_one(size_t b)
{
	struct vv_decoded_block *block = vv_decoded_blocks_get(&decoded, 0, b);

	if (block)
		CHECK(memcmp(vv_decoded_blocks_bytes(block), want[b], layers.file[0]->blocks.v[b].raw_len) == 0);
	atomic_fetch_add(block ? &got : &refused, 1);
	check_bound();
	if (block)
		vv_decoded_blocks_release(&decoded, block);
}

/* In order, as a restart does, or anywhere. */
static void *get_all(void *arg)
{
	uint64_t state = (uintptr_t)arg;
	size_t n = layers.file[0]->blocks.n;

	for (int round = 0; round < ROUNDS; round++)
		for (size_t b = 0; b < n; b++)
			get_one(round % 2 ? (size_t)gen_below(&state, n) : b);
	return NULL;
}

static void run(uint64_t most)
{
	pthread_t thread[THREADS];
	size_t all = (size_t)THREADS * ROUNDS * layers.file[0]->blocks.n;

	got = refused = 0;
	ok(vv_decoded_blocks_open(&decoded, &layers, most));
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, get_all, (void *)(i + 1)) == 0);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	vv_decoded_blocks_close(&decoded);
	CHECK_EQ(got + refused, all);
	if (most >= (uint64_t)2 * THREADS * 2 * BLOCK) /* each thread holds one block and decodes another one */
		CHECK_EQ(refused, 0);
	if (most < BLOCK / 2)
		CHECK_EQ(got, 0);
}

/* A damaged block is refused, however often, and those around it are not. */
static void run_damaged(size_t damaged)
{
	uint64_t *check = &layers.file[0]->blocks.v[damaged].check;

	got = refused = 0;
	*check ^= 1;
	ok(vv_decoded_blocks_open(&decoded, &layers, UINT64_MAX / 2));
	for (int i = 0; i < 2; i++)
		for (size_t b = damaged - 1; b <= damaged + 1; b++)
			get_one(b);
	vv_decoded_blocks_close(&decoded);
	*check ^= 1;
	CHECK_EQ(refused, 2);
	CHECK_EQ(got, 4);
}

int main(void)
{
	static const uint64_t most[] = { 0, BLOCK, 3 * BLOCK, 2 * THREADS * 2 * BLOCK, (uint64_t)BLOCK * BLOCKS / 2, UINT64_MAX / 2 };
	struct vv_store_options opt = { 0 };
	struct vv_lineage lineage;
	struct vv_store *s;
	struct vv_pool *pool;
	char store[PLACE_MAX];

	if (!VV_HAVE_ZSTD)
		SKIP("varve was built without zstd");
	place_path(store, "decoded");
	store_layer(store);
	ok(vv_store_open(store, &opt, &s));
	ok(vv_catalog_open(s, "L", false, &lineage));
	ok(vv_pool_new(2, &pool));
	ok(vv_open_layers_open(&layers, 0, &lineage, pool, vv_run_layer(1, 0), 0, 0));
	layers.n = 1;
	read_wanted(layers.file[0]);
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++)
		run(most[i]);
	run_damaged(5);
	vv_open_layers_close(&layers, 0);
	vv_pool_free(pool);
	vv_store_close(s);
	place_remove(store);
	for (size_t b = 0; b <= BLOCKS; b++)
		free(want[b]);
	return 0;
}
