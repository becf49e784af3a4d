/* Bundles as a store shows them: written by several processes at once, seen all together, and from then on objects like
 * any other: a random history is compared with a model that knows nothing of them. */
#include "base/err.h"
#include "store/dir.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/members.h"
#include "support/place.h"
#include "vv_test.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 8, EPOCHS = 4, STEPS = 1500 };

static char root[PLACE_MAX];

static struct vv_store *fresh(const char *name)
{
	place_remove(place_path(root, name));
	return members_open(root);
}

static const char *path_of(const char *below)
{
	static char path[2 * PLACE_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, below);
	return path;
}

static uint64_t blocks_of(const char *below)
{
	struct stat st;

	CHECK(stat(path_of(below), &st) == 0);
	return (uint64_t)st.st_blocks * 512;
}

static void fill(struct members_object *o, uint32_t n, uint64_t seed, uint64_t most)
{
	uint64_t state = seed;

	for (uint32_t i = 0; i < n; i++)
		o[i] = (struct members_object){ gen_next(&state), 1 + gen_below(&state, most) };
}

/* ---- written by several processes ------------------------------------------------------------------------------------ */

static void write_member(const char *bundle, const char *token, uint64_t off, uint64_t room, struct members_object o)
{
	struct vv_store *s = members_open(root);
	struct vv_put *p = NULL;

	CHECK_EQ(vv_store_bundle_join(s, bundle, token, off, room, &p), 0);
	CHECK_EQ(members_write(p, o), 0);
	CHECK_EQ(vv_store_put_commit(p), 0);
	vv_store_close(s);
	_exit(0);
}

static void await_all(int n)
{
	for (int i = 0; i < n; i++) {
		int status;

		CHECK(wait(&status) > 0 && status == 0);
	}
}

static void processes(uint64_t seed)
{
	struct vv_store *s = fresh("processes");
	struct members_object o[RANKS];
	char bundle[VV_NAME_MAX], token[VV_STORE_TOKEN], name[RANKS][VV_NAME_MAX];
	struct vv_member m[RANKS];
	uint64_t off = 0, state = seed;

	fill(o, RANKS, seed, 1 << 18);
	vv_name_bundle(bundle, MEMBERS_LINEAGE, 12, 0, RANKS - 1);
	CHECK_EQ(vv_store_bundle_make(s, bundle, token), 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		uint64_t room = o[i].len + gen_below(&state, 1 << 20);

		vv_name_layer(name[i], MEMBERS_LINEAGE, 12, i);
		m[i] = (struct vv_member){ strrchr(name[i], '/') + 1, off, o[i].len };
		if (fork() == 0)
			write_member(bundle, token, off, room, o[i]);
		off += (room + VV_BUNDLE_PAGE - 1) / VV_BUNDLE_PAGE * VV_BUNDLE_PAGE;
	}
	await_all(RANKS);
	CHECK_EQ(members_listed(s), 0);
	CHECK_EQ(members_is(s, 12, 3, o[3]), 0);
	CHECK_EQ(vv_store_bundle_seal(s, bundle, token, m, RANKS), 0);
	CHECK_EQ(members_listed(s), RANKS);
	CHECK_EQ(members_files(path_of(MEMBERS_FOLDER), ""), 1);
	for (uint32_t i = 0; i < RANKS; i++)
		CHECK_EQ(members_is(s, 12, i, o[i]), 1);
	CHECK(blocks_of(bundle) < m[RANKS - 1].off); /* what is not used is a hole */
	vv_store_bundle_drop(s, bundle, token); /* too late: nothing happens */
	CHECK_EQ(members_listed(s), RANKS);
	vv_store_close(s);
}

