// ctest: TIMEOUT 240
/* Sets of files of which ranks hold the same: packed by several of them, nothing is stored twice, every file comes back byte for byte, and who stores what
 * does not depend on threads. Then ranks that fail in the midst of it, what a job that was killed has left, and ranks that lie. */
#include "base/err.h"
#include "base/fs.h"
#include "core/manifest.h"
#include "engine/gc.h"
#include "engine/pack.h"
#include "engine/restore.h"
#include "engine/session.h"
#include "engine/verify.h"
#include "store/dir.h"
#include "support/damage.h"
#include "support/fileset.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>

enum { FILES = 14, POOL = 20, RANKS = 6, OPAQUE = 4, LONGEST = 9 << 20 };

struct content {
	uint8_t *p;
	size_t n;
};

struct set {
	char path[FILES][PLACE_MAX], name[FILES][24];
	struct content file[FILES];
	size_t n;
};

struct job { /* what the ranks do */
	const char *store, *options;
	const struct set *set;
	int code[RANKS];
	char why[RANKS][200];
	struct vv_pack_report report; /* of rank 0 */
	uint64_t dup_ranks[RANKS];
	void (*spoil)(struct varve_comm *comm); /* of rank 0; may be NULL */
	void (*step)(void *arg, uint64_t done, uint64_t total); /* of the last rank; may be NULL */
	struct damage *damage; /* of one message; may be NULL */
};

/* ---- sets ------------------------------------------------------------------------------------------------------------------------ */

/* Files of many formats, and a few of many MiB that nobody knows. */
static void fill_pool(struct content *pool, uint64_t *state)
{
	char folder[PLACE_MAX], path[PLACE_MAX + FILESET_NAME], name[POOL][FILESET_NAME];
	size_t n;

	place_make_dir(place_path(folder, "pool"));
	fileset_write(folder, 4, 1);
	n = fileset_list(4, name, POOL - OPAQUE);
	for (size_t i = 0; i < POOL; i++) {
		if (i >= OPAQUE) {
			snprintf(path, sizeof(path), "%s/%s", folder, name[(i - OPAQUE) % n]);
			pool[i].p = place_read(path, &pool[i].n);
			continue;
		}
		pool[i].n = LONGEST / (i + 1);
		pool[i].p = malloc(pool[i].n);
		CHECK(pool[i].p);
		if (i % 2)
			gen_text(state, pool[i].p, pool[i].n);
		else
			gen_bytes(state, pool[i].p, pool[i].n);
	}
}

/* What several have, some of it changed here and there, or with something in front. */
static void make_set(struct set *s, const struct content *pool, uint64_t *state)
{
	memset(s, 0, sizeof(*s));
	s->n = 1 + gen_below(state, FILES);
	for (size_t i = 0; i < s->n; i++) {
		const struct content *c = &pool[gen_below(state, gen_below(state, 2) ? OPAQUE : POOL)];
		size_t lead = gen_below(state, 4) ? 0 : gen_below(state, 5000);

		s->file[i].n = c->n + lead;
		s->file[i].p = malloc(s->file[i].n + 1);
		CHECK(s->file[i].p);
		gen_bytes(state, s->file[i].p, lead);
		memcpy(s->file[i].p + lead, c->p, c->n);
		for (size_t k = gen_below(state, 4); c->n && k > 0; k--)
			s->file[i].p[gen_below(state, s->file[i].n)] ^= 1;
		snprintf(s->name[i], sizeof(s->name[i]), "f%zu", i);
		place_write(place_path(s->path[i], s->name[i]), s->file[i].p, s->file[i].n);
	}
}

static void free_set(struct set *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->file[i].p);
}

/* ---- packing ------------------------------------------------------------------------------------------------------------------------ */

