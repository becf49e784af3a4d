// ctest: TIMEOUT 120
/* Whatever is in the target folder or in a forged list of files, nothing is written outside of it. What cannot be unpacked, because it is damaged, the
 * disk is full or somebody says stop, is named, and costs no other file. */
#include "base/err.h"
#include "engine/files/unpack_case.h"
#include "support/gen.h"
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

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
	test_read_only(); /* forks before there are threads */
	ok(vv_pool_new(2, &pool));
	test_links();
	test_forged();
	test_damage();
	test_damage_nearby();
	test_full_disk();
	test_large_file();
	test_stop();
	vv_pool_free(pool);
	return 0;
}