/* Every process removes its own; whoever is last takes the file away. */
static void removed_together(uint64_t seed)
{
	struct vv_store *s = fresh("together");
	struct members_object o[RANKS];

	fill(o, RANKS, seed, 10000);
	CHECK_EQ(members_bundle(s, 1, 0, RANKS, o, 12000), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		if (fork() == 0) {
			struct vv_store *own = members_open(root);

			_exit(members_is(own, 1, i, o[i]) != 1 || members_remove(own, 1, i) != 0 ||
			      members_is(own, 1, i, o[i]) != 0);
		}
	await_all(RANKS);
	CHECK_EQ(members_listed(s), 0);
	CHECK_EQ(members_files(path_of(MEMBERS_FOLDER), ""), 0);
	vv_store_close(s);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------- */

static void bad_joins(void)
{
	static const char *const tokens[] = { "", "1", "-", "1-", "-1", "1-1/", "../1-1", "1-1/../../x", "a-1", "1-1 ", "1--1",
					      "11111111111111111111-11111111111", "/", "1-1\n" };
	struct vv_store *s = fresh("joins");
	char bundle[VV_NAME_MAX], token[VV_STORE_TOKEN];
	uint8_t bytes[5000] = { 1 };
	struct iovec iov = { bytes, sizeof(bytes) }, little = { bytes, 97 };
	struct vv_put *p = NULL;

	vv_name_bundle(bundle, MEMBERS_LINEAGE, 1, 0, 3);
	CHECK_EQ(vv_store_bundle_make(s, bundle, token), 0);
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
		CHECK_EQ(vv_store_bundle_join(s, bundle, tokens[i], 0, 10, &p), VV_EINVAL);
	CHECK_EQ(vv_store_bundle_join(s, bundle, token, 100, 10, &p), VV_EINVAL);
	CHECK_EQ(vv_store_bundle_join(s, bundle, token, UINT64_MAX - 4095, 10, &p), VV_EINVAL);
	CHECK_EQ(vv_store_bundle_join(s, bundle, token, 4096, UINT64_MAX, &p), VV_EINVAL);
	CHECK_EQ(vv_store_bundle_join(s, "a/00000000/0000000001.r0.layer", token, 0, 10, &p), VV_EINVAL);
	CHECK_EQ(vv_store_bundle_join(s, "bundle", token, 0, 10, &p), VV_EINVAL);
	CHECK_EQ(vv_store_bundle_make(s, "a/00000000/x", token), VV_EINVAL);
	CHECK_EQ(vv_store_bundle_make(s, bundle, token), 0);
	CHECK_EQ(vv_store_bundle_join(s, bundle, "1-999999", 0, 10, &p), VV_ENOENT);
	CHECK_EQ(vv_store_bundle_join(s, bundle, token, 0, sizeof(bytes) + 96, &p), 0);
	CHECK_EQ(vv_store_put_write(p, &iov, 1), 0);
	CHECK_EQ(vv_store_put_write(p, &little, 1), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "does not fit its room"));
	vv_store_put_abort(p);
	vv_store_bundle_drop(s, bundle, token);
	CHECK_EQ(vv_store_bundle_join(s, bundle, token, 0, 10, &p), VV_ENOENT);
	CHECK_EQ(members_files(path_of(MEMBERS_FOLDER), ".tmp-"), 1); /* the first of the two */
	CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
	CHECK_EQ(members_files(path_of(MEMBERS_FOLDER), ".tmp-"), 0);
	vv_store_close(s);
}

/* A bundle with members of 5000 bytes at 0 and 8192, sealed as told. */
static int seal_as(struct vv_store *s, const struct vv_member *m, size_t n)
{
	char bundle[VV_NAME_MAX], token[VV_STORE_TOKEN];
	int rc;

	vv_name_bundle(bundle, MEMBERS_LINEAGE, 5, 2, 4);
	CHECK_EQ(vv_store_bundle_make(s, bundle, token), 0);
	for (uint64_t i = 0; i < 2; i++) {
		struct vv_put *p = NULL;

		CHECK_EQ(vv_store_bundle_join(s, bundle, token, i * 8192, 8192, &p), 0);
		CHECK_EQ(members_write(p, (struct members_object){ i, 5000 }), 0);
		CHECK_EQ(vv_store_put_commit(p), 0);
	}
	rc = vv_store_bundle_seal(s, bundle, token, m, n);
	CHECK_EQ(members_files(path_of(MEMBERS_FOLDER), ".tmp-"), 0);
	return rc;
}

#define LAYER(r) "0000000005.r" #r ".layer"

static void bad_seals(void)
{
	static const struct vv_member bad[][2] = {
		{ { LAYER(2), 0, 5000 }, { LAYER(2), 8192, 5000 } },            /* twice */
		{ { LAYER(3), 0, 5000 }, { LAYER(2), 8192, 5000 } },            /* order of ranks */
		{ { LAYER(2), 8192, 5000 }, { LAYER(3), 0, 5000 } },            /* order of places */
		{ { LAYER(2), 0, 8193 }, { LAYER(3), 8192, 5000 } },            /* overlap */
		{ { LAYER(2), 0, 5000 }, { LAYER(3), 4096, 5000 } },            /* overlap */
		{ { LAYER(2), 0, 5000 }, { LAYER(3), 8193, 5000 } },            /* no page */
		{ { LAYER(2), 0, 0 }, { LAYER(3), 8192, 5000 } },               /* too short */
		{ { LAYER(2), 0, UINT64_MAX - 100 }, { LAYER(3), 8192, 5000 } }, /* too long */
		{ { LAYER(2), 0, 5000 }, { LAYER(5), 8192, 5000 } },            /* not of these ranks */
		{ { LAYER(1), 0, 5000 }, { LAYER(3), 8192, 5000 } },            /* not of these ranks */
		{ { "0000000006.r2.layer", 0, 5000 }, { LAYER(3), 8192, 5000 } },
		{ { "0000000005.commit", 0, 5000 }, { LAYER(3), 8192, 5000 } },
		{ { "../" LAYER(2), 0, 5000 }, { LAYER(3), 8192, 5000 } },
		{ { LAYER(2), 0, 5000 }, { LAYER(3), 8192, 5001 } },            /* more than there is */
		{ { LAYER(2), 0, 5000 }, { LAYER(3), 1 << 20, 5000 } },         /* nothing there */
	};
	struct vv_store *s = fresh("seals");

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(seal_as(s, bad[i], 2), VV_EINVAL);
	CHECK_EQ(seal_as(s, bad[0], 0), VV_EINVAL);
	CHECK_EQ(seal_as(s, bad[0], VV_BUNDLE_MEMBERS + 1), VV_EINVAL);
	CHECK_EQ(members_listed(s), 0);
	CHECK_EQ(seal_as(s, bad[0], 1), 0); /* one member, and what the other wrote goes */
	CHECK_EQ(members_listed(s), 1);
	CHECK_EQ(members_is(s, 5, 2, (struct members_object){ 0, 5000 }), 1);
	CHECK_EQ(seal_as(s, bad[0], 1), 0); /* the same name again: one step */
	CHECK_EQ(members_listed(s), 1);
	CHECK_EQ(members_put(s, 5, 2, (struct members_object){ 7, 100 }), 0);
	CHECK_EQ(seal_as(s, bad[0], 1), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "is there already"));
	CHECK_EQ(members_is(s, 5, 2, (struct members_object){ 7, 100 }), 1);
	CHECK_EQ(members_remove(s, 5, 2), 0);
	CHECK_EQ(members_bundle(s, 5, 0, 4, (struct members_object[]){ { 1, 8 }, { 2, 9 }, { 3, 10 }, { 4, 11 } }, 1), 0);
	CHECK_EQ(seal_as(s, bad[0], 1), VV_EINVAL); /* another bundle has it */
	CHECK_EQ(members_remove(s, 5, 2), 0);
	CHECK_EQ(seal_as(s, bad[0], 1), 0);
	CHECK_EQ(members_is(s, 5, 2, (struct members_object){ 0, 5000 }), 1);
	CHECK_EQ(members_listed(s), 4);
	vv_store_close(s);
}

