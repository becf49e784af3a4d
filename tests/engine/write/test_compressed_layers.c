// ctest: TIMEOUT 120 COST 2
/* Layers whose tables and blocks are coded: what is in them, that they restore, that damage is seen, what gc and a change of the
 * codec make of them; and that a session without codec writes what it always wrote. */
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "codec/codec.h"
#include "engine/upkeep/gc.h"
#include "engine/lineage/catalog.h"
#include "engine/lineage/layer_file.h"
#include "engine/upkeep/verify.h"
#include "support/gen.h"
#include "support/settle.h"
#include "vv_test.h"
#include <varve/varve.h>

enum { N = 40000, TYPES = 5 };

static const struct {
	const char *name;
	enum varve_type type;
	unsigned width;
} types[TYPES] = {
	{ "u16", VARVE_U16, 2 }, { "u32", VARVE_U32, 4 }, { "u64", VARVE_U64, 8 }, { "c128", VARVE_C128, 16 }, { "u8", VARVE_U8, 1 },
};

struct world {
	const char *url;
	struct vv_store *store;
	struct vv_lineage lineage;
	uint8_t *p;
	size_t len;
	unsigned width;
};

/* Counters, some of which have been counted on since the epoch before; the others repeat. */
static void fill(const struct world *w, unsigned epoch)
{
	memset(w->p, 0, w->len);
	for (size_t i = 0; i < w->len / w->width; i++) {
		uint64_t state = i / 64 % 3 ? i : i + 1000000 * epoch, v = gen_below(&state, 700);

		w->p[i * w->width] = (uint8_t)(w->width > 1 ? v : v % 20);
		if (w->width > 1)
			w->p[i * w->width + 1] = (uint8_t)(v >> 8);
	}
}

static varve *open_session(struct world *w, size_t type, const char *options)
{
	size_t shape[1] = { N };
	varve *v = NULL;

	w->width = types[type].width;
	w->len = (size_t)N * w->width;
	CHECK_EQ(varve_open(w->url, "L", options, &v), 0);
	CHECK_EQ(varve_protect_array(v, types[type].name, w->p, types[type].type, 1, shape), 0);
	return v;
}

static void write_epochs(struct world *w, size_t type, const char *options, unsigned from, unsigned to)
{
	varve *v = open_session(w, type, options);

	for (unsigned e = from; e <= to; e++) {
		fill(w, e);
		CHECK_EQ(settle_checkpoint(v), 0);
		CHECK_EQ(varve_epoch(v), e);
	}
	CHECK_EQ(varve_close(v), 0);
}

static void check_epoch(struct world *w, size_t type, unsigned epoch)
{
	varve *v = open_session(w, type, NULL);
	uint8_t *want = malloc(w->len);

	CHECK(want);
	fill(w, epoch);
	memcpy(want, w->p, w->len);
	memset(w->p, 0xa5, w->len);
	CHECK_EQ(varve_restart(v, epoch), 1);
	CHECK(memcmp(w->p, want, w->len) == 0);
	free(want);
	CHECK_EQ(varve_close(v), 0);
}

