// ctest: TIMEOUT 120 COST 9
/* Files out of an epoch: bytes, modes and times come back, all of them or some, packed by one rank or by several;
 * nothing is replaced unasked. */
#include "base/err.h"
#include "engine/files/compare.h"
#include "engine/files/unpack_case.h"
#include "support/gen.h"
#include "support/threadcomm.h"
#include <sys/mman.h>

static char long_part[256], deep[VV_MANIFEST_NAME];

static void make_long_names(void)
{
	memset(long_part, 'n', 255);
	for (size_t i = 0; i + 2 < 3000; i += 2)
		memcpy(deep + i, "d/", 2);
	strcat(deep, "end");
}

static void test_round_trip(void)
{
	static uint8_t big[5000001];
	struct file file[] = {
		{ "a", big, sizeof(big), 0755 },
		{ "empty", "", 0, 0 },
		{ "run 1/rank\n2/x\xc3\xa4.h5", big, 70000, 0600 },
		{ "run 1/rank\n2/\xff\xfe", "x", 1, 0444 },
		{ ".hidden/-rf", "yy", 2, 04755 },
		{ long_part, "long", 4, 0 },
		{ deep, "deep", 4, 0 },
	};
	struct set s = { "round", file, sizeof(file) / sizeof(file[0]), NULL, false };
	struct vv_unpack_file f;
	struct view w = { 0 };
	char folder[PLACE_MAX], below[PLACE_MAX + 8];
	uint64_t state = 1;

	gen_bytes(&state, big, sizeof(big));
	memset(big + 1000000, 0, 2000000);
	pack(NULL, &s);
	place_path(folder, "round");
	snprintf(below, sizeof(below), "%s/x/y/", folder);
	ok(unpack("round", below, false));
	for (size_t i = 0; i < s.n; i++)
		check_file(below, &file[i], i);
	ok(open_view(&w, "round"));
	CHECK_EQ(w.u.n_files, s.n);
	ok(vv_unpack_find(&w.u, "empty", &f));
	CHECK_STR(f.file->name, "empty");
	CHECK_EQ(vv_unpack_find(&w.u, "run 1", &f), VV_ENOENT);
	CHECK_EQ(vv_unpack_find(&w.u, "nix", &f), VV_ENOENT);
	close_view(&w);
}

static void test_some(void)
{
	struct file file[] = { { "a", "1", 1, 0 }, { "d/b", "2", 1, 0 }, { "d/e/c", "3", 1, 0 }, { "d.x", "4", 1, 0 }, { "da", "5", 1, 0 } };
	struct set s = { "some", file, 5, NULL, false };
	const char *only[] = { "d", "a" }, *none[] = { "a", "x/nix" };
	struct vv_unpack_options opt = { .only = only, .n_only = 2 };
	struct vv_unpack_report r;
	char folder[PLACE_MAX];

	pack(NULL, &s);
	opt.folder = place_path(folder, "some");
	ok(unpack_with("some", &opt, &r));
	CHECK_EQ(r.files, 3);
	CHECK_EQ(r.bytes, 3);
	check_file(folder, &file[0], 0);
	check_file(folder, &file[2], 2);
	CHECK(!exists(folder, "d.x") && !exists(folder, "da"));
	place_remove(folder);
	opt.only = none;
	CHECK_EQ(unpack_with("some", &opt, &r), VV_ENOENT);
	CHECK(!exists(folder, "a"));
}

