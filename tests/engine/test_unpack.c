// ctest: TIMEOUT 120
/* Files out of an epoch: bytes, modes and times come back, and whatever is in the target folder or in a forged list of files, nothing is written
 * outside of it or replaced unasked. What cannot be unpacked is named, and costs no other file. */
#include "base/err.h"
#include "base/mem.h"
#include "engine/same.h"
#include "engine/unpack.h"
#include "support/gen.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve_comm.h>

struct file {
	const char *name;
	const void *p;
	size_t n;
	uint32_t mode;
};

static struct vv_pool *pool;
static char store_url[PLACE_MAX];

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* ---- epochs ------------------------------------------------------------------------------------------------------- */

struct set {
	const char *lineage;
	const struct file *file; /* of each rank as many as there are */
	size_t n;
	void (*forge)(struct vv_manifest *m);
	bool per_rank; /* each in a folder of its own */
};

static void list_files(const struct set *s, uint32_t rank, struct vv_buf *out)
{
	struct vv_manifest m = { .scheme = vv_mem_strdup("auto"), .effort = vv_mem_strdup("default") };

	for (size_t i = 0; i < s->n; i++) {
		char name[VV_MANIFEST_NAME];
		struct vv_manifest_file *f;

		if (s->per_rank)
			snprintf(name, sizeof(name), "r%u/%s", rank, s->file[i].name);
		else
			snprintf(name, sizeof(name), "%s", s->file[i].name);
		f = vv_manifest_add_file(&m, name);
		CHECK(f);
		f->region = (uint32_t)i;
		f->mode = s->file[i].mode ? s->file[i].mode : 0640;
		f->mtime_s = 1000000000 + (int64_t)i;
		f->mtime_ns = 123456789;
		f->format = vv_mem_strdup("opaque");
	}
	if (s->forge)
		s->forge(&m);
	vv_manifest_put(&m, out);
	ok(vv_buf_check(out));
	vv_manifest_fini(&m);
}

static void pack(const struct varve_comm *comm, void *arg)
{
	const struct set *s = arg;
	struct vv_buf list = { 0 };
	varve *v = NULL;

	ok(comm ? varve_open_comm(comm, store_url, s->lineage, "mode=sync codec=none tracker=digest", &v) :
		  varve_open(store_url, s->lineage, "mode=sync codec=none tracker=digest", &v));
	for (size_t i = 0; i < s->n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "file %zu", i);
		ok(varve_protect(v, name, (void *)(uintptr_t)s->file[i].p, s->file[i].n));
	}
	list_files(s, comm ? comm->rank : 0, &list);
	ok(varve_protect(v, VV_MANIFEST_REGION, list.p, list.n));
	ok(varve_checkpoint(v));
	ok(varve_close(v));
	vv_buf_fini(&list);
}

struct view {
	struct vv_store *store;
	struct vv_lineage lineage;
	struct vv_unpack u;
};

static int open_view(struct view *w, const char *lineage)
{
	struct vv_store_options opt = { .create = false };
	uint64_t epoch = 0;

	ok(vv_store_open(store_url, &opt, &w->store));
	ok(vv_catalog_open(w->store, lineage, false, &w->lineage));
	ok(vv_catalog_newest(&w->lineage, UINT64_MAX, &epoch));
	return vv_unpack_open(&w->lineage, epoch, pool, &w->u);
}

static void close_view(struct view *w)
{
	vv_unpack_close(&w->u);
	vv_store_close(w->store);
}

/* ---- looking at what came out ------------------------------------------------------------------------------------- */

static bool exists(const char *folder, const char *name)
{
	char path[2 * PLACE_MAX + VV_MANIFEST_NAME];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return lstat(path, &st) == 0;
}

static void check_file(const char *folder, const struct file *f, size_t number)
{
	char path[2 * PLACE_MAX + VV_MANIFEST_NAME];
	struct stat st;
	uint8_t *p;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, f->name);
	CHECK(lstat(path, &st) == 0 && S_ISREG(st.st_mode));
	CHECK_EQ(st.st_mode & 07777, f->mode ? f->mode & 01777 : 0640);
	CHECK_EQ(st.st_mtim.tv_sec, 1000000000 + (long)number);
	CHECK_EQ(st.st_mtim.tv_nsec, 123456789);
	CHECK_EQ(st.st_size, f->n);
	CHECK(chmod(path, 0600) == 0);
	p = place_read(path, &n);
	CHECK(memcmp(p, f->p, n) == 0);
	free(p);
}