static void not_in_memory(void)
{
	struct vv_store *s = members_open("mem:bundle");
	char token[VV_STORE_TOKEN] = "1-1";
	struct vv_put *p = NULL;

	CHECK_EQ(vv_store_bundle_make(s, "a/00000000/0000000001.r0-1.bundle", token), VV_ENOTSUP);
	CHECK(strstr(vv_err_last(), "mem:bundle"));
	CHECK_EQ(vv_store_bundle_join(s, "a/00000000/0000000001.r0-1.bundle", token, 0, 1, &p), VV_ENOTSUP);
	CHECK_EQ(vv_store_bundle_seal(s, "a/00000000/0000000001.r0-1.bundle", token, NULL, 0), VV_ENOTSUP);
	vv_store_bundle_drop(s, "a/00000000/0000000001.r0-1.bundle", token);
	vv_store_close(s);
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

static void mapped(void)
{
	static const struct members_object o[] = { { 1, (2 << 20) + 7 }, { 2, 100 }, { 3, 3 << 20 }, { 4, (1 << 20) + 4097 } };
	struct vv_store *s = fresh("mapped");

	CHECK_EQ(members_bundle(s, 3, 0, 4, o, (3 << 20) + 4096), 0);
	for (uint32_t i = 0; i < 4; i++) {
		char name[VV_NAME_MAX];
		struct vv_get *g = NULL;
		uint8_t *want = members_bytes(o[i]), got[100];

		vv_name_layer(name, MEMBERS_LINEAGE, 3, i);
		CHECK_EQ(vv_store_get_open(s, name, &g), 0);
		CHECK_EQ(g->map != NULL, o[i].len >= 1 << 20);
		CHECK(!g->map || memcmp(g->map, want, o[i].len) == 0);
		CHECK_EQ(vv_store_get_read(g, o[i].len - 100, got, 100), 0);
		CHECK(memcmp(got, want + o[i].len - 100, 100) == 0);
		CHECK_EQ(vv_store_get_read(g, o[i].len - 99, got, 100), VV_EDAMAGED);
		vv_store_get_close(g);
		free(want);
	}
	vv_store_close(s);
}

/* A reader has the old bytes or an error, and never zeros for bytes. */
static void taken_away(void)
{
	static const struct members_object o[] = { { 1, 100000 }, { 2, 100000 }, { 3, 100000 } };
	struct vv_store *s = fresh("taken");
	struct vv_get *g[3];
	uint8_t got[1000];

	CHECK_EQ(members_bundle(s, 3, 0, 3, o, 100000), 0);
	for (uint32_t i = 0; i < 3; i++) {
		char name[VV_NAME_MAX];

		vv_name_layer(name, MEMBERS_LINEAGE, 3, i);
		CHECK_EQ(vv_store_get_open(s, name, &g[i]), 0);
		CHECK_EQ(vv_store_get_read(g[i], 50000, got, sizeof(got)), 0);
	}
	CHECK_EQ(members_remove(s, 3, 0), 0);
	CHECK_EQ(vv_store_get_read(g[0], 50000, got, sizeof(got)), VV_ENOENT);
	CHECK(strstr(vv_err_last(), "removed while"));
	CHECK_EQ(members_put(s, 3, 1, (struct members_object){ 9, 300 }), 0);
	CHECK_EQ(vv_store_get_read(g[1], 50000, got, sizeof(got)), VV_EIO);
	CHECK(strstr(vv_err_last(), "replaced while"));
	CHECK_EQ(members_is(s, 3, 1, (struct members_object){ 9, 300 }), 1);
	CHECK_EQ(vv_store_get_read(g[2], 50000, got, sizeof(got)), 0);
	for (uint32_t i = 0; i < 3; i++)
		vv_store_get_close(g[i]);
	vv_store_close(s);
}

struct race {
	struct vv_store *s;
	_Atomic uint64_t seen; /* all names have been read since, so many times */
	_Atomic bool stop;
};

static struct members_object version(uint32_t rank, unsigned v)
{
	return (struct members_object){ rank * 10 + v, 5000 + 1000 * rank + v };
}

static void *read_all(void *arg)
{
	struct race *r = arg;

	while (!atomic_load(&r->stop)) {
		struct vv_names v = { 0 };

		CHECK_EQ(vv_store_list(r->s, MEMBERS_FOLDER, &v), 0);
		CHECK_EQ(v.n, RANKS);
		vv_store_names_fini(&v);
		for (uint32_t i = 0; i < RANKS; i++) {
			char name[VV_NAME_MAX];
			struct vv_get *g = NULL;

			vv_name_layer(name, MEMBERS_LINEAGE, 1, i);
			CHECK_EQ(vv_store_get_open(r->s, name, &g), 0);
			CHECK(g->size == version(i, 0).len || g->size == version(i, 1).len);
			vv_store_get_close(g);
		}
		atomic_fetch_add(&r->seen, 1);
	}
	return NULL;
}

/* Members are replaced while another looks at them: there is never one less. */
static void replaced_in_one_step(void)
{
	struct vv_store *s = NULL;

	for (int round = 0; round < 15; round++) {
		struct members_object o[RANKS];
		struct race r = { 0 };
		pthread_t t;
		uint64_t seen;

		s = fresh("step");
		for (uint32_t i = 0; i < RANKS; i++)
			o[i] = version(i, 0);
		CHECK_EQ(members_bundle(s, 1, 0, RANKS, o, 20000), 0);
		r.s = members_open(root);
		CHECK(pthread_create(&t, NULL, read_all, &r) == 0);
		for (uint32_t i = 0; i < RANKS; i++)
			CHECK_EQ(members_put(s, 1, i, version(i, 1)), 0);
		seen = atomic_load(&r.seen);
		while (atomic_load(&r.seen) < seen + 2)
			sched_yield();
		atomic_store(&r.stop, true);
		pthread_join(t, NULL);
		for (uint32_t i = 0; i < RANKS; i++)
			CHECK_EQ(members_is(s, 1, i, version(i, 1)), 1);
		CHECK_EQ(members_files(path_of(MEMBERS_FOLDER), ""), RANKS); /* the bundle is gone */
		vv_store_close(r.s);
		vv_store_close(s);
	}
}

/* ---- space, and what the dead leave ------------------------------------------------------------------------------------ */

static bool can_punch(void)
{
	char path[PLACE_MAX];
	uint8_t page[VV_BUNDLE_PAGE] = { 1 };
	int fd = open(place_path(path, "punch"), O_RDWR | O_CREAT | O_TRUNC, 0666);
	bool can;

	CHECK(fd >= 0 && write(fd, page, sizeof(page)) == sizeof(page));
	can = vv_fs_real()->punch(vv_fs_real(), fd, 0, sizeof(page)) == 0;
	close(fd);
	return can;
}

static void space(void)
{
	struct vv_store *s = fresh("space");
	struct members_object o[RANKS];
	char bundle[VV_NAME_MAX];
	uint64_t before;

	fill(o, RANKS, 5, 1 << 20);
	for (int i = 0; i < RANKS; i++)
		o[i].len |= 1 << 18;
	vv_name_bundle(bundle, MEMBERS_LINEAGE, 1, 0, RANKS - 1);
	CHECK_EQ(members_bundle(s, 1, 0, RANKS, o, 2 << 20), 0);
	before = blocks_of(bundle);
	for (uint32_t i = 0; i + 1 < RANKS; i++) {
		CHECK_EQ(i % 2 ? members_remove(s, 1, i) : members_put(s, 1, i, (struct members_object){ i, 10 }), 0);
		if (can_punch())
			CHECK(blocks_of(bundle) + o[i].len / 2 < before);
		before = blocks_of(bundle);
	}
	CHECK_EQ(members_is(s, 1, RANKS - 1, o[RANKS - 1]), 1);
	CHECK_EQ(members_remove(s, 1, RANKS - 1), 0);
	CHECK(access(path_of(bundle), F_OK) < 0);
	vv_store_close(s);
}

static void leftovers(void)
{
	struct vv_store *s = fresh("left");
	static const struct members_object o[] = { { 1, 300000 }, { 2, 300000 }, { 3, 300000 } };
	char bundle[VV_NAME_MAX], token[VV_STORE_TOKEN], name[VV_NAME_MAX];
	uint8_t *plain = members_bytes((struct members_object){ 9, 50 });
	uint64_t before;
	int fd;

	CHECK_EQ(members_bundle(s, 1, 0, 3, o, 300000), 0);
	vv_name_bundle(bundle, MEMBERS_LINEAGE, 2, 0, 3);
	CHECK_EQ(vv_store_bundle_make(s, bundle, token), 0);
	/* died after the rename, before the member went: the plain one counts, in every way */
	vv_name_layer(name, MEMBERS_LINEAGE, 1, 1);
	place_write(path_of(name), plain, 50);
	CHECK_EQ(members_is(s, 1, 1, (struct members_object){ 9, 50 }), 1);
	CHECK_EQ(members_listed(s), 3);
	vv_name_bundle(bundle, MEMBERS_LINEAGE, 1, 0, 2);
	before = blocks_of(bundle);
	CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
	CHECK_EQ(members_files(path_of(MEMBERS_FOLDER), ".tmp-"), 0);
	CHECK(!can_punch() || blocks_of(bundle) + 200000 < before);
	place_remove(path_of(name));
	CHECK_EQ(members_is(s, 1, 1, o[1]), 0);
	/* the same, and it is removed at once: nothing comes back */
	vv_name_layer(name, MEMBERS_LINEAGE, 1, 0);
	place_write(path_of(name), plain, 50);
	CHECK_EQ(members_remove(s, 1, 0), 0);
	CHECK_EQ(members_is(s, 1, 0, o[0]), 0);
	CHECK_EQ(members_listed(s), 1);
	/* died after the last mark went, before pages and file did */
	fd = open(path_of(bundle), O_RDWR);
	CHECK(fd >= 0 && pwrite(fd, "", 1, 2 * 303104) == 1);
	close(fd);
	CHECK_EQ(members_listed(s), 0);
	CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
	CHECK(access(path_of(bundle), F_OK) < 0);
	free(plain);
	vv_store_close(s);
}

/* ---- any history ------------------------------------------------------------------------------------------------------- */

struct model {
	struct vv_store *s[2]; /* two processes, as it were */
	struct members_object o[EPOCHS][RANKS]; /* len 0: absent */
	uint64_t state;
};

static void model_bundle(struct model *m, struct vv_store *s, uint64_t epoch)
{
	uint32_t first = (uint32_t)gen_below(&m->state, RANKS), n = 1 + (uint32_t)gen_below(&m->state, RANKS - first);
	struct members_object o[RANKS];
	bool free_names = true;
	int rc;

	for (uint32_t i = first; i < first + n; i++)
		free_names &= m->o[epoch - 1][i].len == 0;
	fill(o, n, gen_next(&m->state), 30000);
	rc = members_bundle(s, epoch, first, n, o, 32000);
	if (!free_names && rc == VV_EINVAL)
		return;
	CHECK_EQ(rc, 0); /* or it was there, by this very name, and is replaced */
	memcpy(&m->o[epoch - 1][first], o, n * sizeof(o[0]));
}

static void model_step(struct model *m)
{
	struct vv_store *s = m->s[gen_below(&m->state, 2)];
	uint64_t epoch = 1 + gen_below(&m->state, EPOCHS);
	uint32_t rank = (uint32_t)gen_below(&m->state, RANKS);
	struct members_object *o = &m->o[epoch - 1][rank];

	switch (gen_below(&m->state, 8)) {
	case 0:
	case 1:
		model_bundle(m, s, epoch);
		break;
	case 2:
		fill(o, 1, gen_next(&m->state), 30000);
		CHECK_EQ(members_put(s, epoch, rank, *o), 0);
		break;
	case 3:
	case 4:
	case 5:
		CHECK_EQ(members_remove(s, epoch, rank), 0);
		o->len = 0;
		break;
	case 6:
		CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
		break;
	default:
		vv_store_close(m->s[1]);
		m->s[1] = members_open(root);
	}
}

static void model_compare(struct model *m)
{
	struct vv_store *s = m->s[gen_below(&m->state, 2)];
	size_t n = 0;

	for (uint32_t e = 0; e < EPOCHS; e++)
		for (uint32_t r = 0; r < RANKS; r++) {
			struct members_object o = m->o[e][r];
			bool there = o.len != 0;

			n += there;
			o.len = there ? o.len : 1;
			CHECK_EQ(members_is(s, e + 1, r, o), there);
		}
	CHECK_EQ(members_listed(s), n);
}

static void histories(void)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct model m = { .state = seed };

		m.s[0] = fresh("model");
		m.s[1] = members_open(root);
		for (int i = 0; i < STEPS; i++) {
			model_step(&m);
			if (i % 5 == 0)
				model_compare(&m);
		}
		for (uint32_t e = 0; e < EPOCHS; e++)
			for (uint32_t r = 0; r < RANKS; r++)
				CHECK_EQ(members_remove(m.s[0], e + 1, r), 0);
		CHECK_EQ(members_files(path_of(MEMBERS_FOLDER), ""), 0);
		vv_store_remove_dir(m.s[0], MEMBERS_FOLDER);
		CHECK(access(path_of(MEMBERS_FOLDER), F_OK) < 0);
		vv_store_close(m.s[0]);
		vv_store_close(m.s[1]);
	}
}