static void pack_rank(const struct varve_comm *comm, void *arg)
{
	struct job *j = arg;
	struct vv_pack_file file[FILES];
	struct vv_pack_options how = { .effort = VV_PACK_FAST };
	struct vv_pack_report report = { 0 };
	struct varve_comm mine = *comm;
	varve *v = NULL;

	for (size_t i = 0; i < j->set->n; i++)
		file[i] = (struct vv_pack_file){ j->set->path[i], j->set->name[i] };
	if (j->spoil && comm->rank == 0)
		j->spoil(&mine);
	if (j->damage)
		mine = damage_plug(j->damage, comm);
	if (comm->rank == comm->size - 1)
		how.progress.step = j->step;
	j->code[comm->rank] = vv_session_open(comm->size > 1 ? &mine : NULL, j->store, "set", j->options, &v);
	if (j->code[comm->rank] == 0)
		j->code[comm->rank] = vv_pack_run(v, file, j->set->n, &how, &report);
	if (j->code[comm->rank])
		snprintf(j->why[comm->rank], sizeof(j->why[0]), "%s", vv_err_last());
	if (!v)
		return;
	j->dup_ranks[comm->rank] = v->stats.bytes_dup_ranks;
	if (comm->rank == 0)
		j->report = report;
	vv_pack_report_fini(&report);
	varve_close(v);
}

static void pack(struct job *j, uint32_t ranks)
{
	threadcomm_run(ranks, pack_rank, j);
}

static void pack_well(struct job *j, uint32_t ranks)
{
	pack(j, ranks);
	for (uint32_t r = 0; r < ranks; r++)
		if (j->code[r])
			must_fail(__FILE__, __LINE__, j->why[r]);
}

/* ---- looking ------------------------------------------------------------------------------------------------------------------------ */

struct look {
	struct vv_store *store;
	struct vv_lineage lin;
	struct vv_pool *pool;
	struct vv_commit commit;
};

static void look_at(struct look *k, const char *store, uint64_t epoch)
{
	*k = (struct look){ 0 };
	MUST(vv_pool_new(1, &k->pool) == 0);
	MUST(vv_store_open(store, &(struct vv_store_options){ 0 }, &k->store) == 0);
	MUST(vv_catalog_open(k->store, "set", false, &k->lin) == 0);
	MUST(vv_catalog_commit(&k->lin, epoch, &k->commit) == 0);
}

static void look_begin(struct look *k, const char *store)
{
	look_at(k, store, 1);
}

static void look_end(struct look *k)
{
	vv_commit_fini(&k->commit);
	vv_store_close(k->store);
	vv_pool_free(k->pool);
}

static uint64_t newest_of(const char *store)
{
	struct vv_store *open = NULL;
	struct vv_lineage lin;
	uint64_t newest = 0;

	MUST(vv_store_open(store, &(struct vv_store_options){ 0 }, &open) == 0);
	MUST(vv_catalog_open(open, "set", false, &lin) == 0);
	MUST(vv_catalog_newest(&lin, VV_MAX_EPOCH + 1, &newest) == 0);
	vv_store_close(open);
	return newest;
}