/* Temporary files anywhere below? */
static size_t count_leftovers(const char *folder)
{
	char path[2 * PLACE_MAX + VV_MANIFEST_NAME];
	DIR *d = opendir(folder);
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d))) {
		n += strncmp(e->d_name, ".varve-", 7) == 0;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (e->d_type == DT_DIR && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			n += count_leftovers(path);
	}
	if (d)
		closedir(d);
	return n;
}

static int unpack_with(const char *lineage, const struct vv_unpack_options *opt, struct vv_unpack_report *r)
{
	struct view w = { 0 };
	int rc = open_view(&w, lineage);

	*r = (struct vv_unpack_report){ 0 };
	if (rc == 0)
		rc = vv_unpack_run(&w.u, pool, opt, r);
	close_view(&w);
	return rc;
}

static int unpack(const char *lineage, const char *folder, bool force)
{
	struct vv_unpack_options opt = { .folder = folder, .force = force };
	struct vv_unpack_report r;
	int rc = unpack_with(lineage, &opt, &r);

	vv_unpack_report_fini(&r);
	CHECK_EQ(count_leftovers(folder), 0);
	return rc;
}

/* ---- cases -------------------------------------------------------------------------------------------------------- */

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

/* A link on the way, to a folder inside or outside; a file where a folder must be. */
static void test_links(void)
{
	struct file file[] = { { "d/e/x", "evil", 4, 0 }, { "other", "o", 1, 0 } };
	struct set s = { "links", file, 2, NULL, false };
	char folder[PLACE_MAX], path[2 * PLACE_MAX], outside[PLACE_MAX], inside[2 * PLACE_MAX];

	pack(NULL, &s);
	place_make_dir(place_path(outside, "victim"));
	for (int force = 0; force < 2; force++) {
		place_remove(place_path(folder, "links"));
		place_make_dir(folder);
		snprintf(path, sizeof(path), "%s/d", folder);
		snprintf(inside, sizeof(inside), "%s/real", folder);
		place_make_dir(inside);
		CHECK(symlink(outside, path) == 0);
		CHECK_EQ(unpack("links", folder, force), VV_EINVAL);
		CHECK(strstr(varve_last_error(), "in the way"));
		CHECK(!exists(outside, "e") && !exists(folder, "other"));
		CHECK(unlink(path) == 0 && symlink("real", path) == 0);
		CHECK_EQ(unpack("links", folder, force), VV_EINVAL);
		CHECK(!exists(inside, "e"));
		CHECK(unlink(path) == 0 && symlink("nowhere", path) == 0);
		CHECK_EQ(unpack("links", folder, force), VV_EINVAL);
		CHECK(unlink(path) == 0);
		place_write(path, "file", 4);
		CHECK_EQ(unpack("links", folder, force), VV_EINVAL);
		CHECK(unlink(path) == 0);
		place_make_dir(path);
		snprintf(path, sizeof(path), "%s/d/e", folder);
		CHECK(symlink("../..", path) == 0);
		CHECK_EQ(unpack("links", folder, force), VV_EINVAL);
	}
	/* the folder itself is the caller's, and may be reached through a link */
	place_remove(folder);
	CHECK(symlink(outside, folder) == 0);
	ok(unpack("links", folder, false));
	check_file(outside, &file[0], 0);
}

static void say(struct vv_manifest *m, const char *name)
{
	vv_mem_free(m->file[0].name);
	m->file[0].name = vv_mem_strdup(name);
}

static void climb(struct vv_manifest *m) { say(m, "../victim/x"); }
static void climb_late(struct vv_manifest *m) { say(m, "d/../../victim/x"); }
static void start_anew(struct vv_manifest *m) { say(m, "/victim/x"); }
static void twice(struct vv_manifest *m) { say(m, m->file[1].name); }
static void be_folder(struct vv_manifest *m) { say(m, "b"); } /* the other is b/c */
static void itself(struct vv_manifest *m) { m->file[0].region = 2; }
static void nothing_there(struct vv_manifest *m) { m->file[0].region = 3; }
static void same(struct vv_manifest *m) { m->file[0].region = m->file[1].region; }