/* ---- finding does not cost more than it must --------------------------------------------------------------------------- */

static struct {
	long opens, syncs;
	long read;
	off_t begin, end; /* of what went to the disk early */
} counted;

static int count_open(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	(void)fs;
	counted.opens++;
	return lazyfs()->open(lazyfs(), path, flags, mode);
}

static ssize_t count_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	(void)fs;
	counted.read += (long)n;
	return lazyfs()->pread(lazyfs(), fd, p, n, off);
}

static int count_fsync(const struct vv_fs *fs, int fd)
{
	(void)fs;
	counted.syncs++;
	return lazyfs()->fsync(lazyfs(), fd);
}

static int count_writeback(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	counted.begin = counted.end && counted.begin < off ? counted.begin : off;
	counted.end = counted.end > off + len ? counted.end : off + len;
	return lazyfs()->start_writeback(lazyfs(), fd, off, len);
}

/* A member's bytes are on their way early, its own and no others, and are durable when it says so. */
static void written_early(void)
{
	enum { OFF = 64 << 20, LEN = 20 << 20 };
	struct vv_fs fs = *lazyfs();
	struct vv_put *p = NULL;
	char bundle[VV_NAME_MAX], token[VV_STORE_TOKEN];
	struct vv_store *s;

	fs.fsync = count_fsync;
	fs.start_writeback = count_writeback;
	vv_dir_set_fs(&fs);
	s = fresh("early");
	memset(&counted, 0, sizeof(counted));
	vv_name_bundle(bundle, MEMBERS_LINEAGE, 1, 0, 3);
	CHECK_EQ(vv_store_bundle_make(s, bundle, token), 0);
	CHECK_EQ(vv_store_bundle_join(s, bundle, token, OFF, LEN, &p), 0);
	CHECK_EQ(members_write(p, (struct members_object){ 1, LEN }), 0);
	CHECK(counted.begin == OFF && counted.end > OFF + LEN / 2 && counted.end <= OFF + LEN);
	CHECK_EQ(counted.syncs, 0);
	CHECK_EQ(vv_store_put_commit(p), 0);
	CHECK_EQ(counted.syncs, 1);
	vv_store_bundle_drop(s, bundle, token);
	vv_store_close(s);
	vv_dir_set_fs(lazyfs());
}

