// ctest: TIMEOUT 240 PROCESSORS 2 COST 10
/* Memory of ranks that is alike, page for page, and nowhere the same: pointers into memory that lies elsewhere, and a few words of each rank's own. Coded
 * together it takes much less than apart, and every byte comes back, of every rank and epoch, also when ranks have different memory, none, or not all of
 * it at once. Ranks that fail and messages that were tampered with: then there is no epoch, on any rank, or one that is right. */
#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "engine/files/stream_input.h"
#include "engine/files/handover_message.h"
#include "engine/read/restore.h"
#include "engine/context.h"
#include "engine/files/unpack.h"
#include "engine/session/session.h"
#include "engine/upkeep/verify.h"
#include "support/damage.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <inttypes.h>

enum { RANKS = 10, PAGE = 4096, WORDS = PAGE / 8, PART = 96 * PAGE };

/* ---- memory -------------------------------------------------------------------------------------------------------------------------- */

struct memory { /* of one rank: an image of pages, of two kinds, and a small one of none */
	uint8_t *p;
	size_t pages, heap; /* heap: so many of them, in front */
	char name[32], core[32];
};

/* The same for all, but for where it lies, and for a word in a hundred. */
static void fill(struct memory *m, uint32_t rank, size_t pages, uint64_t epoch)
{
	uint64_t common = 11, own = 1000 * (rank + 1), base = 0x7f0000000000 + (rank * 7919ull << 12), word;

	m->pages = pages;
	m->heap = pages / 5;
	m->p = malloc(pages * PAGE + 1);
	MUST(m->p);
	snprintf(m->name, sizeof(m->name), "%u/pages-1.img", rank);
	snprintf(m->core, sizeof(m->core), "%u/core.img", rank);
	for (size_t i = 0; i < pages * WORDS; i++) {
		uint64_t is = gen_next(&common);

		word = is % 3 == 0 ? base + (is >> 8) % 65536 * 16 : is % 3 == 1 ? is >> 8 & 0xff : is >> 3;
		if (is % 97 == 0)
			word = gen_next(&own);
		memcpy(m->p + 8 * i, &word, 8);
	}
	memset(m->p + pages / 3 * PAGE, 0, pages / 40 * PAGE);
	for (uint64_t e = 2; e <= epoch; e++)
		for (size_t i = e; i < pages; i += 50)
			memset(m->p + i * PAGE, (int)(e + rank), 100);
}

struct flow { /* of it into an epoch */
	const struct memory *m;
	size_t at, parts, fail_at, pause_at; /* 0: never */
	long starve; /* the allocation that fails, from the first part on; 0: none */
	bool core;
};

static int next(void *arg, struct vv_stream_input_part *out)
{
	struct flow *f = arg;
	size_t end = f->m->pages * PAGE, border = f->m->heap * PAGE;

	if (f->parts == 0 && f->starve)
		vv_mem_fail_at(f->starve);
	if (++f->parts == f->fail_at)
		return vv_err_set(VV_EIO, "the source broke off");
	if (f->parts == f->pause_at)
		return VV_STREAM_INPUT_PAUSE;
	if (f->at == end) {
		bool told = f->core || end == 0;

		f->core = true;
		*out = (struct vv_stream_input_part){ .name = f->m->core, .bytes = (const uint8_t *)"core", .n = 4 };
		return told ? VV_STREAM_INPUT_END : VV_STREAM_INPUT_PART;
	}
	end = f->at < border ? border : end;
	*out = (struct vv_stream_input_part){ .name = f->m->name, .variable = f->at < border ? "heap" : "anon", .bytes = f->m->p + f->at };
	out->segment = f->at < border ? VV_SEGMENT_HEAP : VV_SEGMENT_ANON;
	out->n = end - f->at < PART ? end - f->at : PART;
	f->at += out->n;
	return VV_STREAM_INPUT_PART;
}

/* ---- epochs ------------------------------------------------------------------------------------------------------------------------- */

