/* Things in a store's folder that nobody of ours put there: FIFOs, sockets, links, folders. They are named in an error or
 * passed over; nobody hangs, and nothing outside is written to. */
#include "base/err.h"
#include "base/mem.h"
#include "core/format/name.h"
#include "store/store.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <varve/varve.h>

enum { WORDS = 512 };

static uint32_t memory[WORDS];
static char root[PLACE_MAX];

static void fill(uint32_t epoch)
{
	for (uint32_t i = 0; i < WORDS; i++)
		memory[i] = i * 2654435761u + epoch;
}

static bool holds(uint32_t epoch)
{
	for (uint32_t i = 0; i < WORDS; i++)
		if (memory[i] != i * 2654435761u + epoch)
			return false;
	return true;
}

static const char *path_of(const char *object)
{
	static char path[PLACE_MAX + VV_NAME_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, object);
	return path;
}

/* A fresh store with two epochs, the second one a delta. */
static void make_store(void)
{
	varve *v = NULL;

	place_remove(place_path(root, "store"));
	CHECK_EQ(varve_open(root, "a", "log=error", &v), 0);
	CHECK_EQ(varve_protect(v, "m", memory, sizeof(memory)), 0);
	for (uint32_t epoch = 1; epoch <= 2; epoch++) {
		fill(epoch);
		CHECK_EQ(settle_checkpoint(v), 0);
	}
	varve_close(v);
}

static void put_fifo(const char *object)
{
	place_remove(path_of(object));
	CHECK(mkfifo(path_of(object), 0666) == 0);
}

static void put_socket(const char *object)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char cwd[PLACE_MAX];

	place_remove(path_of(object));
	CHECK(getcwd(cwd, sizeof(cwd)) && chdir(root) == 0); /* the name of a socket must be short */
	CHECK(strlen(object) < sizeof(a.sun_path));
	memcpy(a.sun_path, object, strlen(object));
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	CHECK(chdir(cwd) == 0);
	close(fd);
}

static void put_dir(const char *object)
{
	place_remove(path_of(object));
	place_make_dir(path_of(object));
}

static void put_device(const char *object)
{
	place_remove(path_of(object));
	CHECK(symlink("/dev/zero", path_of(object)) == 0);
}

static void put_loop(const char *object)
{
	place_remove(path_of(object));
	CHECK(symlink(strrchr(path_of(object), '/') + 1, path_of(object)) == 0);
}

static void put_dangling(const char *object)
{
	place_remove(path_of(object));
	CHECK(symlink("/nowhere/at/all", path_of(object)) == 0);
}

typedef void put_fn(const char *object);
static put_fn *const things[] = { put_fifo, put_socket, put_dir, put_device, put_loop, put_dangling };
enum { THINGS = sizeof(things) / sizeof(things[0]), LINKS = 4 /* from here on: links that lead nowhere */ };

static void reads(void)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;

	make_store();
	CHECK_EQ(vv_store_open(root, &opt, &s), 0);
	for (size_t i = 0; i < THINGS; i++) {
		struct vv_get *g = NULL;
		uint8_t *p = NULL;
		size_t n = 0;

		things[i]("thing");
		CHECK(vv_store_get_open(s, "thing", &g) < 0);
		CHECK(strstr(vv_err_last(), path_of("thing")));
		CHECK(vv_store_get(s, "thing", 100, &p, &n) < 0);
		CHECK(!g && !p);
	}
	vv_store_close(s);
}

static bool listed(struct vv_store *s, const char *dir, const char *name)
{
	struct vv_names v = { 0 };
	bool found = false;

	CHECK_EQ(vv_store_list(s, dir, &v), 0);
	for (size_t i = 0; i < v.n; i++)
		found |= strcmp(v.v[i].name, name) == 0;
	vv_names_fini(&v);
	return found;
}

static void lists(void)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;

	make_store();
	CHECK_EQ(vv_store_open(root, &opt, &s), 0);
	for (size_t i = 0; i < THINGS; i++) {
		things[i]("thing");
		things[i]("a/thing");
		CHECK_EQ(listed(s, "", "thing"), i < LINKS);
		CHECK_EQ(listed(s, "a", "thing"), i < LINKS);
		CHECK(listed(s, "", "a") && listed(s, "a", "lineage"));
	}
	vv_store_close(s);
}

