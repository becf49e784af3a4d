// ctest: TIMEOUT 120 PROCESSORS 2 COST 11
/* Files that come by themselves: interleaved, in pieces of any length, small and larger than what is held back, of several kinds in one file, empty;
 * all of them at once, or with pauses in between, at which the source takes back the memory that it lent. Each epoch gives back every byte, and stores
 * only what has changed. A source that fails at any part leaves the store as it was, and so does an allocation that fails; the session goes on. */
#include "base/err.h"
#include "base/mem.h"
#include "engine/files/stream_input.h"
#include "engine/context.h"
#include "engine/files/unpack.h"
#include "engine/read/restore.h"
#include "engine/session/session.h"
#include "engine/upkeep/verify.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "vv_test.h"
#include <inttypes.h>

enum { FILES = 7, KINDS = 2, PAGE = 4096 };

static const struct {
	const char *name;
	uint8_t segment;
} kinds[KINDS] = { { "heap", VV_SEGMENT_HEAP }, { "prog/data", VV_SEGMENT_CODE } };
static const char *const names[FILES] = { "core.img", "pages-1.img", "files.img", "pages-2.img", "empty.img", "big.img", "pages-3.img" };

struct source {
	struct {
		uint8_t *p;
		size_t n, at;
		bool told;
	} file[FILES];
	uint64_t state;
	size_t parts, fail_at; /* 0: never */
	size_t room, used;     /* what can be told between two pauses; 0: everything */
	uint8_t *lent, *skeleton; /* what was told since the last; the last part of no kind */
};

static bool is_pages(size_t i)
{
	return strncmp(names[i], "pages", 5) == 0;
}

/* Bytes that are good only as long as stream_input.h says. */
static const uint8_t *lend(struct source *s, const uint8_t *bytes, size_t n, bool variable)
{
	if (!s->room)
		return bytes;
	if (variable) {
		memcpy(s->lent + s->used, bytes, n);
		s->used += n;
		return s->lent + s->used - n;
	}
	free(s->skeleton);
	s->skeleton = malloc(n + 1);
	MUST(s->skeleton);
	memcpy(s->skeleton, bytes, n);
	return s->skeleton;
}

static bool must_pause(struct source *s, size_t n)
{
	if (!s->room || s->used + n <= s->room)
		return false;
	s->used = 0;
	return true;
}

/* Pages come whole, as they do from capture.c; a file of them has two kinds of stretches. */
static int next(void *arg, struct vv_stream_input_part *out)
{
	struct source *s = arg;
	size_t left = 0, i;

	if (s->fail_at && ++s->parts == s->fail_at)
		return vv_err_set(VV_EIO, "the source broke off");
	for (i = 0; i < FILES; i++)
		left += s->file[i].at < s->file[i].n || !s->file[i].told;
	if (left == 0)
		return 0;
	do
		i = (size_t)gen_below(&s->state, FILES);
	while (s->file[i].at == s->file[i].n && s->file[i].told);
	*out = (struct vv_stream_input_part){ .name = names[i] };
	if (s->file[i].told) {
		size_t n = 1 + (size_t)gen_below(&s->state, is_pages(i) ? 64 : 300000);

		n = is_pages(i) ? n * PAGE : n;
		out->n = n < s->file[i].n - s->file[i].at ? n : s->file[i].n - s->file[i].at;
	}
	if (is_pages(i)) {
		if (s->used == 0 && s->room)
			memset(s->lent, 0xee, s->room); /* what was told before the pause is gone */
		if (must_pause(s, out->n))
			return VV_STREAM_INPUT_PAUSE;
		out->variable = kinds[s->file[i].at / PAGE / 512 % KINDS].name;
		out->segment = kinds[s->file[i].at / PAGE / 512 % KINDS].segment;
	}
	out->bytes = lend(s, s->file[i].p + s->file[i].at, out->n, is_pages(i));
	s->file[i].told = true;
	s->file[i].at += out->n;
	return 1;
}

static void rewind_source(struct source *s, uint64_t state)
{
	for (size_t i = 0; i < FILES; i++) {
		s->file[i].at = 0;
		s->file[i].told = false;
	}
	s->state = state;
	s->parts = s->used = 0;
}

