// ctest: TIMEOUT 120 COST 3
/* Regions read at any place, in order and at random, by many threads at once, in much memory and in little: always the right bytes. What is damaged is
 * found before, and never handed out. */
#include "base/err.h"
#include "base/mem.h"
#include "engine/read/block_cache.h"
#include "engine/lineage/layer_file.h"
#include "engine/files/pack.h"
#include "engine/context.h"
#include "engine/files/unpack.h"
#include "engine/session/session.h"
#include "engine/upkeep/gc.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <sys/resource.h>

enum { FILES = 3, LEN = 20 << 20, EPOCHS = 3, STEP = 64 << 10, LITTLE = 64 << 10 };

static struct vv_pool *pool;
static char store_url[PLACE_MAX];
static uint8_t *bytes[FILES];
static bool overwrites; /* each epoch changes half of the pages that the epoch before changed */
static bool nibbles; /* noise that shrinks to half: most changes of its compressed bytes decode to other noise */

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* Noise, numbers, zeros, in each file; and in each epoch a few other pages, so that the last one's bytes lie in all of them. */
static void change(int epoch)
{
	uint64_t state = (uint64_t)epoch + 7;

	for (int i = 0; i < FILES; i++) {
		if (epoch == 1) {
			gen_bytes(&state, bytes[i], LEN / 2);
			for (size_t k = LEN / 2; k < LEN; k++)
				bytes[i][k] = (uint8_t)(k / 4096 * 7 + k % 64);
			memset(bytes[i] + LEN / 4, 0, 3 << 20);
		}
		for (size_t k = overwrites ? 0 : (size_t)epoch * 4096; k < LEN && epoch > 1; k += (overwrites ? 8U << epoch : 100) * 4096)
			gen_bytes(&state, bytes[i] + k, 4096);
		for (size_t k = 0; k < LEN && nibbles; k++)
			bytes[i][k] &= 0x0f;
	}
}

static void pack(const char *lineage, const char *options)
{
	const struct vv_pack_options how = { .effort = VV_PACK_FAST };
	char path[FILES][PLACE_MAX + 32], name[FILES][8], folder[PLACE_MAX];
	struct vv_pack_file file[FILES];

	place_make_dir(place_path(folder, "in"));
	for (int epoch = 1; epoch <= EPOCHS; epoch++) {
		struct vv_pack_report r = { 0 };
		varve *v = NULL;

		change(epoch);
		for (int i = 0; i < FILES; i++) {
			snprintf(name[i], sizeof(name[i]), "f%d", i);
			snprintf(path[i], sizeof(path[i]), "%s/%s", folder, name[i]);
			place_write(path[i], bytes[i], LEN);
			file[i] = (struct vv_pack_file){ path[i], name[i], false };
		}
		ok(vv_session_open(NULL, store_url, lineage, options, &v));
		ok(vv_pack_run(v, file, FILES, &how, &r));
		ok(varve_close(v));
		vv_pack_report_fini(&r);
	}
	place_remove(folder);
}

struct view {
	struct vv_store *store;
	struct vv_lineage lineage;
	struct vv_unpack u;
	const struct vv_runs *runs[FILES];
	struct vv_block_cache *cache;
	size_t number[FILES]; /* which of our files region i is */
};

static int open_view(struct view *w, const char *lineage, uint64_t memory)
{
	struct vv_store_options opt = { .create = false };

	*w = (struct view){ 0 };
	ok(vv_store_open(store_url, &opt, &w->store));
	ok(vv_catalog_open(w->store, lineage, false, &w->lineage));
	ok(vv_unpack_open(&w->lineage, EPOCHS, pool, &w->u));
	CHECK_EQ(w->u.n_files, FILES);
	for (size_t i = 0; i < FILES; i++) {
		w->runs[i] = &vv_unpack_at(&w->u, i).region->runs;
		w->number[i] = (size_t)(vv_unpack_at(&w->u, i).file->name[1] - '0');
	}
	return vv_block_cache_open(&w->lineage, pool, w->runs, FILES, memory, &w->cache);
}

static void close_view(struct view *w)
{
	vv_block_cache_close(w->cache);
	vv_unpack_close(&w->u);
	vv_store_close(w->store);
}

static void read_one(struct view *w, size_t i, uint64_t at, bool help, size_t read)
{
	struct vv_block_cache_piece p;

	ok(vv_block_cache_get(w->cache, i, at, help, &p));
	CHECK(p.len > 0 && p.len <= LEN - at);
	CHECK(memcmp(p.bytes, bytes[w->number[i]] + at, p.len) == 0);
	vv_block_cache_release(w->cache, &p, read, false);
}

