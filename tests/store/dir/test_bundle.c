/* Bundles as a store shows them: written by several processes at once, seen all together, and read while they change; and what is no
 * bundle is refused. */
#include "base/err.h"
#include "store/dir/dir.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/members.h"
#include "support/place.h"
#include "vv_test.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 8 };

/* ---- written by several processes ------------------------------------------------------------------------------------ */

static void write_member(const char *bundle, const char *token, uint64_t off, uint64_t room, struct members_object o)
{
	struct vv_store *s = members_open(members_root());
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
	struct vv_store *s = members_fresh("processes");
	struct members_object o[RANKS];
	char bundle[VV_NAME_MAX], token[VV_STORE_TOKEN], name[RANKS][VV_NAME_MAX];
	struct vv_member m[RANKS];
	uint64_t off = 0, state = seed;

	members_fill(o, RANKS, seed, 1 << 18);
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
	CHECK_EQ(members_files(members_path(MEMBERS_FOLDER), ""), 1);
	for (uint32_t i = 0; i < RANKS; i++)
		CHECK_EQ(members_is(s, 12, i, o[i]), 1);
	CHECK(members_blocks(bundle) < m[RANKS - 1].off); /* what is not used is a hole */
	vv_store_bundle_drop(s, bundle, token); /* too late: nothing happens */
	CHECK_EQ(members_listed(s), RANKS);
	vv_store_close(s);
}

/* Every process removes its own; whoever is last takes the file away. */
static void removed_together(uint64_t seed)
{
	struct vv_store *s = members_fresh("together");
	struct members_object o[RANKS];

	members_fill(o, RANKS, seed, 10000);
	CHECK_EQ(members_bundle(s, 1, 0, RANKS, o, 12000), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		if (fork() == 0) {
			struct vv_store *own = members_open(members_root());

			_exit(members_is(own, 1, i, o[i]) != 1 || members_remove(own, 1, i) != 0 ||
			      members_is(own, 1, i, o[i]) != 0);
		}
	await_all(RANKS);
	CHECK_EQ(members_listed(s), 0);
	CHECK_EQ(members_files(members_path(MEMBERS_FOLDER), ""), 0);
	vv_store_close(s);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------- */

static void bad_joins(void)
{
	static const char *const tokens[] = { "", "1", "-", "1-", "-1", "1-1/", "../1-1", "1-1/../../x", "a-1", "1-1 ", "1--1",
					      "11111111111111111111-11111111111", "/", "1-1\n" };
	struct vv_store *s = members_fresh("joins");
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
	CHECK_EQ(members_files(members_path(MEMBERS_FOLDER), ".tmp-"), 1); /* the first of the two */
	CHECK_EQ(vv_store_sweep(s, MEMBERS_FOLDER), 0);
	CHECK_EQ(members_files(members_path(MEMBERS_FOLDER), ".tmp-"), 0);
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
	CHECK_EQ(members_files(members_path(MEMBERS_FOLDER), ".tmp-"), 0);
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
	struct vv_store *s = members_fresh("seals");

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
	struct vv_store *s = members_fresh("mapped");

	CHECK_EQ(members_bundle(s, 3, 0, 4, o, (3 << 20) + 4096), 0);
	for (uint32_t i = 0; i < 4; i++) {
		char name[VV_NAME_MAX];
		struct vv_get *g = NULL;
		uint8_t *want = members_bytes(o[i]), got[100];

		vv_name_layer(name, MEMBERS_LINEAGE, 3, i);
		CHECK_EQ(vv_store_get_open(s, name, &g), 0);
		CHECK_EQ(g->maps, o[i].len >= 1 << 20);
		CHECK(!g->map);
		vv_store_get_map(g);
		CHECK_EQ(g->map != NULL, g->maps);
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
	struct vv_store *s = members_fresh("taken");
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
		vv_names_fini(&v);
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

		s = members_fresh("step");
		for (uint32_t i = 0; i < RANKS; i++)
			o[i] = version(i, 0);
		CHECK_EQ(members_bundle(s, 1, 0, RANKS, o, 20000), 0);
		r.s = members_open(members_root());
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
		CHECK_EQ(members_files(members_path(MEMBERS_FOLDER), ""), RANKS); /* the bundle is gone */
		vv_store_close(r.s);
		vv_store_close(s);
	}
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
	return 0;
}