static void open_one(struct vv_store *s, uint64_t epoch, uint32_t rank)
{
	char name[VV_NAME_MAX];
	struct vv_get *g = NULL;

	vv_name_layer(name, MEMBERS_LINEAGE, epoch, rank);
	CHECK_EQ(vv_store_get_open(s, name, &g), 0);
	vv_store_get_close(g);
}

static void cheap(void)
{
	enum { MANY = 1000 };
	static struct members_object o[MANY];
	struct vv_fs fs = *lazyfs();
	struct vv_store *s;

	fs.open = count_open;
	fs.pread = count_pread;
	vv_dir_set_fs(&fs);
	s = fresh("cheap");
	fill(o, MANY, 1, 100);
	CHECK_EQ(members_bundle(s, 1, 0, MANY, o, 1), 0);
	for (uint64_t e = 2; e < 100; e++)
		CHECK_EQ(members_bundle(s, e, 0, 4, o, 1), 0);
	vv_store_close(s);
	s = members_open(root);
	memset(&counted, 0, sizeof(counted));
	open_one(s, 50, 3);
	CHECK_EQ(counted.opens, 2); /* the plain object, and the one bundle */
	for (uint32_t i = 0; i < MANY; i++)
		open_one(s, 1, i);
	CHECK_EQ(counted.opens, 2 + 2 * MANY);
	CHECK(counted.read < 200 * MANY); /* the directory once, then a trailer and a mark each */
	vv_store_close(s);
	vv_dir_set_fs(lazyfs());
}

int main(void)
{
	vv_dir_set_fs(lazyfs());
	for (uint64_t seed = 1; seed <= 10; seed++)
		processes(seed);
	for (uint64_t seed = 1; seed <= 20; seed++)
		removed_together(seed);
	bad_joins();
	bad_seals();
	not_in_memory();
	mapped();
	taken_away();
	replaced_in_one_step();
	space();
	leftovers();
	histories();
	cheap();
	written_early();
	return 0;
}
