// ctest: TIMEOUT 240 PROCESSORS 2 COST 5
/* Sets of files that come and go, grow, shrink, shift and change, packed epoch by epoch in every way there is, by one rank and by several: every
 * epoch gives back every byte, after epochs were dropped and their space was taken back too; and an allocation that fails at every step. */
#include "base/mem.h"
#include "codec/codec.h"
#include "engine/lineage/catalog.h"
#include "engine/lineage/run_table.h"
#include "engine/session/session.h"
#include "engine/upkeep/gc.h"
#include "engine/files/pack.h"
#include "engine/read/restore.h"
#include "engine/context.h"
#include "engine/upkeep/verify.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 9, EPOCHS = 6, LARGEST = 3 << 20 };

struct content {
	char name[64];
	bool there;
	uint8_t *p;
	size_t n;
};

struct set {
	struct content file[FILES];
};

struct world {
	char dir[PLACE_MAX], store[PLACE_MAX];
	uint64_t state;
	struct set now, past[EPOCHS + 1]; /* by epoch */
	size_t epochs;
	uint64_t fresh; /* in the last one */
};

/* ---- content ----------------------------------------------------------------------------------------------------------------- */

/* Smooth doubles in a .npy of three dimensions: something that a reader knows and a predictor likes. */
static size_t smooth(uint8_t *p, size_t side, double phase)
{
	char head[128];
	int n = snprintf(head, sizeof(head), "{'descr': '<f8', 'fortran_order': False, 'shape': (%zu, %zu, %zu), }", side, side, side);
	static const uint8_t magic[] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0 };

	memset(p, ' ', 128);
	memcpy(p, magic, sizeof(magic));
	memcpy(p + 10, head, (size_t)n);
	p[127] = '\n';
	for (size_t i = 0; i < side * side * side; i++) {
		double x = (double)(i % side), y = (double)(i / side % side), z = (double)(i / side / side);
		double v = 1 + phase * x * 0.01 + y * y * 0.001 - z * 0.02 + x * y * z * 1e-5;

		memcpy(p + 128 + 8 * i, &v, 8);
	}
	return 128 + 8 * side * side * side;
}

static void make(struct world *w, struct content *c, size_t i)
{
	size_t n = 1 + (size_t)gen_below(&w->state, 300000);

	c->p = realloc(c->p, LARGEST);
	MUST(c->p);
	snprintf(c->name, sizeof(c->name), i % 3 ? "rank%zu.dat" : "sub/rank%02zu.npy", i);
	c->there = true;
	switch (i % 5) {
	case 0:
		n = smooth(c->p, 20 + 5 * i, (double)gen_below(&w->state, 9));
		break;
	case 1:
		gen_bytes(&w->state, c->p, n);
		break;
	case 2:
		gen_text(&w->state, c->p, n);
		break;
	case 3:
		memset(c->p, 0, n);
		gen_bytes(&w->state, c->p + n / 2, n / 8);
		break;
	default:
		n = gen_below(&w->state, 3) ? n % 100 : 0;
		gen_bytes(&w->state, c->p, n);
	}
	c->n = n;
}

static void change(struct world *w, struct content *c, size_t i)
{
	size_t at = c->n ? (size_t)gen_below(&w->state, c->n) : 0, n = (size_t)gen_below(&w->state, 40000);

	switch (gen_below(&w->state, 8)) {
	case 0: /* goes, or comes back */
		c->there = !c->there;
		break;
	case 1: /* all new */
		make(w, c, i);
		break;
	case 2: /* shifted */
		if (c->n + 13 < LARGEST) {
			memmove(c->p + at + 13, c->p + at, c->n - at);
			c->n += 13;
		}
		break;
	case 3: /* shorter */
		c->n = at;
		break;
	case 4: /* longer */
		if (c->n + n < LARGEST)
			gen_bytes(&w->state, c->p + c->n, n);
		c->n += c->n + n < LARGEST ? n : 0;
		break;
	case 5: /* a stretch of it */
		gen_bytes(&w->state, c->p + at, n < c->n - at ? n : c->n - at);
		break;
	case 6: /* the same as another */
		if (w->now.file[0].n <= LARGEST) {
			memcpy(c->p, w->now.file[0].p, w->now.file[0].n);
			c->n = w->now.file[0].n;
		}
		break;
	default: /* nothing */
		break;
	}
}

static void keep(const struct set *from, struct set *to)
{
	*to = *from;
	for (size_t i = 0; i < FILES; i++) {
		to->file[i].p = malloc(from->file[i].n + 1);
		MUST(to->file[i].p);
		memcpy(to->file[i].p, from->file[i].p, from->file[i].n);
	}
}

static void forget(struct set *s)
{
	for (size_t i = 0; i < FILES; i++)
		free(s->file[i].p);
	*s = (struct set){ 0 };
}