static void tell(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

static uint64_t problems(struct look *k)
{
	struct vv_verify_report report = { 0 };

	MUST(vv_verify_run(&k->lin, k->pool, 0, false, tell, NULL, NULL, &report) == 0);
	return report.problems;
}

/* Files that come back as they were; the regions are called like them. */
static size_t count_back(struct look *k, const struct set *s)
{
	uint8_t *bytes = malloc(LONGEST + 5000);
	size_t back = 0;

	CHECK(bytes);
	for (uint32_t rank = 0; rank < k->commit.n_ranks; rank++) {
		struct vv_table t = { 0 };

		MUST(vv_table_load(&k->lin, k->commit.epoch, rank, &t) == 0);
		for (size_t i = 0; i < t.n; i++) {
			const struct vv_table_region *r = &t.region[i];
			size_t f = (size_t)atoi(r->name + 1);

			if (r->name[0] != 'f')
				continue;
			MUST(f < s->n && r->shape.len == s->file[f].n && vv_run_covers(&r->runs, r->shape.len));
			if (vv_restore_read(&k->lin, k->pool, &(struct vv_want){ &r->runs, 0, r->shape.len, bytes, NULL }, 1) == 0)
				back += memcmp(bytes, s->file[f].p, s->file[f].n) == 0;
		}
		vv_table_fini(&t);
	}
	free(bytes);
	return back;
}

static void check_store(const char *store, const struct set *s)
{
	struct look k;

	look_begin(&k, store);
	MUST(problems(&k) == 0);
	MUST(count_back(&k, s) == s->n);
	look_end(&k);
}

/* The same rank stored as much, in both. */
static void check_same(const char *a, const char *b)
{
	struct look x, y;

	look_begin(&x, a);
	look_begin(&y, b);
	MUST(x.commit.n_ranks == y.commit.n_ranks);
	for (uint32_t r = 0; r < x.commit.n_ranks; r++)
		MUST(x.commit.rank[r].payload == y.commit.rank[r].payload);
	look_end(&x);
	look_end(&y);
}

/* ---- tests -------------------------------------------------------------------------------------------------------------------------- */

static const char *fresh_store(char out[PLACE_MAX], const char *name)
{
	place_remove(place_path(out, name));
	return out;
}

/* What is cut and left to the skeleton depends on a share's other files, so a few KiB may differ. */
static void test_once(const struct content *pool, uint64_t seed)
{
	char alone[PLACE_MAX], many[PLACE_MAX], again[PLACE_MAX];
	uint64_t state = seed, shared = 0;
	uint32_t ranks = 2 + (uint32_t)gen_below(&state, RANKS - 1);
	struct set s;
	struct job one = { .store = fresh_store(alone, "alone"), .set = &s, .options = "mode=sync" };
	struct job all = { .store = fresh_store(many, "many"), .set = &s, .options = "mode=sync threads=1" };
	struct job twice = { .store = fresh_store(again, "again"), .set = &s, .options = "mode=sync threads=3" };

	make_set(&s, pool, &state);
	must_begin("seed %" PRIu64 ", %zu files, %u ranks", seed, s.n, ranks);
	pack_well(&one, 1);
	pack_well(&all, ranks);
	pack_well(&twice, ranks);
	check_store(many, &s);
	check_same(many, again);
	for (uint32_t r = 0; r < ranks; r++)
		shared += all.dup_ranks[r];
	if (all.report.fresh > one.report.fresh + one.report.fresh / 100 + 100000 * (uint64_t)ranks)
		fprintf(stderr, "alone %" PRIu64 ", by all %" PRIu64 ", shared %" PRIu64 "\n", one.report.fresh, all.report.fresh, shared);
	MUST(all.report.fresh <= one.report.fresh + one.report.fresh / 100 + 100000 * (uint64_t)ranks);
	free_set(&s);
}

/* n files of the same content. */
static void make_twins(struct set *s, const struct content *c, size_t n)
{
	memset(s, 0, sizeof(*s));
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		s->file[i] = (struct content){ memcpy(malloc(c->n), c->p, c->n), c->n };
		snprintf(s->name[i], sizeof(s->name[i]), "f%zu", i);
		place_write(place_path(s->path[i], s->name[i]), c->p, c->n);
	}
}

/* What all hold, each stores a part of. */
static void test_fair(const struct content *pool)
{
	char store[PLACE_MAX];
	struct set s;
	struct job j = { .store = fresh_store(store, "fair"), .set = &s, .options = "mode=sync" };
	struct look k;

	must_begin("twins");
	make_twins(&s, &pool[0], 3);
	pack_well(&j, 3);
	MUST(j.report.fresh < pool[0].n + pool[0].n / 50);
	check_store(store, &s);
	look_begin(&k, store);
	for (uint32_t r = 0; r < 3; r++)
		MUST(k.commit.rank[r].payload > pool[0].n / 12);
	look_end(&k);
	free_set(&s);
}

/* A field that is well predicted in three dimensions, with a hole in it, is stored without gaps; and as a stretch of it is there twice, so it is in the
 * layer. Others are told of the one that the layer names. */