/* Each piece is given back late, as one that is in a pipe. */
static void read_in_order(struct view *w)
{
	for (size_t i = 0; i < FILES; i++) {
		struct vv_block_cache_piece last = { 0 };
		uint64_t told = 0, at = 0;

		while (at < LEN) {
			struct vv_block_cache_piece p;

			vv_block_cache_read_ahead(w->cache, i, at, &told);
			ok(vv_block_cache_get(w->cache, i, at, true, &p));
			CHECK(p.len > 0 && p.len <= LEN - at);
			if (at)
				vv_block_cache_release(w->cache, &last, last.len, at % 3 == 0);
			CHECK(memcmp(p.bytes, bytes[w->number[i]] + at, p.len) == 0);
			last = p;
			at += p.len;
		}
		CHECK_EQ(at, LEN);
		vv_block_cache_release(w->cache, &last, last.len, true);
	}
}

static void read_random(void *arg, size_t k)
{
	uint64_t state = k + 1;

	for (int n = 0; n < 40; n++) {
		uint64_t x = gen_next(&state);

		read_one(arg, x % FILES, (x >> 8) % LEN, n % 2, n % 5 ? 0 : STEP);
	}
}

static void test_reading(const char *lineage, uint64_t memory)
{
	struct view w;
	size_t region = FILES;
	struct vv_block_cache_piece p;
	uint64_t bad = LEN;

	ok(open_view(&w, lineage, memory));
	for (size_t i = 0; i < FILES; i++)
		vv_block_cache_want(w.cache, i, 0, LEN);
	ok(vv_block_cache_check(w.cache, NULL, &region, &bad));
	CHECK_EQ(region, FILES);
	CHECK_EQ(bad, LEN);
	read_in_order(&w);
	read_in_order(&w); /* all was read to its end: once more */
	for (size_t i = 0; i < FILES; i++)
		vv_block_cache_expect_again(w.cache, i, STEP, LEN - 2 * STEP);
	if (memory > LITTLE)
		vv_pool_each(pool, 8, read_random, &w);
	else
		read_random(&w, 0);
	CHECK_EQ(vv_block_cache_get(w.cache, 0, LEN, false, &p), VV_EDAMAGED);
	close_view(&w);
}

/* Where one byte differs, what needs its block is refused; the rest is as it was. */
static void test_damage(const char *lineage)
{
	char layer[2 * PLACE_MAX];
	size_t n, region = FILES, bad = 0, good = 0;
	struct vv_block_cache_piece first;
	uint64_t where = LEN;
	struct view w;
	uint8_t *p;

	snprintf(layer, sizeof(layer), "%s/%s/00000000/0000000001.r0.layer", store_url, lineage);
	p = place_read(layer, &n);
	p[n / 2] ^= 0x10;
	place_write(layer, p, n);
	ok(open_view(&w, lineage, 256 << 20));
	ok(vv_block_cache_check(w.cache, NULL, &region, &where)); /* nothing was asked for */
	for (size_t i = 0; i < FILES; i++)
		vv_block_cache_want(w.cache, i, 0, LEN);
	CHECK_EQ(vv_block_cache_check(w.cache, NULL, &region, &where), VV_EDAMAGED);
	CHECK(region < FILES);
	CHECK(strstr(vv_err_last(), "checksum mismatch"));
	CHECK_EQ(vv_block_cache_get(w.cache, region, where, false, &first), VV_EDAMAGED); /* it is there */
	for (size_t i = 0; i < FILES; i++)
		for (uint64_t at = 0; at < LEN; at += STEP) {
			struct vv_block_cache_piece piece;
			int rc = vv_block_cache_get(w.cache, i, at, false, &piece);

			CHECK(rc == 0 || rc == VV_EDAMAGED);
			if (rc == 0) {
				CHECK(memcmp(piece.bytes, bytes[w.number[i]] + at, piece.len) == 0);
				vv_block_cache_release(w.cache, &piece, 0, false);
			}
			bad += rc != 0;
			good += rc == 0;
		}
	CHECK(bad > 0 && good > 0);
	close_view(&w);
	p[n / 2] ^= 0x10;
	place_write(layer, p, n);
	free(p);
}

/* A file that is written again after its check: an error or the right bytes, never others. */
static void test_changed_file(const char *lineage, bool shorter)
{
	char layer[2 * PLACE_MAX];
	uint8_t *p, *other, *got = malloc(STEP);
	size_t n, region, bad = 0;
	uint64_t where;
	struct view w;

	snprintf(layer, sizeof(layer), "%s/%s/00000000/0000000001.r0.layer", store_url, lineage);
	p = place_read(layer, &n);
	other = malloc(n);
	CHECK(got && other);
	for (size_t i = 0; i < n; i++)
		other[i] = p[i] ^ (i % (200 << 10) == 0);
	ok(open_view(&w, lineage, 256 << 20));
	for (size_t i = 0; i < FILES; i++)
		vv_block_cache_want(w.cache, i, 0, LEN);
	ok(vv_block_cache_check(w.cache, NULL, &region, &where));
	place_write(layer, other, shorter ? 100 : n);
	for (size_t i = 0; i < FILES; i++)
		for (uint64_t at = 0; at < LEN; at += STEP) {
			int rc = vv_block_cache_copy(w.cache, i, at, got, STEP);

			CHECK(rc != 0 || memcmp(got, bytes[w.number[i]] + at, STEP) == 0);
			bad += rc != 0;
		}
	CHECK(bad > 0);
	close_view(&w);
	place_write(layer, p, n);
	free(p);
	free(other);
	free(got);
}