static void test_forged(void)
{
	static void (*const forge[])(struct vv_manifest *) = { climb, climb_late, start_anew, twice, be_folder, itself, nothing_there, same };
	struct file file[] = { { "a", "a", 1, 0 }, { "b/c", "b", 1, 0 } };
	char folder[PLACE_MAX];

	place_make_dir(place_path(folder, "forged"));
	for (size_t i = 0; i < sizeof(forge) / sizeof(forge[0]); i++) {
		struct set s = { "forged", file, 2, forge[i], false };

		pack(NULL, &s);
		CHECK_EQ(unpack("forged", folder, true), VV_EDAMAGED);
		CHECK(!exists(folder, "b") && !exists(folder, "a"));
	}
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

/* One is damaged: it is named, the others come, and nothing is left of it. */
static void test_damage(void)
{
	enum { N = 6, LEN = 3000000 };
	static uint8_t bytes[N][LEN];
	static const char *const names[N] = { "0", "1", "2", "3", "4", "5" };
	struct file file[N];
	struct set s = { "damage", file, N, NULL, false };
	struct vv_unpack_report r;
	struct vv_unpack_options opt = { 0 };
	char folder[PLACE_MAX], layer[2 * PLACE_MAX];
	uint64_t state = 7;
	uint8_t *p;
	size_t n;

	for (size_t i = 0; i < N; i++) {
		gen_bytes(&state, bytes[i], LEN);
		file[i] = (struct file){ names[i], bytes[i], LEN, 0 };
	}
	pack(NULL, &s);
	snprintf(layer, sizeof(layer), "%s/damage/00000000/0000000001.r0.layer", store_url);
	p = place_read(layer, &n);
	p[16 + 3 * LEN + 1700000] ^= 1; /* in file 3: blocks are not coded, and lie in the order of the regions */
	place_write(layer, p, n);
	free(p);
	opt.folder = place_path(folder, "damage");
	CHECK_EQ(unpack_with("damage", &opt, &r), VV_EDAMAGED);
	CHECK_EQ(r.files, N - 1);
	CHECK_EQ(r.n_missing, 1);
	CHECK_STR(r.missing[0], "3");
	CHECK(!exists(folder, "3"));
	CHECK_EQ(count_leftovers(folder), 0);
	for (size_t i = 0; i < N; i++)
		if (i != 3)
			check_file(folder, &file[i], i);
	vv_unpack_report_fini(&r);
}

/* Many in one block that is not coded: who needs other parts of it has them. */
static void test_damage_nearby(void)
{
	enum { N = 10, LEN = 80000 };
	static uint8_t bytes[N][LEN];
	static const char *const names[N] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };
	struct file file[N];
	struct set s = { "nearby", file, N, NULL, false };
	struct vv_unpack_report r;
	struct vv_unpack_options opt = { 0 };
	char folder[PLACE_MAX], layer[2 * PLACE_MAX];
	uint64_t state = 8;
	uint8_t *p, *at;
	size_t n;

	for (size_t i = 0; i < N; i++) {
		gen_bytes(&state, bytes[i], LEN);
		file[i] = (struct file){ names[i], bytes[i], LEN, 0 };
	}
	pack(NULL, &s);
	snprintf(layer, sizeof(layer), "%s/nearby/00000000/0000000001.r0.layer", store_url);
	p = place_read(layer, &n);
	at = memmem(p, n, bytes[4] + 40000, 64);
	CHECK(at);
	*at ^= 1;
	place_write(layer, p, n);
	free(p);
	opt.folder = place_path(folder, "nearby");
	CHECK_EQ(unpack_with("nearby", &opt, &r), VV_EDAMAGED);
	CHECK_EQ(r.n_missing, 1);
	CHECK_STR(r.missing[0], "4");
	for (size_t i = 0; i < N; i++)
		if (i != 4)
			check_file(folder, &file[i], i);
	vv_unpack_report_fini(&r);
}

/* On a small file system: as many as there is space for are whole, all others are named. */
static void full_disk(const char *folder, const struct file *file, size_t n)
{
	struct vv_unpack_options opt = { .folder = folder };
	struct vv_unpack_report r;

	CHECK_EQ(unpack_with("space", &opt, &r), VV_ENOSPC);
	CHECK(r.files >= 6 && r.files <= 8);
	CHECK_EQ(r.files + r.n_missing, n);
	CHECK_EQ(count_leftovers(folder), 0);
	for (size_t i = 0; i < n; i++) {
		bool is_missing = false;

		for (size_t k = 0; k < r.n_missing; k++)
			is_missing |= strcmp(r.missing[k], file[i].name) == 0;
		CHECK_EQ(is_missing, !exists(folder, file[i].name));
		if (!is_missing)
			check_file(folder, &file[i], i);
	}
	vv_unpack_report_fini(&r);
}