/* A folder that may be read but not searched is not an empty one. */
static void unsearchable(void)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_names v = { 0 };

	if (geteuid() == 0)
		return;
	make_store();
	CHECK_EQ(vv_store_open(root, &opt, &s), 0);
	CHECK(chmod(path_of("a"), 0444) == 0);
	CHECK_EQ(vv_store_list(s, "a", &v), VV_EDENIED);
	CHECK(strstr(vv_err_last(), path_of("a/")));
	CHECK(chmod(path_of("a"), 0755) == 0);
	vv_names_fini(&v);
	vv_store_close(s);
}

/* Opens, restarts the newest epoch that is whole, checkpoints. want: the epoch that must come out. A record can be
 * made up for or not: then an error that names it will do. */
static void use(uint32_t want, bool may_fail)
{
	varve *v = NULL;
	int rc = varve_open(root, "a", "log=error", &v);

	memset(memory, 0, sizeof(memory));
	if (rc == 0) {
		CHECK_EQ(varve_protect(v, "m", memory, sizeof(memory)), 0);
		rc = varve_restart(v, VARVE_LATEST);
	}
	if (may_fail && rc < 0) {
		CHECK(strstr(varve_last_error(), "a/lineage"));
	} else {
		CHECK_EQ(rc, 1);
		CHECK(holds(want));
		CHECK_EQ(settle_checkpoint(v), 0);
	}
	varve_close(v);
}

static void sessions(void)
{
	char commit[VV_NAME_MAX], layer[VV_NAME_MAX], later[VV_NAME_MAX], record[VV_NAME_MAX], index[VV_NAME_MAX];

	vv_name_commit(commit, "a", 2);
	vv_name_commit(later, "a", 9);
	vv_name_layer(layer, "a", 2, 0);
	vv_name_record(record, "a");
	vv_name_index(index, "a", 0);
	for (size_t i = 0; i < THINGS; i++) {
		make_store();
		things[i](layer);
		use(1, false);
		make_store();
		things[i](commit);
		use(1, false);
		make_store();
		things[i](later);
		use(2, false);
		make_store();
		things[i](record);
		use(2, true);
		make_store();
		things[i](index);
		use(2, false);
	}
}

/* The lock is written to, so it is never looked for behind a link. */
static void lock_link(void)
{
	static const char text[] = "precious";
	struct vv_store_options opt = { 0 };
	char victim[PLACE_MAX], name[VV_NAME_MAX];
	struct vv_store *s = NULL;
	struct vv_lock *l = NULL;
	varve *v = NULL;
	uint8_t *p;
	size_t n;

	make_store();
	vv_name_lock(name, "a");
	place_write(place_path(victim, "victim"), text, sizeof(text));
	place_remove(path_of(name));
	CHECK(symlink(victim, path_of(name)) == 0);
	CHECK_EQ(vv_store_open(root, &opt, &s), 0);
	CHECK_EQ(vv_store_lock(s, name, &l), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "symbolic link") && strstr(vv_err_last(), path_of(name)));
	vv_store_close(s);
	CHECK_EQ(varve_open(root, "a", "log=error", &v), VARVE_EDAMAGED);
	CHECK(strstr(varve_last_error(), "symbolic link"));
	p = place_read(victim, &n);
	CHECK(n == sizeof(text) && memcmp(p, text, n) == 0);
	free(p);
}

static void lock_things(void)
{
	char name[VV_NAME_MAX];
	varve *v = NULL;

	make_store();
	vv_name_lock(name, "a");
	for (size_t i = 0; i < THINGS; i++) {
		things[i](name);
		CHECK_EQ(varve_open(root, "a", "log=error", &v), VARVE_EDAMAGED);
		CHECK(strstr(varve_last_error(), path_of(name)));
	}
	place_remove(path_of(name));
	use(2, false);
}

int main(void)
{
	alarm(100); /* the old fault was to wait for ever */
	reads();
	lists();
	unsearchable();
	sessions();
	lock_link();
	lock_things();
	return 0;
}
