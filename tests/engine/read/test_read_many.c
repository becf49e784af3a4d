// ctest: TIMEOUT 120 COST 2
/* Files that share blocks, however they lie in them: each block is read once, what is damaged costs those who need it, and where descriptors or
 * space are short the first files are whole. */
#include "base/err.h"
#include "codec/codec.h"
#include "engine/lineage/layer_file.h"
#include "engine/files/pack.h"
#include "engine/files/compare.h"
#include "engine/context.h"
#include "engine/files/unpack.h"
#include "engine/session/session.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 40, LEN = 500000, FEW = 2, LONG = 12 << 20 };

static struct vv_pool *pool;
static char store_url[PLACE_MAX];

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* So that a block has something of each file; the schemes of the paper need zlib. */
static enum vv_pack_scheme in_turn(void)
{
	return vv_codec_numbered(VV_CODEC_PAPER) ? VV_PACK_AGNOSTIC_BLOCK : VV_PACK_AUTO;
}

/* ---- sets --------------------------------------------------------------------------------------------------------- */

struct set {
	const char *lineage;
	size_t n, len;
	uint8_t *bytes; /* of all */
	char (*name)[16];
};

/* Numbers that can be coded a little, different in each file; and zeros, few and many. */
static struct set make_set(const char *lineage, size_t n, size_t len)
{
	struct set s = { lineage, n, len, malloc(n * len), calloc(n, sizeof(*s.name)) };
	uint64_t state = 3;

	CHECK(s.bytes && s.name);
	gen_bytes(&state, s.bytes, n * len);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 5; k < len; k += 8)
			s.bytes[i * len + k] = s.bytes[i * len + k - 1] = (uint8_t)i;
		memset(s.bytes + i * len + len / 3, 0, 5000);
		memset(s.bytes + i * len + len / 2, 0, 100000);
		snprintf(s.name[i], sizeof(*s.name), "f%03zu", i);
	}
	return s;
}

/* All files are as the first. */
static void make_alike(struct set *s)
{
	for (size_t i = 1; i < s->n; i++)
		memcpy(s->bytes + i * s->len, s->bytes, s->len);
}

static void drop_set(struct set *s)
{
	free(s->bytes);
	free(s->name);
}

static void pack(const struct set *s, const char *options, const struct vv_pack_options *how)
{
	struct vv_pack_file *file = calloc(s->n, sizeof(*file));
	char (*path)[PLACE_MAX + 32] = calloc(s->n, sizeof(*path));
	struct vv_pack_report r = { 0 };
	char folder[PLACE_MAX];
	varve *v = NULL;

	CHECK(file && path);
	place_make_dir(place_path(folder, "in"));
	for (size_t i = 0; i < s->n; i++) {
		snprintf(path[i], sizeof(*path), "%s/%s", folder, s->name[i]);
		place_write(path[i], s->bytes + i * s->len, s->len);
		file[i] = (struct vv_pack_file){ path[i], s->name[i], false };
	}
	ok(vv_session_open(NULL, store_url, s->lineage, options, &v));
	ok(vv_pack_run(v, file, s->n, how, &r));
	ok(varve_close(v));
	vv_pack_report_fini(&r);
	place_remove(folder);
	free(file);
	free(path);
}

struct view {
	struct vv_store *store;
	struct vv_lineage lineage;
	struct vv_unpack u;
	size_t blocks;
};

static void open_view(struct view *w, const char *lineage)
{
	struct vv_store_options opt = { .create = false };
	struct vv_layer_file *f = NULL;

	ok(vv_store_open(store_url, &opt, &w->store));
	ok(vv_catalog_open(w->store, lineage, false, &w->lineage));
	ok(vv_layer_file_open(&w->lineage, vv_run_layer(1, 0), VV_LAYER_FILE_BLOCKS, &f));
	w->blocks = f->blocks.n;
	vv_layer_file_close(f);
	ok(vv_unpack_open(&w->lineage, 1, pool, &w->u));
}

static void close_view(struct view *w)
{
	vv_unpack_close(&w->u);
	vv_store_close(w->store);
}

