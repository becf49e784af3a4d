// ctest: TIMEOUT 240 COST 12
/* Ranks that pack files of which they hold the same, and one fails in the midst of it; what a job that was killed has left; and ranks that lie, or whose
 * messages are damaged. */
#include "base/fs.h"
#include "engine/upkeep/gc.h"
#include "engine/files/shares_case.h"
#include "store/dir/dir.h"
#include <errno.h>
#include <stdatomic.h>

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

/* ---- failures ------------------------------------------------------------------------------------------------------------------------ */

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
	check_epoch(store, 1, &s);
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

	name_files(s, file);
	MUST(vv_session_open(comm, j->store, "set", j->options, &v) == 0);
	how.progress.step = last ? change_late : NULL;
	is_refused = !last;
	MUST(vv_pack_run(v, file, s->n, &how, &report) != 0);
	vv_pack_report_fini(&report);
	if (last)
		place_write(s->path[s->n - 1], s->file[s->n - 1].p, s->file[s->n - 1].n);
	how.progress.step = NULL;
	note(j, comm->rank, vv_pack_run(v, file, s->n, &how, &report));
	vv_pack_report_fini(&report);
	varve_close(v);
}

/* What a rank removes late of an epoch that failed, no other has referred to meanwhile. */
static void test_late_removal(const struct content *pool)
{
	char store[PLACE_MAX];
	struct set s;
	struct job j = { .store = fresh_store(store, "late"), .set = &s, .options = "mode=sync" };

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
	check_codes(&j, 3);
	check_epoch(store, newest_of(store), &s);
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
	check_look(&k, &s);
	MUST(vv_gc_run(&k.lin, 0, VV_GC_THOROUGH, NULL, &(struct vv_gc_report){ 0 }) == 0);
	check_look(&k, &s);
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
			check_epoch(store, 1, &s);
	}
	MUST(failed > 20);
	free_set(&s);
}

int main(void)
{
	struct content pool[OPAQUE];
	uint64_t state = 9;

	fill_opaque(pool, &state);
	test_failure(pool);
	test_late_removal(pool);
	for (uint32_t lost = 0; lost < 3; lost++)
		for (uint32_t ranks = 1; ranks <= 4; ranks++)
			test_unfinished(pool, (lost + ranks) % 2, lost, ranks);
	test_lies(pool);
	test_damage(pool);
	free_contents(pool, OPAQUE);
	return 0;
}