static size_t lay_out(struct world *w, struct vv_pack_file *file, char path[FILES][PLACE_MAX + 80])
{
	char sub[PLACE_MAX + 8];
	size_t n = 0;

	place_remove(w->dir);
	place_make_dir(w->dir);
	snprintf(sub, sizeof(sub), "%s/sub", w->dir);
	place_make_dir(sub);
	for (size_t i = 0; i < FILES; i++) {
		const struct content *c = &w->now.file[i];

		if (!c->there)
			continue;
		snprintf(path[n], PLACE_MAX + 80, "%s/%s", w->dir, c->name);
		place_write(path[n], c->p, c->n);
		file[n] = (struct vv_pack_file){ path[n], c->name, false };
		n++;
	}
	return n;
}

/* ---- looking ------------------------------------------------------------------------------------------------------------------ */

static void tell(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

static const struct content *wanted(const struct set *s, const char *name)
{
	for (size_t i = 0; i < FILES; i++)
		if (s->file[i].there && strcmp(s->file[i].name, name) == 0)
			return &s->file[i];
	return NULL;
}

static size_t compare_rank(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, uint32_t rank, const struct set *s)
{
	struct vv_run_table t = { 0 };
	struct vv_manifest m = { 0 };
	const struct vv_run_table_region *r = NULL;
	uint8_t *bytes;
	size_t n;

	CHECK_EQ(vv_run_table_load(lin, epoch, rank, NULL, &t), 0);
	CHECK_EQ(vv_run_table_region(lin, &t, VV_MANIFEST_REGION, &r), 0);
	bytes = malloc(LARGEST + r->shape.len);
	CHECK(bytes);
	CHECK_EQ(vv_restore_read(lin, pool, &(struct vv_want){ &r->runs, 0, r->shape.len, bytes, NULL }, 1), 0);
	CHECK_EQ(vv_manifest_get(&m, bytes, (size_t)r->shape.len), 0);
	for (size_t i = 0; i < m.n_files; i++) {
		const struct content *c = wanted(s, m.file[i].name);

		CHECK(c && m.file[i].region < t.n);
		r = &t.region[m.file[i].region];
		CHECK_EQ(r->shape.len, c->n);
		CHECK(vv_run_covers(&r->runs, r->shape.len));
		CHECK_EQ(vv_restore_read(lin, pool, &(struct vv_want){ &r->runs, 0, r->shape.len, bytes, NULL }, 1), 0);
		CHECK(memcmp(bytes, c->p, c->n) == 0);
	}
	n = m.n_files;
	free(bytes);
	vv_manifest_fini(&m);
	vv_run_table_fini(&t);
	return n;
}

static void compare(struct world *w, const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	size_t found = 0, there = 0;

	CHECK_EQ(vv_catalog_commit(lin, epoch, &c), 0);
	for (uint32_t rank = 0; rank < c.n_ranks; rank++)
		found += compare_rank(lin, pool, epoch, rank, &w->past[epoch]);
	for (size_t i = 0; i < FILES; i++)
		there += w->past[epoch].file[i].there;
	CHECK_EQ(found, there);
	vv_commit_fini(&c);
}

static void look(struct world *w, struct vv_lineage *lin)
{
	struct vv_verify_report report = { 0 };
	struct vv_listing l = { 0 };
	struct vv_pool *pool = NULL;

	CHECK_EQ(vv_pool_new(1, &pool), 0);
	CHECK_EQ(vv_catalog_list(lin, 0, &l), 0);
	for (size_t i = 0; i < l.n_epochs; i++)
		compare(w, lin, pool, l.epoch[i]);
	CHECK_EQ(vv_verify_run(lin, pool, 0, false, tell, NULL, NULL, &report), 0);
	CHECK_EQ(report.problems, 0);
	vv_catalog_listing_fini(&l);
	vv_pool_free(pool);
}

/* ---- histories ------------------------------------------------------------------------------------------------------------------ */

struct turn {
	struct world *w;
	const char *options;
	struct vv_pack_options how;
	struct vv_pack_file file[FILES];
	size_t n;
	int code[8];
};

static void pack_rank(const struct varve_comm *comm, void *arg)
{
	struct turn *t = arg;
	struct vv_pack_report report = { 0 };
	varve *v = NULL;

	MUST(vv_session_open(comm->size > 1 ? comm : NULL, t->w->store, "set", t->options, &v) == 0);
	t->code[comm->rank] = vv_pack_run(v, t->file, t->n, &t->how, &report);
	if (t->code[comm->rank])
		fprintf(stderr, "rank %u: %s\n", comm->rank, vv_err_last());
	else
		MUST(report.epoch == t->w->epochs + 1 && report.files == t->n);
	if (comm->rank == 0)
		t->w->fresh = report.fresh;
	vv_pack_report_fini(&report);
	MUST(varve_close(v) == 0);
}

static void pack(struct world *w, const char *options, const struct vv_pack_options *how, uint32_t ranks)
{
	static char path[FILES][PLACE_MAX + 80];
	struct turn t = { .w = w, .options = options, .how = *how };

	t.n = lay_out(w, t.file, path);
	if (t.n == 0)
		return;
	threadcomm_run(ranks, pack_rank, &t);
	for (uint32_t k = 0; k < ranks; k++)
		CHECK_EQ(t.code[k], 0);
	w->epochs++;
	keep(&w->now, &w->past[w->epochs]);
}

static void test_history(uint64_t seed, uint32_t ranks)
{
	static const char *const options[] = { "mode=sync threads=1", "mode=sync threads=3", "mode=sync chunk=512", "mode=sync codec=none",
					       "mode=sync digest=sha256 chunk=16384" };
	struct world *w = calloc(1, sizeof(*w));
	const char *option = options[seed % 5];
	struct vv_lineage lin;
	struct vv_store *store = NULL;
	struct vv_gc_report report;

	must_begin("seed %" PRIu64 ", %u ranks", seed, ranks);
	CHECK(w);
	w->state = seed;
	place_path(w->dir, "files");
	place_path(w->store, "store");
	place_remove(w->store);
	for (size_t i = 0; i < FILES; i++)
		make(w, &w->now.file[i], i);
	for (size_t e = 0; e < EPOCHS; e++) {
		struct vv_pack_options how = { .effort = (enum vv_pack_effort)gen_below(&w->state, 3) };

		if (vv_codec_numbered(VV_CODEC_PAPER) && gen_below(&w->state, 4) == 0) {
			how.scheme = (enum vv_pack_scheme)gen_below(&w->state, 5);
			how.group = (uint32_t)gen_below(&w->state, 4);
			how.block = gen_below(&w->state, 2) ? 0 : 1000;
			how.single = gen_below(&w->state, 2);
		}
		for (size_t i = 0; e && i < FILES; i++)
			change(w, &w->now.file[i], i);
		pack(w, option, &how, ranks > 1 ? 1 + (uint32_t)gen_below(&w->state, ranks) : 1); /* another number of them each time */
	}
	CHECK_EQ(vv_store_open(w->store, &(struct vv_store_options){ 0 }, &store), 0);
	CHECK_EQ(vv_catalog_open(store, "set", false, &lin), 0);
	look(w, &lin);
	for (uint64_t e = 1; e < w->epochs; e++)
		if (gen_below(&w->state, 2))
			CHECK_EQ(vv_catalog_drop_epoch(&lin, e, NULL), 0);
	CHECK_EQ(vv_gc_run(&lin, 0, VV_GC_THOROUGH, NULL, &report), 0);
	look(w, &lin);
	vv_store_close(store);
	forget(&w->now);
	for (size_t e = 0; e <= EPOCHS; e++)
		forget(&w->past[e]);
	free(w);
}
/* Files that several ranks packed, packed by one, and the other way round: nothing of it is stored again. */
static void test_regroup(void)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct vv_pack_options how = { .effort = VV_PACK_DEFAULT };
	static const uint32_t ranks[] = { 3, 1, 4, 2 };
	uint64_t first = 0;

	CHECK(w);
	w->state = 77;
	place_path(w->dir, "files");
	place_path(w->store, "regroup");
	for (size_t i = 0; i < FILES; i++)
		make(w, &w->now.file[i], i);
	for (size_t e = 0; e < 4; e++) {
		w->fresh = 0;
		pack(w, "mode=sync", &how, ranks[e]);
		first = e ? first : w->fresh;
		CHECK(e == 0 ? first > 500000 : w->fresh < first / 50);
	}
	forget(&w->now);
	for (size_t e = 0; e <= EPOCHS; e++)
		forget(&w->past[e]);
	free(w);
}