/* Is file i there? If so, it is whole. */
static bool look(const struct set *s, const char *folder, size_t i)
{
	char path[PLACE_MAX + 32];
	uint8_t *p;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, s->name[i]);
	if (access(path, F_OK) < 0)
		return false;
	p = place_read(path, &n);
	CHECK_EQ(n, s->len);
	CHECK(memcmp(p, s->bytes + i * s->len, n) == 0);
	free(p);
	return true;
}

/* ---- cases -------------------------------------------------------------------------------------------------------- */

static void compare(const struct set *s, const struct view *w, const char *folder)
{
	struct vv_unpack_file file[MANY];
	int fd[MANY];
	bool same[MANY];

	CHECK(s->n <= MANY);
	for (size_t i = 0; i < s->n; i++) {
		char path[PLACE_MAX + 32];

		file[i] = vv_unpack_at(&w->u, i);
		snprintf(path, sizeof(path), "%s/%s", folder, file[i].file->name);
		CHECK((fd[i] = open(path, O_RDWR | O_CLOEXEC)) >= 0);
	}
	ok(vv_compare_files(&w->u, pool, file, fd, same, s->n, NULL));
	for (size_t i = 0; i < s->n; i++)
		CHECK(same[i]);
	CHECK(pwrite(fd[1], "differs", 7, (off_t)(s->len / 4)) == 7 && pwrite(fd[0], "x", 1, (off_t)(s->len / 3 + 10)) == 1);
	ok(vv_compare_files(&w->u, pool, file, fd, same, s->n, NULL));
	for (size_t i = 0; i < s->n; i++) {
		CHECK_EQ(same[i], i > 1);
		close(fd[i]);
	}
}

/* Each block once; and no more than those that are needed if one file is. */
static void test_once(const char *lineage, size_t n, size_t len, const char *options, const struct vv_pack_options *how, bool apart)
{
	struct set s = make_set(lineage, n, len);
	const char *one = s.name[n - 1];
	char folder[PLACE_MAX], alone[PLACE_MAX];
	struct vv_unpack_options opt = { .folder = place_path(folder, "once") }, only = { .folder = place_path(alone, "one"), .only = &one, .n_only = 1 };
	struct vv_unpack_report r;
	struct view w = { 0 };

	pack(&s, options, how);
	open_view(&w, lineage);
	CHECK(w.blocks >= 2);
	ok(vv_unpack_run(&w.u, pool, &opt, &r));
	CHECK_EQ(r.files, n);
	CHECK(r.blocks > 0 && r.blocks <= w.blocks);
	for (size_t i = 0; i < n; i++)
		CHECK(look(&s, folder, i));
	vv_unpack_report_fini(&r);
	ok(vv_unpack_run(&w.u, pool, &only, &r));
	CHECK(look(&s, alone, n - 1));
	CHECK(r.blocks <= (apart ? w.blocks / n + 2 : w.blocks));
	vv_unpack_report_fini(&r);
	compare(&s, &w, folder);
	close_view(&w);
	place_remove(folder);
	place_remove(alone);
	drop_set(&s);
}

/* What all hold goes over several blocks: these are shared by all, and still read once. */
static void test_shared(void)
{
	const struct vv_pack_options how = { .effort = VV_PACK_FAST };
	struct set s = make_set("shared", 3, LONG);
	char folder[PLACE_MAX];
	struct vv_unpack_options opt = { .folder = place_path(folder, "shared") };
	struct vv_unpack_report r;
	struct view w = { 0 };

	make_alike(&s);
	pack(&s, "mode=sync codec=none", &how);
	open_view(&w, "shared");
	CHECK(w.blocks >= 2 && w.blocks <= LONG >> 20);
	ok(vv_unpack_run(&w.u, pool, &opt, &r));
	CHECK_EQ(r.files, s.n);
	CHECK(r.blocks <= w.blocks);
	for (size_t i = 0; i < s.n; i++)
		CHECK(look(&s, folder, i));
	vv_unpack_report_fini(&r);
	close_view(&w);
	place_remove(folder);
	drop_set(&s);
}