/* Refused before anything is written; with force replaced, and links are not followed. */
static void test_existing(void)
{
	struct file file[] = { { "a", "new a", 5, 0 }, { "d/b", "new b", 5, 0 }, { "z", "new z", 5, 0 } };
	struct set s = { "there", file, 3, NULL, false };
	char folder[PLACE_MAX], path[2 * PLACE_MAX], outside[PLACE_MAX];
	uint8_t *p;
	size_t n;

	pack(NULL, &s);
	place_make_dir(place_path(folder, "there"));
	place_write(place_path(outside, "outside"), "mine", 4);
	snprintf(path, sizeof(path), "%s/z", folder);
	CHECK(symlink(outside, path) == 0);
	CHECK_EQ(unpack("there", folder, false), VV_EINVAL);
	CHECK(strstr(varve_last_error(), "'z'") && strstr(varve_last_error(), "--force"));
	CHECK(!exists(folder, "a") && !exists(folder, "d"));
	ok(unpack("there", folder, true));
	for (size_t i = 0; i < 3; i++)
		check_file(folder, &file[i], i);
	p = place_read(outside, &n);
	CHECK(n == 4 && memcmp(p, "mine", 4) == 0);
	free(p);
	ok(unpack("there", folder, true));
	place_remove(path);
	place_make_dir(path);
	CHECK_EQ(unpack("there", folder, true), VV_EINVAL);
	CHECK(strstr(varve_last_error(), "is a folder"));
}

static void test_no_files(void)
{
	static uint8_t x[3];
	struct view w = { 0 };
	varve *v = NULL;

	ok(varve_open(store_url, "plain", "mode=sync", &v));
	ok(varve_protect(v, "x", x, 3));
	ok(varve_checkpoint(v));
	ok(varve_close(v));
	CHECK_EQ(open_view(&w, "plain"), VV_EINVAL);
	CHECK(strstr(varve_last_error(), "not packed from files"));
	close_view(&w);
}

/* Several ranks: the same name in two of them; else shares of M readers give all files, each once. */
static void test_ranks(void)
{
	static uint8_t bytes[300000];
	struct file file[] = { { "a", bytes, 300000, 0 }, { "b", bytes, 1000, 0 }, { "c", bytes + 7, 200000, 0 }, { "e", "", 0, 0 } };
	struct set clash = { "clash", file, 4, NULL, false }, s = { "ranks", file, 4, NULL, true };
	struct view w = { 0 };
	uint64_t state = 5;
	char folder[PLACE_MAX], below[PLACE_MAX + 8];

	gen_bytes(&state, bytes, sizeof(bytes));
	threadcomm_run(3, pack, &clash);
	CHECK_EQ(open_view(&w, "clash"), VV_EDAMAGED);
	CHECK(strstr(varve_last_error(), "twice, of ranks"));
	close_view(&w);
	threadcomm_run(3, pack, &s);
	for (uint32_t shares = 1; shares <= 20; shares += shares < 4 ? 1 : 16) {
		struct vv_unpack_options opt = { .folder = place_path(folder, "ranks"), .shares = shares };
		uint64_t files = 0, most = 0;

		for (opt.share = 0; opt.share < shares; opt.share++) {
			struct vv_unpack_report r;

			ok(unpack_with("ranks", &opt, &r));
			files += r.files;
			most = r.bytes > most ? r.bytes : most;
			vv_unpack_report_fini(&r);
		}
		CHECK_EQ(files, 12);
		CHECK(shares > 3 || most <= 1503000 / shares + 300000);
		for (int r = 0; r < 3; r++) {
			snprintf(below, sizeof(below), "%s/r%d", folder, r);
			for (size_t i = 0; i < 4; i++)
				check_file(below, &file[i], i);
		}
		ok(open_view(&w, "ranks"));
		CHECK_EQ(vv_unpack_check(&w.u, &opt), VV_EINVAL);
		opt.force = true;
		ok(vv_unpack_check(&w.u, &opt));
		close_view(&w);
		place_remove(folder);
	}
}