static void test_full_disk(void)
{
	enum { N = 20, LEN = 1 << 20 };
	static uint8_t bytes[N][LEN];
	static char name[N][16];
	struct file file[N];
	struct set s = { "space", file, N, NULL, false };
	char folder[PLACE_MAX];
	uint64_t state = 9;

	for (size_t i = 0; i < N; i++) {
		gen_bytes(&state, bytes[i], LEN);
		snprintf(name[i], sizeof(name[i]), "f%02zu", i);
		file[i] = (struct file){ name[i], bytes[i], LEN, 0 };
	}
	pack(NULL, &s);
	place_make_dir(place_path(folder, "space"));
	if (mount("none", folder, "tmpfs", 0, "size=8m") < 0) {
		fprintf(stderr, "no small file system here (%s): want of space is not tried\n", strerror(errno));
		return;
	}
	full_disk(folder, file, N);
	CHECK(umount(folder) == 0);
}

/* A limit on the size of files concerns the one that is too large. */
static void test_large_file(void)
{
	static uint8_t bytes[3 << 20];
	struct file file[] = { { "a", bytes, 1000, 0 }, { "b", bytes, sizeof(bytes), 0 }, { "c", bytes, 2000, 0 } };
	struct set s = { "limit", file, 3, NULL, false };
	struct rlimit old, limit;
	struct vv_unpack_options opt = { 0 };
	struct vv_unpack_report r;
	uint64_t state = 10;
	char folder[PLACE_MAX];

	gen_bytes(&state, bytes, sizeof(bytes));
	pack(NULL, &s);
	opt.folder = place_path(folder, "limit");
	signal(SIGXFSZ, SIG_IGN);
	CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
	limit = (struct rlimit){ 1 << 20, old.rlim_max };
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHECK(unpack_with("limit", &opt, &r) < 0);
	CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
	CHECK_EQ(r.files, 2);
	CHECK_EQ(r.n_missing, 1);
	CHECK_STR(r.missing[0], "b");
	check_file(folder, &file[2], 2);
	CHECK_EQ(count_leftovers(folder), 0);
	vv_unpack_report_fini(&r);
}

static void test_read_only(void)
{
	struct file file[] = { { "d/a", "a", 1, 0 } };
	struct set s = { "deny", file, 1, NULL, false };
	char folder[PLACE_MAX];
	int status;
	pid_t child;

	pack(NULL, &s);
	place_make_dir(place_path(folder, "deny"));
	CHECK(chmod(folder, 0555) == 0 && chmod(place_root(), 0755) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct vv_unpack_options opt = { .folder = folder };
		struct vv_unpack_report r = { 0 };
		struct view w = { 0 };
		int rc;

		ok(vv_pool_new(0, &pool));
		rc = open_view(&w, "deny");
		if (rc == 0 && getuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(3);
		if (rc == 0)
			rc = vv_unpack_run(&w.u, pool, &opt, &r);
		_exit(rc == VV_EDENIED && r.n_missing == 1 ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(!exists(folder, "d"));
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
	ok(vv_same_files(&w.u, pool, &f, &fd, &equal, 1, NULL));
	CHECK(equal);
	CHECK(pwrite(fd, "x", 1, 1500000000) == 1);
	ok(vv_same_files(&w.u, pool, &f, &fd, &equal, 1, NULL));
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
	ok(vv_same_files(&w.u, pool, f, fd, equal, 3, NULL));
	CHECK(equal[0] && equal[1] && equal[2]);
	CHECK(pwrite(fd[0], "!?", 2, 399998) == 2 && ftruncate(fd[2], 1) == 0);
	ok(vv_same_files(&w.u, pool, f, fd, equal, 3, NULL));
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

static void test_stop(void)
{
	struct file file[] = { { "a", "a", 1, 0 }, { "b", "b", 1, 0 } };
	struct set s = { "stop", file, 2, NULL, false };
	atomic_bool stop = true;
	struct vv_unpack_options opt = { .stop = &stop };
	struct vv_unpack_report r;
	char folder[PLACE_MAX];

	pack(NULL, &s);
	opt.folder = place_path(folder, "stop");
	CHECK_EQ(unpack_with("stop", &opt, &r), VV_EIO);
	CHECK_EQ(r.n_missing, 2);
	CHECK(!exists(folder, "a"));
	vv_unpack_report_fini(&r);
}

int main(void)
{
	place_path(store_url, "store");
	make_long_names();
	test_read_only(); /* forks before there are threads */
	ok(vv_pool_new(2, &pool));
	test_round_trip();
	test_some();
	test_existing();
	test_links();
	test_forged();
	test_no_files();
	test_ranks();
	test_damage();
	test_damage_nearby();
	test_full_disk();
	test_large_file();
	test_sparse();
	test_same();
	test_many();
	test_stop();
	vv_pool_free(pool);
	return 0;
}