/* A coded block is of no use to anybody who needs it; who does not has his file. */
static void test_damage(void)
{
	const struct vv_pack_options how = { .effort = VV_PACK_FAST };
	struct set s = make_set("damage", MANY, LEN);
	char folder[PLACE_MAX], layer[2 * PLACE_MAX];
	struct vv_unpack_options opt = { .folder = place_path(folder, "damage") };
	struct vv_unpack_report r;
	struct view w = { 0 };
	uint8_t *p;
	size_t n, there = 0;

	pack(&s, "mode=sync", &how);
	snprintf(layer, sizeof(layer), "%s/damage/00000000/0000000001.r0.layer", store_url);
	p = place_read(layer, &n);
	p[n / 2] ^= 0x10;
	place_write(layer, p, n);
	free(p);
	open_view(&w, "damage");
	CHECK_EQ(vv_unpack_run(&w.u, pool, &opt, &r), VV_EDAMAGED);
	for (size_t i = 0; i < MANY; i++)
		there += look(&s, folder, i);
	CHECK_EQ(r.files, there);
	CHECK_EQ(r.files + r.n_missing, MANY);
	CHECK(r.n_missing > 0 && r.files >= MANY / 2);
	vv_unpack_report_fini(&r);
	close_view(&w);
	drop_set(&s);
}

/* In turn, so that all grow together until there is no space. */
static void test_full_disk(void)
{
	const struct vv_pack_options how = { .scheme = in_turn() };
	struct set s = make_set("space", MANY, LEN);
	char folder[PLACE_MAX];
	struct vv_unpack_options opt = { .folder = place_path(folder, "space") };
	struct vv_unpack_report r;
	struct view w = { 0 };

	pack(&s, "mode=sync codec=none", &how);
	open_view(&w, "space");
	place_make_dir(folder);
	if (mount("none", folder, "tmpfs", 0, "size=8m") < 0) {
		fprintf(stderr, "no small file system here (%s): want of space is not tried\n", strerror(errno));
	} else {
		CHECK_EQ(vv_unpack_run(&w.u, pool, &opt, &r), VV_ENOSPC);
		CHECK(r.files >= 10 && r.files <= 20);
		CHECK_EQ(r.files + r.n_missing, MANY);
		for (size_t i = 0; i < MANY; i++)
			CHECK(look(&s, folder, i) == (i < r.files) || how.scheme == VV_PACK_AUTO);
		vv_unpack_report_fini(&r);
		CHECK(umount(folder) == 0);
	}
	close_view(&w);
	drop_set(&s);
}

/* Fewer at a time, and all come. */
static void test_few_descriptors(void)
{
	const struct vv_pack_options how = { .scheme = in_turn() };
	struct set s = make_set("limit", MANY, LEN);
	struct rlimit few = { 24, 24 };
	char folder[PLACE_MAX];
	struct vv_unpack_options opt = { .folder = place_path(folder, "limit") };
	int status;
	pid_t child;

	pack(&s, "mode=sync codec=none", &how);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct vv_unpack_report r = { 0 };
		struct view w = { 0 };

		CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
		ok(vv_pool_new(3, &pool));
		open_view(&w, "limit");
		ok(vv_unpack_run(&w.u, pool, &opt, &r));
		_exit(r.files == MANY ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (size_t i = 0; i < MANY; i++)
		CHECK(look(&s, folder, i));
	drop_set(&s);
}

int main(void)
{
	const struct vv_pack_options own = { .effort = VV_PACK_FAST }, turn = { .scheme = in_turn() };

	place_path(store_url, "store");
	test_few_descriptors(); /* forks before there are threads */
	ok(vv_pool_new(3, &pool));
	test_once("own", MANY, LEN, "mode=sync", &own, false);
	test_once("turn", MANY, LEN, "mode=sync codec=none", &turn, false);
	test_once("long", FEW, LONG, "mode=sync codec=none", &own, true);
	test_shared();
	test_damage();
	test_full_disk();
	vv_pool_free(pool);
	return 0;
}
