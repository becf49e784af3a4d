/* A store in a directory: the common suite, and what only file systems have: permissions, things in the way, leftovers of
 * the dead. */
#include "base/err.h"
#include "base/mem.h"
#include "store/store.h"
#include "support/place.h"
#include "support/storesuite.h"
#include "vv_test.h"
#include <sys/stat.h>
#include <unistd.h>

static int open_at(const char *url, bool create, struct vv_store **out)
{
	struct vv_store_options opt = { .create = create };

	return vv_store_open(url, &opt, out);
}

static void write_file(const char *path)
{
	place_write(path, "x", 1);
}

/* Paths: made with all that is above them, given as dir:, relative, with slashes at the end. */
static void paths(void)
{
	struct vv_store *s = NULL;
	char deep[PLACE_MAX], url[PLACE_MAX + 8], cwd[PLACE_MAX];
	uint8_t *p = NULL;
	size_t n = 0;

	place_path(deep, "a/b/c");
	CHECK_EQ(open_at(deep, false, &s), VV_ENOENT);
	CHECK(strstr(vv_err_last(), deep));
	snprintf(url, sizeof(url), "dir:%s//", deep);
	CHECK_EQ(open_at(url, true, &s), 0);
	CHECK_EQ(vv_store_put(s, "x", "1", 1), 0);
	vv_store_close(s);
	CHECK(getcwd(cwd, sizeof(cwd)) && chdir(place_root()) == 0);
	CHECK_EQ(open_at("a/b/c", false, &s), 0);
	CHECK(chdir(cwd) == 0);
	CHECK_EQ(vv_store_get(s, "x", 1, &p, &n), 0); /* it is not where the process is, but where it was opened */
	vv_mem_free(p);
	vv_store_close(s);
	CHECK_EQ(open_at("", true, &s), VV_EINVAL);
	CHECK_EQ(open_at("dir:", true, &s), VV_EINVAL);
	CHECK_EQ(open_at("ftp://x/y", true, &s), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "ftp://x/y"));
}

/* Files where folders should be, and the other way round. */
static void in_the_way(void)
{
	char file[PLACE_MAX], below[PLACE_MAX], root[PLACE_MAX], path[PLACE_MAX];
	struct vv_store *s = NULL;
	struct vv_get *g = NULL;

	write_file(place_path(file, "file"));
	CHECK_EQ(open_at(file, true, &s), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "not a directory"));
	CHECK_EQ(open_at(file, false, &s), VV_EINVAL);
	CHECK(open_at(place_path(below, "file/below"), true, &s) < 0);
	CHECK(strstr(vv_err_last(), file));
	CHECK_EQ(open_at(place_path(root, "way"), true, &s), 0);
	place_make_dir(place_path(path, "way/folder"));
	CHECK_EQ(vv_store_get_open(s, "folder", &g), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "not a regular file"));
	CHECK(vv_store_put(s, "folder", "x", 1) < 0);
	CHECK(strstr(vv_err_last(), "way/folder"));
	CHECK(vv_store_remove(s, "folder") < 0);
	write_file(place_path(path, "way/plain"));
	CHECK(vv_store_put(s, "plain/object", "x", 1) < 0);
	CHECK(strstr(vv_err_last(), "way/plain"));
	vv_store_close(s);
}

static size_t count(struct vv_store *s, const char *dir)
{
	struct vv_names v = { 0 };
	size_t n;

	CHECK_EQ(vv_store_list(s, dir, &v), 0);
	n = v.n;
	vv_names_fini(&v);
	return n;
}

/* A temporary file is not listed, and goes with the next sweep; nothing else does. */
static void leftovers(void)
{
	char root[PLACE_MAX], tmp[PLACE_MAX], other[PLACE_MAX];
	struct vv_store *s = NULL;

	CHECK_EQ(open_at(place_path(root, "left"), true, &s), 0);
	CHECK_EQ(vv_store_put(s, "d/x", "1", 1), 0);
	write_file(place_path(tmp, "left/d/.tmp-y-1-0"));
	write_file(place_path(other, "left/d/.hidden"));
	CHECK_EQ(count(s, "d"), 1);
	CHECK_EQ(vv_store_sweep(s, "d"), 0);
	CHECK(access(tmp, F_OK) < 0);
	CHECK(access(other, F_OK) == 0);
	CHECK_EQ(count(s, "d"), 1);
	vv_store_close(s);
}

static void denied(void)
{
	char root[PLACE_MAX];
	struct vv_store *s = NULL;
	struct vv_get *g = NULL;
	struct vv_lock *l = NULL;
	char path[PLACE_MAX];

	CHECK_EQ(open_at(place_path(root, "denied"), true, &s), 0);
	CHECK_EQ(vv_store_put(s, "d/x", "1", 1), 0);
	place_path(path, "denied/d/x");
	CHECK(chmod(path, 0) == 0);
	CHECK_EQ(vv_store_get_open(s, "d/x", &g), VV_EDENIED);
	CHECK(strstr(vv_err_last(), path));
	CHECK(chmod(path, 0644) == 0 && chmod(place_path(path, "denied/d"), 0555) == 0 && chmod(root, 0555) == 0);
	CHECK_EQ(vv_store_put(s, "d/y", "1", 1), VV_EDENIED);
	CHECK(strstr(vv_err_last(), "denied/d"));
	CHECK_EQ(vv_store_put(s, "e/y", "1", 1), VV_EDENIED);
	CHECK_EQ(vv_store_remove(s, "d/x"), VV_EDENIED);
	CHECK_EQ(vv_store_lock(s, "e/lock", &l), VV_EDENIED);
	CHECK_EQ(vv_store_get_open(s, "d/x", &g), 0); /* reading still works */
	vv_store_get_close(g);
	vv_store_close(s);
	CHECK_EQ(open_at(root, true, &s), 0);
	vv_store_close(s);
	CHECK_EQ(open_at(place_path(path, "denied/below"), true, &s), VV_EDENIED);
	CHECK(chmod(place_path(path, "denied/d"), 0755) == 0 && chmod(root, 0755) == 0);
}

int main(void)
{
	const char *build = getenv("VARVE_BUILD");
	char root[PLACE_MAX];

	setenv("TMPDIR", build ? build : ".", 0); /* a real disk */
	storesuite_run(place_path(root, "suite"));
	paths();
	in_the_way();
	leftovers();
	if (getuid() != 0)
		denied();
	else
		printf("permissions are not checked as root\n");
	return 0;
}