static void fill(struct source *s, size_t big)
{
	static const size_t size[FILES] = { 1500, 1100 * PAGE, 90000, 2300 * PAGE + 77, 0, 0, 3 * PAGE };
	uint64_t state = 7;

	for (size_t i = 0; i < FILES; i++) {
		s->file[i].n = i == 5 ? big : size[i];
		s->file[i].p = malloc(s->file[i].n + 1);
		MUST(s->file[i].p);
		if (i == 3)
			gen_text(&state, s->file[i].p, s->file[i].n);
		else
			gen_bytes(&state, s->file[i].p, s->file[i].n);
	}
	memset(s->file[1].p + 100 * PAGE, 0, 50 * PAGE);
}

static void empty(struct source *s)
{
	for (size_t i = 0; i < FILES; i++)
		free(s->file[i].p);
	free(s->lent);
	free(s->skeleton);
}

static int pour(varve *v, struct source *s, uint64_t state, struct vv_pack_report *r)
{
	struct vv_stream_input in = { .arg = s, .format = "criu", .expected = 16 << 20, .next = next };
	struct vv_pack_options how = { .scheme = VV_PACK_AUTO, .effort = VV_PACK_DEFAULT, .stream_input = &in };

	rewind_source(s, state);
	return vv_pack_run(v, NULL, 0, &how, r);
}