struct job {
	const char *store, *options;
	enum vv_pack_effort effort;
	bool split; /* each two ranks have a store of their own below it */
	struct memory memory[RANKS];
	size_t fail_at[RANKS], pause_at[RANKS];
	long starve; /* rank 0 */
	struct damage *damage; /* of one message; may be NULL */
	int code[RANKS];
	char why[RANKS][300];
	uint64_t layer, fresh, lent[RANKS], sum[RANKS], epoch;
};

static const char *store_of(const struct job *j, uint32_t rank, char out[PLACE_MAX + 16])
{
	snprintf(out, PLACE_MAX + 16, j->split ? "%s/%u" : "%s", j->store, rank / 2);
	return out;
}

static void pack_rank(const struct varve_comm *comm, void *arg)
{
	struct job *j = arg;
	uint32_t r = comm->rank;
	struct flow flow = { .m = &j->memory[r], .fail_at = j->fail_at[r], .pause_at = j->pause_at[r],
			     .starve = r ? 0 : j->starve };
	struct vv_stream_input in = { .arg = &flow, .format = "criu", .expected = j->memory[r].pages * PAGE, .next = next };
	struct vv_pack_options how = { .scheme = VV_PACK_AUTO, .effort = j->effort, .stream_input = &in };
	struct vv_pack_report report = { 0 };
	struct varve_comm mine = *comm;
	char store[PLACE_MAX + 16];
	varve *v = NULL;

	if (j->damage)
		mine = damage_plug(j->damage, comm);
	j->code[r] = vv_session_open(comm->size > 1 ? &mine : NULL, store_of(j, r, store), "set", j->options, &v);
	if (j->code[r] == 0)
		j->code[r] = vv_pack_run(v, NULL, 0, &how, &report);
	if (!v) {
		snprintf(j->why[r], sizeof(j->why[0]), "%s", vv_err_last());
		return;
	}
	if (j->code[r]) {
		snprintf(j->why[r], sizeof(j->why[0]), "%s", vv_err_last());
	} else {
		struct varve_stats *st = &v->stats;

		j->lent[r] = st->bytes_lent;
		j->sum[r] = st->bytes_zero + st->bytes_dup_time + st->bytes_dup_space + st->bytes_dup_ranks + st->bytes_new - st->bytes_memory;
		if (r == 0) {
			j->layer = report.layer;
			j->fresh = report.fresh;
			j->epoch = report.epoch;
		}
	}
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
	for (uint32_t r = 0; r < ranks; r++) {
		if (j->code[r])
			must_fail(__FILE__, __LINE__, j->why[r]);
		MUST(j->sum[r] == 0);
	}
}

static void fill_all(struct job *j, uint32_t ranks, const size_t *pages, uint64_t epoch)
{
	for (uint32_t r = 0; r < ranks; r++) {
		free(j->memory[r].p);
		fill(&j->memory[r], r, pages[r], epoch);
	}
}

static void empty(struct job *j)
{
	for (uint32_t r = 0; r < RANKS; r++)
		free(j->memory[r].p);
}