static void test_twice(void)
{
	enum { SIDE = 100, HEADER = 128, STRETCH = 64 << 10 };
	static uint64_t face[3][SIDE][SIDE];
	char head[HEADER + 1], store[PLACE_MAX];
	uint64_t state = 5;
	struct content c = { .n = HEADER + SIDE * SIDE * SIDE * 8 };
	struct set s;
	struct job j = { .store = fresh_store(store, "twice"), .set = &s, .options = "mode=sync" };

	must_begin("a stretch that is there twice");
	c.p = malloc(c.n);
	CHECK(c.p);
	snprintf(head, sizeof(head), "%-127s\n", "..........{'descr': '<i8', 'fortran_order': False, 'shape': (100, 100, 100), }");
	memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
	memcpy(c.p, head, HEADER);
	gen_bytes(&state, (uint8_t *)face, sizeof(face));
	for (size_t i = 0; i < SIDE * SIDE * SIDE; i++) {
		size_t x = i % SIDE, y = i / SIDE % SIDE, z = i / SIDE / SIDE;
		uint64_t v = (face[0][x][y] >> 20) + (face[1][y][z] >> 20) + (face[2][x][z] >> 20);

		memcpy(c.p + HEADER + 8 * i, &v, 8);
	}
	memset(c.p + HEADER + 2 * STRETCH, 0, STRETCH / 8);
	memcpy(c.p + HEADER + 5 * STRETCH, c.p + HEADER + 3 * STRETCH, STRETCH);
	make_twins(&s, &c, 2);
	pack_well(&j, 2);
	MUST(j.dup_ranks[0] + j.dup_ranks[1] > c.n / 2);
	check_store(store, &s);
	free_set(&s);
	free(c.p);
}

/* Told not to, ranks do not share. */
static void test_unasked(const struct content *pool)
{
	static const char *const options[] = { "mode=sync collective=none", "mode=sync copies=2", "mode=sync dedup=no" };
	struct set s;

	make_twins(&s, &pool[3], 3);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		char store[PLACE_MAX];
		struct job j = { .store = fresh_store(store, "unasked"), .set = &s, .options = options[i] };

		must_begin("%s", options[i]);
		pack_well(&j, 3);
		MUST(j.report.fresh >= 3 * pool[3].n);
		check_store(store, &s);
	}
	free_set(&s);
}

static const struct set *shrinking;

/* A file that is to come becomes shorter. */
static void shrink(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)total;
	if (done > 1 << 20)
		MUST(truncate(shrinking->path[shrinking->n - 1], 100) == 0);
}

/* One rank fails in the midst of it: so do all, nothing is left, and the next try succeeds. */
static void test_failure(const struct content *pool)
{
	char store[PLACE_MAX];
	struct set s;
	struct job j = { .store = fresh_store(store, "failure"), .set = &s, .options = "mode=sync threads=1", .step = shrink };

	must_begin("a rank fails");
	make_twins(&s, &pool[0], 6);
	shrinking = &s;
	pack(&j, 3);
	for (uint32_t r = 0; r < 3; r++) {
		MUST(j.code[r] != 0);
		MUST(strstr(j.why[r], s.path[5]));
	}
	MUST(newest_of(store) == 0);
	place_remove(store);
	place_write(s.path[5], s.file[5].p, s.file[5].n);
	j.step = NULL;
	pack_well(&j, 3);
	check_store(store, &s);
	free_set(&s);
}

static struct vv_fs reluctant;
static atomic_int refusals, misses;
static _Thread_local bool is_refused; /* the next time */

/* A rank cannot take back, the first time, what was said of the second epoch. */
static int refuse(const struct vv_fs *fs, const char *path)
{
	if (is_refused && strstr(path, "/0000000002.commit")) {
		is_refused = false;
		atomic_fetch_add(&refusals, 1);
		errno = EIO;
		return -1;
	}
	return vv_fs_real()->unlink(fs, path);
}

static int look_for(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	int fd = vv_fs_real()->open(fs, path, flags, mode);

	if (fd < 0 && strstr(path, "/0000000002.r"))
		atomic_fetch_add(&misses, 1);
	return fd;
}

/* A file has changed by the time that all were read. */
static void change_late(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	if (done == total)
		place_write(shrinking->path[shrinking->n - 1], "changed", 7);
}

/* An epoch of which only the last rank fails, and in the same session one that counts. */
static void pack_anew(const struct varve_comm *comm, void *arg)
{
	struct job *j = arg;
	const struct set *s = j->set;
	struct vv_pack_file file[FILES];
	struct vv_pack_options how = { .effort = VV_PACK_FAST };
	struct vv_pack_report report = { 0 };
	bool last = comm->rank == comm->size - 1;
	varve *v = NULL;

	for (size_t i = 0; i < s->n; i++)
		file[i] = (struct vv_pack_file){ s->path[i], s->name[i] };
	MUST(vv_session_open(comm, j->store, "set", j->options, &v) == 0);
	how.progress.step = last ? change_late : NULL;
	is_refused = !last;
	MUST(vv_pack_run(v, file, s->n, &how, &report) != 0);
	vv_pack_report_fini(&report);
	if (last)
		place_write(s->path[s->n - 1], s->file[s->n - 1].p, s->file[s->n - 1].n);
	how.progress.step = NULL;
	j->code[comm->rank] = vv_pack_run(v, file, s->n, &how, &report);
	if (j->code[comm->rank])
		snprintf(j->why[comm->rank], sizeof(j->why[0]), "%s", vv_err_last());
	vv_pack_report_fini(&report);
	varve_close(v);
}