static void tell(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

static void compare(const char *url, uint64_t epoch, const struct source *s)
{
	struct vv_verify_report report = { 0 };
	struct vv_store *store = NULL;
	struct vv_pool *pool = NULL;
	struct vv_unpack u = { 0 };
	struct vv_lineage lin;

	CHECK_EQ(vv_pool_new(1, &pool), 0);
	CHECK_EQ(vv_store_open(url, &(struct vv_store_options){ 0 }, &store), 0);
	CHECK_EQ(vv_catalog_open(store, "set", false, &lin), 0);
	CHECK_EQ(vv_unpack_open(&lin, epoch, pool, &u), 0);
	CHECK_EQ(u.n_files, FILES);
	for (size_t i = 0; i < FILES; i++) {
		struct vv_unpack_file f;
		uint8_t *bytes = malloc(s->file[i].n + 1);

		CHECK(bytes);
		CHECK_EQ(vv_unpack_find(&u, names[i], &f), 0);
		CHECK_EQ(f.region->shape.len, s->file[i].n);
		CHECK_EQ(f.file->mode, 0600);
		CHECK_STR(f.file->format, "criu");
		CHECK_EQ(vv_restore_read(&lin, pool, &(struct vv_want){ &f.region->runs, 0, s->file[i].n, bytes, NULL }, 1), 0);
		CHECK(memcmp(bytes, s->file[i].p, s->file[i].n) == 0);
		free(bytes);
	}
	CHECK_EQ(vv_verify_run(&lin, pool, 0, false, tell, NULL, NULL, &report), 0);
	CHECK_EQ(report.problems, 0);
	vv_unpack_close(&u);
	vv_store_close(store);
	vv_pool_free(pool);
}

static const struct vv_manifest_kind *find_kind(const struct vv_pack_report *r, const char *key)
{
	for (size_t i = 0; i < r->manifest.n_kinds; i++)
		if (strcmp(r->manifest.kind[i].key, key) == 0)
			return &r->manifest.kind[i];
	return NULL;
}

/* Each byte is one of these, and is counted once, however many pauses there were. */
static void check_kinds(const struct vv_pack_report *r, const struct source *s)
{
	uint64_t sum = 0, pages = 0;

	for (size_t i = 0; i < KINDS; i++) {
		const struct vv_manifest_kind *k = find_kind(r, kinds[i].name);

		CHECK(k);
		CHECK_EQ(k->segment, kinds[i].segment);
		CHECK_EQ(k->raw, k->zero + k->dup_time + k->dup_space + k->fresh);
		sum += k->raw;
	}
	for (size_t i = 0; i < FILES; i++)
		pages += is_pages(i) ? s->file[i].n : 0;
	CHECK_EQ(sum, pages);
}

static void test_epochs(const char *options, size_t big, size_t room)
{
	struct vv_pack_report first = { 0 }, second = { 0 };
	char url[PLACE_MAX];
	struct source s = { 0 };
	varve *v = NULL;

	must_begin("epochs, %s, %zu, %zu", options, big, room);
	place_remove(place_path(url, "store"));
	fill(&s, big);
	s.room = room;
	s.lent = malloc(room + 1);
	MUST(s.lent);
	MUST(vv_session_open(NULL, url, "set", options, &v) == 0);
	MUST(pour(v, &s, 1, &first) == 0);
	check_kinds(&first, &s);
	CHECK_EQ(first.files, FILES);
	memset(s.file[1].p + 200 * PAGE, 3, PAGE + 5); /* two pages */
	s.file[3].p[0] ^= 1;
	MUST(pour(v, &s, 2, &second) == 0);
	CHECK_EQ(second.epoch, 2);
	check_kinds(&second, &s);
	CHECK(second.fresh < 5 * PAGE + 4 * PAGE); /* and the manifest */
	MUST(varve_close(v) == 0);
	compare(url, 2, &s);
	vv_pack_report_fini(&first);
	vv_pack_report_fini(&second);
	empty(&s);
}

/* After each failure the same session lays down the next epoch as if nothing had been. */
static void test_failures(void)
{
	struct vv_pack_report r = { 0 };
	char url[PLACE_MAX];
	struct source s = { 0 };
	varve *v = NULL;
	size_t failed = 0;

	must_begin("failures");
	place_remove(place_path(url, "store"));
	fill(&s, 100000);
	MUST(vv_session_open(NULL, url, "set", "mode=sync", &v) == 0);
	for (size_t at = 1; at < 400; at += at / 2 + 1) {
		s.fail_at = at;
		if (pour(v, &s, 1, &r) == 0)
			break;
		CHECK_STR(vv_err_last(), "the source broke off");
		failed++;
	}
	CHECK(failed > 5);
	s.fail_at = 0;
	vv_pack_report_fini(&r);
	for (long n = 1; n < 4000; n += n / 3 + 1) {
		int rc;

		vv_mem_fail_at(n);
		rc = pour(v, &s, 2, &r);
		vv_mem_fail_at(0);
		CHECK(rc == 0 || rc == VV_ENOMEM);
		if (rc == 0)
			vv_pack_report_fini(&r);
	}
	MUST(pour(v, &s, 3, &r) == 0);
	MUST(varve_close(v) == 0);
	compare(url, r.epoch, &s);
	vv_pack_report_fini(&r);
	empty(&s);
}

static int twice(void *arg, struct vv_stream_input_part *out)
{
	static char copy[] = "core.img";
	size_t *n = arg;

	*out = (struct vv_stream_input_part){ .name = ++*n == 1 ? "core.img" : copy };
	return 1;
}

static int climbs(void *arg, struct vv_stream_input_part *out)
{
	(void)arg;
	*out = (struct vv_stream_input_part){ .name = "../core.img" };
	return 1;
}

static void test_names(void)
{
	struct vv_pack_report r = { 0 };
	size_t n = 0;
	struct vv_stream_input in = { .arg = &n, .format = "criu", .next = twice };
	struct vv_pack_options how = { .scheme = VV_PACK_AUTO, .stream_input = &in };
	char url[PLACE_MAX];
	varve *v = NULL;

	must_begin("names");
	place_remove(place_path(url, "store"));
	MUST(vv_session_open(NULL, url, "set", "mode=sync", &v) == 0);
	CHECK_EQ(vv_pack_run(v, NULL, 0, &how, &r), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "two files"));
	in.next = climbs;
	CHECK_EQ(vv_pack_run(v, NULL, 0, &how, &r), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "relative"));
	MUST(varve_close(v) == 0);
}

int main(void)
{
	test_epochs("mode=sync", 100000, 0);
	test_epochs("mode=sync", 100000, 1 << 20);
	test_epochs("mode=sync threads=1 codec=none", 3 << 20, 3 << 20);
	test_epochs("mode=async threads=3", 70 << 20, 0);
	test_epochs("mode=async threads=3", 70 << 20, 64 * PAGE);
	test_failures();
	test_names();
	return 0;
}