/* 2 GiB with three words in it: it stays sparse. */
static void test_sparse(void)
{
	size_t n = (2ull << 30) + 12345;
	uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct file file = { "sparse", p, n, 0 };
	struct set s = { "sparse", &file, 1, NULL, false };
	char folder[PLACE_MAX], path[2 * PLACE_MAX];
	struct vv_unpack_file f;
	struct view w = { 0 };
	bool equal = false;
	struct stat st;
	int fd;

	CHECK(p != MAP_FAILED);
	memcpy(p, "begin", 5);
	memcpy(p + (1u << 30) + 77, "middle", 6);
	memcpy(p + n - 3, "end", 3);
	pack(NULL, &s);
	ok(unpack("sparse", place_path(folder, "sparse"), false));
	snprintf(path, sizeof(path), "%s/sparse", folder);
	CHECK(stat(path, &st) == 0);
	CHECK_EQ(st.st_size, n);
	CHECK(st.st_blocks * 512 < 1 << 20);
	ok(open_view(&w, "sparse"));
	ok(vv_unpack_find(&w.u, "sparse", &f));
	fd = open(path, O_RDWR | O_CLOEXEC);
	ok(vv_compare_files(&w.u, pool, &f, &fd, &equal, 1, NULL));
	CHECK(equal);
	CHECK(pwrite(fd, "x", 1, 1500000000) == 1);
	ok(vv_compare_files(&w.u, pool, &f, &fd, &equal, 1, NULL));
	CHECK(!equal);
	close(fd);
	close_view(&w);
	munmap(p, n);
}

static void test_same(void)
{
	static uint8_t bytes[400000];
	struct file file[] = { { "a", bytes, sizeof(bytes), 0 }, { "b", bytes + 5, 100000, 0 }, { "c", "", 0, 0 } };
	struct set s = { "same", file, 3, NULL, false };
	char folder[PLACE_MAX], path[2 * PLACE_MAX];
	struct vv_unpack_file f[3];
	struct view w = { 0 };
	uint64_t state = 11;
	bool equal[3];
	int fd[3];

	gen_bytes(&state, bytes, sizeof(bytes));
	pack(NULL, &s);
	ok(unpack("same", place_path(folder, "same"), false));
	ok(open_view(&w, "same"));
	for (size_t i = 0; i < 3; i++) {
		f[i] = vv_unpack_at(&w.u, i);
		snprintf(path, sizeof(path), "%s/%s", folder, file[i].name);
		CHECK((fd[i] = open(path, O_RDWR | O_CLOEXEC)) >= 0);
	}
	ok(vv_compare_files(&w.u, pool, f, fd, equal, 3, NULL));
	CHECK(equal[0] && equal[1] && equal[2]);
	CHECK(pwrite(fd[0], "!?", 2, 399998) == 2 && ftruncate(fd[2], 1) == 0);
	ok(vv_compare_files(&w.u, pool, f, fd, equal, 3, NULL));
	CHECK(!equal[0] && equal[1] && !equal[2]);
	for (size_t i = 0; i < 3; i++)
		close(fd[i]);
	close_view(&w);
}

static void test_many(void)
{
	enum { N = 3000 };
	static char name[N][40];
	static uint8_t bytes[N + 20000];
	static struct file file[N];
	struct set s = { "many", file, N, NULL, false };
	char folder[PLACE_MAX];
	uint64_t state = 13;

	gen_bytes(&state, bytes, sizeof(bytes));
	for (size_t i = 0; i < N; i++) {
		snprintf(name[i], sizeof(name[i]), "step%zu/rank%04zu", i % 37, i);
		file[i] = (struct file){ name[i], bytes + i, gen_below(&state, 20000), 0 };
	}
	pack(NULL, &s);
	ok(unpack("many", place_path(folder, "many"), false));
	for (size_t i = 0; i < N; i++)
		check_file(folder, &file[i], i);
}

int main(void)
{
	place_path(store_url, "store");
	make_long_names();
	ok(vv_pool_new(2, &pool));
	test_round_trip();
	test_some();
	test_existing();
	test_no_files();
	test_ranks();
	test_sparse();
	test_same();
	test_many();
	vv_pool_free(pool);
	return 0;
}