/* What a rank removes late of an epoch that failed, no other has referred to meanwhile. */
static void test_late_removal(const struct content *pool)
{
	char store[PLACE_MAX];
	struct set s;
	struct job j = { .store = fresh_store(store, "late"), .set = &s, .options = "mode=sync" };
	struct look k;

	must_begin("a rank removes late what failed");
	make_twins(&s, &pool[1], 6);
	pack_well(&j, 3);
	free_set(&s);
	make_twins(&s, &pool[0], 6);
	shrinking = &s;
	reluctant = *vv_fs_real();
	reluctant.unlink = refuse;
	reluctant.open = look_for;
	vv_dir_set_fs(&reluctant);
	threadcomm_run(3, pack_anew, &j);
	vv_dir_set_fs(vv_fs_real());
	MUST(atomic_load(&refusals) == 2);
	MUST(atomic_load(&misses) == 0);
	for (uint32_t r = 0; r < 3; r++)
		if (j.code[r])
			must_fail(__FILE__, __LINE__, j.why[r]);
	look_at(&k, store, newest_of(store));
	MUST(problems(&k) == 0);
	MUST(count_back(&k, &s) == s.n);
	look_end(&k);
	free_set(&s);
}

/* Layers of this epoch are as a job leaves them that is killed before it counts: all but one are whole. */
static void unmake(const char *store, unsigned epoch, uint32_t lost)
{
	char path[PLACE_MAX + 80];

	snprintf(path, sizeof(path), "%s/set/00000000/%010u.commit", store, epoch);
	MUST(unlink(path) == 0);
	snprintf(path, sizeof(path), "%s/set/00000000/%010u.r%u.layer", store, epoch, lost);
	MUST(unlink(path) == 0);
}

/* Whatever epoch there is before it, and whoever lost its layer: what is whole is stored by nobody again. */
static void test_unfinished(const struct content *pool, bool first, uint32_t lost, uint32_t ranks)
{
	char store[PLACE_MAX];
	struct set s;
	struct job j = { .store = fresh_store(store, "unfinished"), .set = &s, .options = "mode=sync" };
	uint64_t missing, back = first ? 2 : 3;
	struct look k;

	must_begin("%s, rank %u's layer is lost, then %u ranks", first ? "no epoch before" : "an epoch of one rank before", lost, ranks);
	if (!first) {
		make_twins(&s, &pool[3], 1);
		pack_well(&j, 1);
		free_set(&s);
	}
	make_twins(&s, &pool[0], 6);
	pack_well(&j, 3);
	look_at(&k, store, back - 1);
	missing = k.commit.rank[lost].payload;
	look_end(&k);
	unmake(store, (unsigned)back - 1, lost);
	pack_well(&j, ranks);
	MUST(j.report.epoch == back);
	MUST(j.report.fresh < missing + pool[0].n / 50);
	look_at(&k, store, back);
	MUST(problems(&k) == 0);
	MUST(count_back(&k, &s) == s.n);
	MUST(vv_gc_run(&k.lin, false, &(struct vv_gc_report){ 0 }) == 0);
	MUST(problems(&k) == 0);
	MUST(count_back(&k, &s) == s.n);
	look_end(&k);
	free_set(&s);
}

/* ---- lies ---------------------------------------------------------------------------------------------------------------------------- */

static int (*honest)(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op);
static unsigned calls;
static uint64_t lie; /* is added to what is told; 0: what is told comes in another order */
static bool as_judge;