static void test_missing(const char *lineage)
{
	char layer[2 * PLACE_MAX], aside[PLACE_MAX];
	struct view w;

	snprintf(layer, sizeof(layer), "%s/%s/00000000/0000000001.r0.layer", store_url, lineage);
	CHECK(rename(layer, place_path(aside, "aside")) == 0);
	CHECK_EQ(open_view(&w, lineage, 256 << 20), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "missing"));
	close_view(&w);
	CHECK(rename(aside, layer) == 0);
}

/* Fewer layers are open than there are. */
static void test_few_descriptors(const char *lineage)
{
	struct rlimit old, few;

	CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
	few = old;
	few.rlim_cur = 14;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	test_reading(lineage, 256 << 20);
	CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
}

/* gc rewrites a layer whose file the reader has closed: an error, never other bytes. */
static void test_rewritten(const char *lineage)
{
	uint8_t *got = malloc(STEP);
	struct rlimit old, few;
	struct vv_gc_report r;
	struct view w;
	size_t bad = 0;

	CHECK(got && getrlimit(RLIMIT_NOFILE, &old) == 0);
	few = old;
	few.rlim_cur = 14;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	ok(open_view(&w, lineage, 256 << 20));
	CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
	ok(vv_catalog_drop_epoch(&w.lineage, 2, NULL));
	ok(vv_gc_run(&w.lineage, 0, VV_GC_THOROUGH, NULL, &r));
	CHECK(r.rewritten > 0);
	for (size_t i = 0; i < FILES; i++)
		for (uint64_t at = 0; at < LEN; at += STEP) {
			int rc = vv_block_cache_copy(w.cache, i, at, got, STEP);

			CHECK(rc == VV_EIO ? strstr(vv_err_last(), "open the epoch again") != NULL : rc == 0);
			CHECK(rc || memcmp(got, bytes[w.number[i]] + at, STEP) == 0);
			bad += rc != 0;
		}
	CHECK(bad > 0);
	close_view(&w);
	test_reading(lineage, 256 << 20);
	free(got);
}

static void test_want_of_memory(const char *lineage)
{
	bool done = false;

	for (long at = 1; !done; at += at < 40 ? 1 : 7) {
		struct view w;
		int rc;

		vv_mem_fail_at(0);
		rc = open_view(&w, lineage, 256 << 20);
		ok(rc);
		vv_block_cache_close(w.cache);
		w.cache = NULL;
		vv_mem_fail_at(at);
		rc = vv_block_cache_open(&w.lineage, pool, w.runs, FILES, 256 << 20, &w.cache);
		done = vv_mem_asked() < at;
		vv_mem_fail_at(0);
		CHECK(rc == VV_ENOMEM || rc == 0);
		CHECK(done ? rc == 0 : true);
		close_view(&w);
	}
}

int main(void)
{
	place_path(store_url, "store");
	for (int i = 0; i < FILES; i++)
		CHECK((bytes[i] = malloc(LEN)));
	for (unsigned threads = 0; threads <= 3; threads += 3) {
		const char *coded = threads ? "coded" : "coded1", *plain = threads ? "plain" : "plain1";

		ok(vv_pool_new(threads, &pool));
		pack(coded, "mode=sync");
		test_reading(coded, 256 << 20);
		test_reading(coded, LITTLE);
		test_few_descriptors(coded);
		test_damage(coded);
		test_changed_file(coded, false);
		test_changed_file(coded, true);
		test_missing(coded);
		test_want_of_memory(coded);
		nibbles = true;
		pack(threads ? "nibbles" : "nibbles1", "mode=sync");
		test_changed_file(threads ? "nibbles" : "nibbles1", false);
		nibbles = false;
		pack(plain, "mode=sync codec=none");
		test_reading(plain, 256 << 20);
		test_reading(plain, LITTLE);
		test_damage(plain);
		test_changed_file(plain, false);
		test_changed_file(plain, true);
		overwrites = true;
		pack(threads ? "rewritten" : "rewritten1", "mode=sync");
		test_rewritten(threads ? "rewritten" : "rewritten1");
		overwrites = false;
		vv_pool_free(pool);
	}
	for (int i = 0; i < FILES; i++)
		free(bytes[i]);
	return 0;
}