static void tell(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

static size_t verify(struct world *w, vv_verify_report_fn told)
{
	struct vv_verify_report report = { 0 };
	struct vv_pool *pool = NULL;

	CHECK_EQ(vv_pool_new(2, &pool), 0);
	CHECK_EQ(vv_verify_run(&w->lineage, pool, 0, false, told, NULL, NULL, &report), 0);
	vv_pool_free(pool);
	return report.problems;
}

static struct vv_layer_file *open_layer(const struct world *w, unsigned epoch)
{
	struct vv_layer_file *f = NULL;

	CHECK_EQ(vv_layer_file_open(&w->lineage, vv_run_layer(epoch, 0), VV_LAYER_FILE_HEAD | VV_LAYER_FILE_BLOCKS, &f), 0);
	return f;
}

static bool has_coded_runs(const struct world *w, unsigned epoch)
{
	struct vv_layer_file *f = open_layer(w, epoch);
	bool coded = vv_layer_section(&f->frame, VV_SECTION_RUNS)->flags & VV_SECTION_CODED;

	vv_layer_file_close(f);
	return coded;
}

/* All blocks of one codec, and how many bytes the layer has. */
static uint64_t check_codec(const struct world *w, unsigned epoch, uint32_t codec)
{
	struct vv_layer_file *f = open_layer(w, epoch);
	uint64_t size = f->get->size;

	CHECK(f->blocks.n > 0);
	for (size_t i = 0; i < f->blocks.n; i++)
		CHECK_EQ(f->blocks.v[i].codec, codec);
	vv_layer_file_close(f);
	return size;
}

static void begin(struct world *w, const char *url)
{
	struct vv_store_options opt = { .create = true };
	varve *v = NULL;

	*w = (struct world){ .url = url, .p = malloc((size_t)N * 16) };
	CHECK(w->p);
	CHECK_EQ(vv_store_open(url, &opt, &w->store), 0);
	CHECK_EQ(varve_open(url, "L", NULL, &v), 0);
	CHECK_EQ(varve_close(v), 0);
	CHECK_EQ(vv_catalog_open(w->store, "L", false, &w->lineage), 0);
}

static void end(struct world *w)
{
	vv_store_close(w->store);
	free(w->p);
}

/* Numbers are coded as such, bytes are not; and what comes back is what was there. */
static void test_types(void)
{
	char url[32];

	for (size_t t = 0; t < TYPES; t++) {
		uint64_t plain, coded;
		struct world w;

		snprintf(url, sizeof(url), "mem:types-%zu", t);
		begin(&w, url);
		write_epochs(&w, t, "chunk=128 codec=none", 1, 1);
		write_epochs(&w, t, "chunk=128 codec=zstd", 2, 3);
		plain = check_codec(&w, 1, VV_CODEC_NONE);
		coded = check_codec(&w, 2, types[t].width > 1 ? VV_CODEC_TYPED : VV_CODEC_ZSTD);
		CHECK(!has_coded_runs(&w, 1) && has_coded_runs(&w, 2));
		CHECK(coded < plain / 2);
		for (unsigned e = 1; e <= 3; e++)
			check_epoch(&w, t, e);
		CHECK_EQ(verify(&w, tell), 0);
		end(&w);
	}
}

/* Regions of two widths in one block: neither is taken for the other. */
static void test_mixed(void)
{
	size_t shape[1] = { 100 };
	uint32_t a[100], b[100];
	uint16_t c[100];
	struct world w;
	varve *v = NULL;

	begin(&w, "mem:mixed");
	for (uint32_t i = 0; i < 100; i++) {
		a[i] = i;
		b[i] = 5000 - i * i % 77;
		c[i] = (uint16_t)(i * 3);
	}
	CHECK_EQ(varve_open("mem:mixed", "L", "chunk=64 codec=zstd", &v), 0);
	CHECK_EQ(varve_protect_array(v, "a", a, VARVE_U32, 1, shape), 0);
	CHECK_EQ(varve_protect_array(v, "b", b, VARVE_F32, 1, shape), 0);
	CHECK_EQ(settle_checkpoint(v), 0);
	check_codec(&w, 1, VV_CODEC_TYPED);
	CHECK_EQ(varve_protect_array(v, "c", c, VARVE_U16, 1, shape), 0);
	for (uint32_t i = 0; i < 100; i++)
		a[i] = i * 7;
	CHECK_EQ(settle_checkpoint(v), 0);
	check_codec(&w, 2, VV_CODEC_ZSTD);
	CHECK_EQ(verify(&w, tell), 0);
	CHECK_EQ(varve_close(v), 0);
	end(&w);
}

/* The same layer whatever the number of threads, and whoever was quicker. */
static void test_threads(void)
{
	struct vv_blocks was = { 0 };

	for (int threads = 1; threads <= 4; threads++) {
		char url[32], options[64];
		struct vv_layer_file *f;
		struct world w;

		snprintf(url, sizeof(url), "mem:threads-%d", threads);
		snprintf(options, sizeof(options), "chunk=128 mode=sync block=16KiB codec=zstd threads=%d", threads);
		begin(&w, url);
		write_epochs(&w, 2, options, 1, 1);
		f = open_layer(&w, 1);
		CHECK(f->blocks.n > 4 && (threads == 1 || f->blocks.n == was.n));
		for (size_t i = 0; threads > 1 && i < was.n; i++)
			CHECK(was.v[i].check == f->blocks.v[i].check && was.v[i].codec == f->blocks.v[i].codec);
		vv_payload_blocks_fini(&was);
		was = f->blocks;
		f->blocks = (struct vv_blocks){ 0 };
		vv_layer_file_close(f);
		end(&w);
	}
	vv_payload_blocks_fini(&was);
}

/* An epoch in the middle is dropped: its layer keeps what others need, coded as it was, and is shorter. */
static void test_gc(void)
{
	struct vv_gc_report report = { 0 };
	uint64_t bytes, size[5], sum = 0;
	struct world w;

	begin(&w, "mem:gc");
	write_epochs(&w, 1, "chunk=128 block=32KiB codec=zstd", 1, 4);
	for (unsigned e = 1; e <= 4; e++)
		size[e] = check_codec(&w, e, VV_CODEC_TYPED);
	CHECK_EQ(vv_catalog_drop_epoch(&w.lineage, 1, &bytes), 0);
	CHECK_EQ(vv_catalog_drop_epoch(&w.lineage, 2, &bytes), 0);
	CHECK_EQ(vv_gc_run(&w.lineage, 0, VV_GC_THOROUGH, NULL, &report), 0);
	CHECK(report.rewritten > 0 && report.bytes_after < report.bytes_before);
	for (unsigned e = 1; e <= 4; e++) {
		struct vv_layer_file *f = NULL;

		if (vv_layer_file_open(&w.lineage, vv_run_layer(e, 0), VV_LAYER_FILE_HEAD | VV_LAYER_FILE_BLOCKS, &f) < 0)
			continue;
		CHECK(f->get->size <= size[e]);
		for (size_t i = 0; i < f->blocks.n; i++)
			sum += f->blocks.v[i].codec == VV_CODEC_TYPED;
		vv_layer_file_close(f);
	}
	CHECK(sum > 0);
	check_epoch(&w, 1, 3);
	check_epoch(&w, 1, 4);
	CHECK_EQ(verify(&w, tell), 0);
	end(&w);
}

static void check_restart(struct world *w)
{
	varve *v = open_session(w, 0, "log=error");
	uint8_t *want = malloc(w->len);
	int rc;

	CHECK(want);
	fill(w, 1);
	memcpy(want, w->p, w->len);
	memset(w->p, 0xa5, w->len);
	rc = varve_restart(v, 1);
	CHECK(rc == 1 ? memcmp(w->p, want, w->len) == 0 : rc == VARVE_EDAMAGED);
	free(want);
	CHECK_EQ(varve_close(v), 0);
}

/* Bytes all over a coded layer, changed: verify sees it, and a restart gives the right bytes or none. */
static void test_flips(void)
{
	struct world w;
	char object[VV_NAME_MAX];
	struct vv_get *get = NULL;
	uint8_t *image;
	size_t n;

	begin(&w, "mem:flips");
	write_epochs(&w, 0, "chunk=128 codec=zstd", 1, 1);
	vv_name_layer(object, "L", 1, 0);
	CHECK_EQ(vv_store_get_open(w.store, object, &get), 0);
	n = (size_t)get->size;
	image = malloc(n);
	CHECK(image && vv_store_get_read(get, 0, image, n) == 0);
	vv_store_get_close(get);
	for (size_t i = 0; i < n; i += 1 + n / 600) {
		struct iovec iov = { image, n };
		struct vv_put *put = NULL;

		image[i] ^= 0x10;
		CHECK_EQ(vv_store_put_open(w.store, object, n, &put), 0);
		CHECK_EQ(vv_store_put_write(put, &iov, 1), 0);
		CHECK_EQ(vv_store_put_commit(put), 0);
		CHECK(verify(&w, NULL) > 0);
		check_restart(&w);
		image[i] ^= 0x10;
	}
	free(image);
	end(&w);
}

/* Without zstd nothing is coded. */
static void test_without(void)
{
	struct world w;

	begin(&w, "mem:without");
	write_epochs(&w, 1, "chunk=128 codec=none", 1, 2);
	check_codec(&w, 1, VV_CODEC_NONE);
	CHECK(!has_coded_runs(&w, 1) && !has_coded_runs(&w, 2));
	check_epoch(&w, 1, 2);
	end(&w);
}

int main(void)
{
	test_without();
	if (!vv_codec_numbered(VV_CODEC_ZSTD)) {
		printf("built without zstd: the rest is left out\n");
		return 0;
	}
	test_types();
	test_mixed();
	test_threads();
	test_gc();
	test_flips();
	return 0;
}