static void spoil_words(uint8_t *p, size_t n)
{
	uint64_t word, other;

	for (size_t i = 0; lie && i < n; i++) {
		memcpy(&word, p + 8 * i, 8);
		word += lie;
		memcpy(p + 8 * i, &word, 8);
	}
	for (size_t i = 0; !lie && i + 1 < n; i += 2) {
		memcpy(&word, p + 8 * i, 8);
		memcpy(&other, p + 8 * i + 8, 8);
		memcpy(p + 8 * i, &other, 8);
		memcpy(p + 8 * i + 8, &word, 8);
	}
}

/* A question, an answer, and what is to be confirmed take turns. Of a question without claims all that follows the first word is positions. */
static int liar(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op)
{
	uint8_t *p = (uint8_t *)(uintptr_t)to;
	unsigned turn = calls++ % 3;

	for (unsigned r = 0; r < 2; p += to_len[r++]) {
		uint64_t more = 1;

		if (turn == 0 && to_len[r] >= sizeof(more))
			memcpy(&more, p, sizeof(more));
		if (as_judge && turn == 1)
			spoil_words(p, to_len[r] / 8);
		else if (!as_judge && turn == 0 && more == 0)
			spoil_words(p + 8, to_len[r] / 8 - 1);
	}
	return honest(ctx, to, to_len, from, from_len, op);
}

static void spoil(struct varve_comm *comm)
{
	honest = comm->alltoallv;
	comm->alltoallv = liar;
}

/* Rank 0, which stores what both hold, tells places that are not, or that have other content; or does so as a judge. Nothing may count then: a reader
 * would not see it. */
static void test_lies(const struct content *pool)
{
	static const struct {
		uint64_t lie;
		bool judge;
	} list[] = { { 1ull << 38, false }, { 4096, false }, { 1, false }, { 0, false }, { 4096, true }, { 1ull << 41, false }, { 3ull << 60, true }, { 1ull << 60, true } };
	struct set s;

	make_twins(&s, &pool[3], 2);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		char store[PLACE_MAX];
		struct job j = { .store = fresh_store(store, "lies"), .set = &s, .options = "mode=sync timeout=20s", .spoil = spoil };

		must_begin("lie %zu", i);
		calls = 0;
		lie = list[i].lie;
		as_judge = list[i].judge;
		pack(&j, 2);
		MUST(calls >= 2);
		for (uint32_t r = 0; r < 2; r++) {
			CHECK_EQ(j.code[r], VV_EPEER);
			MUST(strstr(j.why[r], "rank 0"));
		}
		MUST(newest_of(store) == 0);
	}
	free_set(&s);
}

/* ---- damage -------------------------------------------------------------------------------------------------------------------------- */

/* One message is damaged, each in turn: all fail, and none by waiting; or the epoch is whole. */
static void test_damage(const struct content *pool)
{
	static struct damage d;
	struct content little = { pool[3].p, 200 << 10 };
	char store[PLACE_MAX];
	struct set s;
	unsigned failed = 0;

	make_twins(&s, &little, 3);
	damage_begin(&d, 3);
	while (damage_next(&d)) {
		struct job j = { .store = fresh_store(store, "damage"), .set = &s, .options = "mode=sync threads=1 timeout=30s", .damage = &d };
		bool all = true, any = false;

		must_begin("%s", d.words);
		pack(&j, 3);
		for (uint32_t r = 0; r < 3; r++) {
			MUST(j.code[r] == 0 || (j.code[r] == VV_EPEER && !strstr(j.why[r], "waited")));
			all &= j.code[r] == 0;
			any |= j.code[r] == 0;
		}
		MUST(all || !d.first);
		failed += !all;
		if (any)
			check_store(store, &s);
	}
	MUST(failed > 20);
	free_set(&s);
}

int main(void)
{
	struct content pool[POOL];
	uint64_t state = 9;

	fill_pool(pool, &state);
	for (uint64_t seed = 1; seed <= 8; seed++)
		test_once(pool, seed);
	test_fair(pool);
	test_twice();
	test_unasked(pool);
	test_failure(pool);
	test_late_removal(pool);
	for (uint32_t lost = 0; lost < 3; lost++)
		for (uint32_t ranks = 1; ranks <= 4; ranks++)
			test_unfinished(pool, (lost + ranks) % 2, lost, ranks);
	test_lies(pool);
	test_damage(pool);
	for (size_t i = 0; i < POOL; i++)
		free(pool[i].p);
	return 0;
}