static void tell(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

static void check_file(const struct vv_unpack *u, struct vv_pool *pool, const char *name, const uint8_t *want, size_t n)
{
	struct vv_unpack_file f;
	uint8_t *bytes = malloc(n + 1);

	MUST(bytes && vv_unpack_find(u, name, &f) == 0);
	MUST(f.region->shape.len == n && vv_run_covers(&f.region->runs, n));
	MUST(vv_restore_read(u->lineage, pool, &(struct vv_want){ &f.region->runs, 0, n, bytes, NULL }, 1) == 0);
	MUST(memcmp(bytes, want, n) == 0);
	free(bytes);
}

static void check_epoch(const struct job *j, uint64_t epoch, uint32_t ranks)
{
	struct vv_verify_report report = { 0 };
	struct vv_store *store = NULL;
	struct vv_pool *pool = NULL;
	struct vv_unpack u = { 0 };
	struct vv_lineage lin;

	MUST(vv_pool_new(1, &pool) == 0);
	MUST(vv_store_open(j->store, &(struct vv_store_options){ 0 }, &store) == 0);
	MUST(vv_catalog_open(store, "set", false, &lin) == 0);
	MUST(vv_unpack_open(&lin, epoch, pool, &u) == 0);
	for (uint32_t r = 0; r < ranks; r++)
		if (j->memory[r].pages) {
			check_file(&u, pool, j->memory[r].name, j->memory[r].p, j->memory[r].pages * PAGE);
			check_file(&u, pool, j->memory[r].core, (const uint8_t *)"core", 4);
		}
	MUST(vv_verify_run(&lin, pool, 0, false, tell, NULL, NULL, &report) == 0);
	MUST(report.problems == 0);
	vv_unpack_close(&u);
	vv_store_close(store);
	vv_pool_free(pool);
}

static uint64_t newest_of(const char *url)
{
	struct vv_store *store = NULL;
	struct vv_lineage lin;
	uint64_t newest = 0;

	MUST(vv_store_open(url, &(struct vv_store_options){ 0 }, &store) == 0);
	MUST(vv_catalog_open(store, "set", false, &lin) == 0);
	MUST(vv_catalog_newest(&lin, VV_MAX_EPOCH + 1, &newest) == 0);
	vv_store_close(store);
	return newest;
}

/* ---- tests -------------------------------------------------------------------------------------------------------------------------- */

/* Against each rank for itself; then what has changed; then by fewer ranks, and what only the newest epoch needs is kept. */
static void test_alike(uint32_t ranks, const size_t *pages, double at_most)
{
	char apart[PLACE_MAX], together[PLACE_MAX];
	struct job a = { .store = place_path(apart, "apart"), .options = "mode=sync alike=none", .effort = VV_PACK_DEFAULT };
	struct job t = { .store = place_path(together, "together"), .options = "mode=sync", .effort = VV_PACK_DEFAULT };
	uint64_t first, lent = 0;

	must_begin("%u ranks of %zu, %zu ... pages", ranks, pages[0], pages[1]);
	place_remove(apart);
	place_remove(together);
	fill_all(&a, ranks, pages, 1);
	fill_all(&t, ranks, pages, 1);
	pack_well(&a, ranks);
	pack_well(&t, ranks);
	MUST(t.fresh < a.fresh + PAGE && a.fresh < t.fresh + PAGE); /* with the manifests */
	if ((double)t.layer > at_most * (double)a.layer)
		fprintf(stderr, "apart %" PRIu64 ", together %" PRIu64 "\n", a.layer, t.layer);
	MUST((double)t.layer <= at_most * (double)a.layer);
	for (uint32_t r = 0; r < ranks; r++)
		lent += t.lent[r];
	MUST(at_most >= 1 || lent > 0);
	check_epoch(&t, 1, ranks);
	first = t.layer;
	fill_all(&t, ranks, pages, 2);
	pack_well(&t, ranks);
	MUST(t.layer < first / 8);
	check_epoch(&t, 2, ranks);
	t.options = "mode=sync keep=1";
	fill_all(&t, ranks, pages, 3);
	pack_well(&t, ranks - 1);
	check_epoch(&t, 3, ranks - 1);
	empty(&a);
	empty(&t);
}

/* A rank whose memory does not come at once: nobody hands anything over then. */
static void test_pauses(void)
{
	static const size_t pages[] = { 1100, 1100, 1100 };
	char store[PLACE_MAX];
	struct job j = { .store = place_path(store, "pauses"), .options = "mode=sync", .pause_at = { 0, 9, 0 } };

	must_begin("pauses");
	place_remove(store);
	fill_all(&j, 3, pages, 1);
	pack_well(&j, 3);
	MUST(j.lent[0] + j.lent[1] + j.lent[2] == 0);
	check_epoch(&j, 1, 3);
	empty(&j);
}

/* Ranks with stores of their own hand over to those that have the same one: what is there is enough for each of them. */
static void test_places(void)
{
	static const size_t pages[] = { 1300, 1300, 1200, 1300 };
	char folder[PLACE_MAX], url[PLACE_MAX + 16];
	struct job j = { .store = place_path(folder, "places"), .options = "mode=sync", .split = true };

	must_begin("places");
	place_remove(folder);
	place_make_dir(folder);
	fill_all(&j, 4, pages, 1);
	pack_well(&j, 4);
	MUST(j.lent[0] + j.lent[1] > 0 && j.lent[2] + j.lent[3] > 0);
	for (uint32_t r = 0; r < 4; r++) {
		struct vv_store *store = NULL;
		struct vv_pool *pool = NULL;
		struct vv_unpack u = { 0 };
		struct vv_lineage lin;

		MUST(vv_pool_new(1, &pool) == 0);
		MUST(vv_store_open(store_of(&j, r, url), &(struct vv_store_options){ 0 }, &store) == 0);
		MUST(vv_catalog_open(store, "set", false, &lin) == 0);
		MUST(vv_unpack_open_rank(&lin, 1, r, pool, &u) == 0);
		check_file(&u, pool, j.memory[r].name, j.memory[r].p, j.memory[r].pages * PAGE);
		vv_unpack_close(&u);
		vv_store_close(store);
		vv_pool_free(pool);
	}
	empty(&j);
}

/* A source that breaks off, or memory that cannot be had: on one rank, so on all. */
static void test_failures(void)
{
	static const size_t pages[] = { 300, 300, 300 };
	char store[PLACE_MAX];
	struct job j = { .store = place_path(store, "failures"), .options = "mode=sync threads=1" };
	unsigned failed = 0;

	must_begin("a source fails");
	place_remove(store);
	fill_all(&j, 3, pages, 1);
	j.fail_at[2] = 5;
	pack(&j, 3);
	for (uint32_t r = 0; r < 3; r++)
		MUST(j.code[r] && strstr(j.why[r], "the source broke off"));
	MUST(newest_of(store) == 0);
	j.fail_at[2] = 0;
	for (j.starve = 1; j.starve < 700; j.starve += j.starve / 6 + 1) {
		must_begin("allocation %ld fails", j.starve);
		place_remove(store);
		pack(&j, 3);
		vv_mem_fail_at(0);
		failed += j.code[0] != 0;
		for (uint32_t r = 0; r < 3; r++)
			MUST((j.code[r] == 0) == (j.code[0] == 0));
		if (j.code[0] == 0)
			check_epoch(&j, j.epoch, 3);
		else
			MUST(newest_of(store) == 0);
	}
	MUST(failed > 9);
	empty(&j);
}

/* ---- damage --------------------------------------------------------------------------------------------------------------------------- */

/* One message is damaged, each in turn: all fail, and none by waiting; or the epoch is whole. */
static void test_damage(void)
{
	static const size_t pages[] = { 120, 120 };
	static struct damage d;
	char store[PLACE_MAX];
	struct job j = { .store = place_path(store, "damage"), .options = "mode=sync threads=1 timeout=30s", .damage = &d };
	unsigned failed = 0;

	fill_all(&j, 2, pages, 1);
	damage_begin(&d, 2);
	while (damage_next(&d)) {
		must_begin("%s", d.words);
		place_remove(store);
		pack(&j, 2);
		for (uint32_t r = 0; r < 2; r++)
			MUST(j.code[r] == 0 || (j.code[r] == VV_EPEER && !strstr(j.why[r], "waited")));
		MUST(!d.first || (j.code[0] == 0 && j.code[1] == 0));
		failed += j.code[0] || j.code[1];
		if (j.code[0] == 0 || j.code[1] == 0)
			check_epoch(&j, 1, 2);
	}
	MUST(failed > 20);
	empty(&j);
}

/* Messages that are cut off are refused. One that was made up may be understood; then it is what it must be. */
static void test_messages(void)
{
	static const struct vv_handover_message parcel[] = { { 0, 5, 0, 0 }, { 4096, 300, 0, 0 }, { 0, 1, 3, 1 }, { 1 << 20, 40, 3, 0 } };
	struct vv_pack_options how = { .effort = VV_PACK_DEFAULT };
	struct vv_handover_messages out = { 0 };
	struct vv_file_set c = { 0 };
	uint8_t file[512], message[1024], bad[1024];
	struct vv_buf head = { 0 };
	uint64_t state = 1;
	size_t n;

	must_begin("messages");
	MUST(vv_file_set_await(NULL, &c) == 0);
	gen_bytes(&state, file, sizeof(file));
	c.file = vv_mem_new(4, sizeof(*c.file));
	c.n_files = 4;
	for (size_t i = 0; i < 4; i++) {
		struct vv_handover_message x = parcel[i];

		c.file[i] = (struct vv_file_set_file){ .name = "f", .path = "f", .fd = -1 };
		MUST(vv_file_set_segment(&c, x.kind ? "heap" : "anon", x.kind ? VV_SEGMENT_HEAP : VV_SEGMENT_ANON, &x.kind) == 0);
		MUST(vv_stream_input_add(&c, x.file, x.kind, x.at, file, (size_t)x.len) == 0);
		MUST(vv_handover_message_add(&out, x) == 0);
	}
	vv_stream_input_sort(&c);
	MUST(vv_handover_message_put_head(&out, &c, &head) == 0);
	n = head.n + vv_handover_message_data_len(&out);
	MUST(n < sizeof(message));
	MUST(vv_handover_message_put(&out, &c, &head, message) == 0);
	for (size_t i = 0; i < 40000; i++) { /* as it is, cut off, made up */
		struct vv_handover_messages in = { 0 };
		const uint8_t *bytes = NULL;
		size_t len = i % 3 == 1 ? (size_t)gen_below(&state, n) : n;
		int rc;

		memcpy(bad, message, n);
		for (size_t k = i % 3 == 2 ? 1 + gen_below(&state, 3) : 0; k > 0; k--)
			bad[gen_below(&state, head.n)] ^= (uint8_t)(1 + gen_below(&state, 255));
		rc = vv_handover_message_get(&in, &c, &how, bad, len, &bytes);
		MUST(i % 3 == 0 ? rc == 0 : i % 3 == 1 ? rc == VV_EPEER : rc == 0 || rc == VV_EPEER);
		if (rc == 0)
			MUST(bytes + in.bytes == bad + n);
		if (rc == 0 && i % 3 == 0)
			MUST(in.n == out.n && memcmp(in.v, out.v, in.n * sizeof(*in.v)) == 0 && bytes == bad + head.n);
		for (size_t k = 1; rc == 0 && k < in.n; k++)
			MUST(in.v[k].file > in.v[k - 1].file || (in.v[k].file == in.v[k - 1].file && in.v[k].at >= in.v[k - 1].at + in.v[k - 1].len));
		vv_mem_free(in.v);
	}
	vv_mem_free(out.v);
	vv_buf_fini(&head);
	vv_file_set_close(&c);
}

int main(void)
{
	test_messages();
	if (!vv_codec_numbered(VV_CODEC_TRAIL))
		SKIP("built without zstd: memory that is alike is not coded together");
	test_alike(2, (const size_t[]){ 2200, 2200 }, 0.7);
	test_alike(3, (const size_t[]){ 1300, 0, 1500 }, 0.8);
	test_alike(4, (const size_t[]){ 1900, 40, 1, 1800 }, 0.8);
	test_alike(10, (const size_t[]){ 300, 300, 300, 300, 300, 300, 300, 300, 300, 300 }, 0.6);
	test_pauses();
	test_places();
	test_failures();
	test_damage();
	return 0;
}