/* Wherever memory runs out: an error, and the next try succeeds. */
static void test_no_memory(void)
{
	static uint8_t bytes[100000];
	char store[PLACE_MAX], path[PLACE_MAX];
	struct vv_pack_options how = { .effort = VV_PACK_DEFAULT };
	struct vv_pack_file file;
	struct vv_pack_report r = { 0 };
	long n = 1, asked = LONG_MAX;
	int rc, failed = 0;

	place_path(store, "memory");
	place_path(path, "thing.npy");
	place_write(path, bytes, smooth(bytes, 20, 1));
	file = (struct vv_pack_file){ path, "thing.npy", false };
	for (; asked >= n - 1; n++) { /* the last one did not come so far */
		varve *v = NULL;

		CHECK_EQ(vv_session_open(NULL, store, "set", "mode=sync threads=1", &v), 0);
		vv_mem_fail_at(n);
		rc = vv_pack_run(v, &file, 1, &how, &r);
		asked = vv_mem_asked();
		vv_mem_fail_at(0);
		failed += rc != 0;
		CHECK(rc == 0 || rc == VV_ENOMEM);
		if (rc == 0)
			vv_pack_report_fini(&r);
		CHECK_EQ(varve_close(v), 0);
	}
	CHECK(failed > 20 && rc == 0);
}

int main(void)
{
	test_regroup();
	test_no_memory();
	for (uint64_t seed = 1; seed <= 10; seed++)
		test_history(seed, seed % 3 ? 1 : (uint32_t)(1 + seed % 5));
	return 0;
}
