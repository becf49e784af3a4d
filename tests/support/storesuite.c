#include "support/storesuite.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/store.h"
#include "support/gen.h"
#include "vv_test.h"

static struct vv_store *open_store(const char *url, uint64_t bandwidth)
{
	struct vv_store_options opt = { .create = true, .bandwidth = bandwidth };
	struct vv_store *s = NULL;

	CHECK_EQ(vv_store_open(url, &opt, &s), 0);
	return s;
}

static void put_text(struct vv_store *s, const char *name, const char *text)
{
	CHECK_EQ(vv_store_put(s, name, text, strlen(text)), 0);
}

static void expect_text(struct vv_store *s, const char *name, const char *text)
{
	uint8_t *p = NULL;
	size_t n = 0;

	CHECK_EQ(vv_store_get(s, name, 1 << 20, &p, &n), 0);
	CHECK_EQ(n, strlen(text));
	CHECK(memcmp(p, text, n) == 0);
	vv_mem_free(p);
}

static void round_trips(struct vv_store *s)
{
	static const size_t sizes[] = { 0, 1, 2, 511, 512, 513, 4095, 4096, 4097, 65537, 1000003, (5 << 20) + 13 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *p = malloc(sizes[i] + 1), *q = NULL;
		uint64_t state = i;
		size_t n = 0;

		CHECK(p);
		gen_bytes(&state, p, sizes[i]);
		CHECK_EQ(vv_store_put(s, "trip/object", p, sizes[i]), 0);
		CHECK_EQ(vv_store_get(s, "trip/object", sizes[i], &q, &n), 0);
		CHECK_EQ(n, sizes[i]);
		CHECK(memcmp(p, q, n) == 0);
		vv_mem_free(q);
		if (sizes[i])
			CHECK_EQ(vv_store_get(s, "trip/object", sizes[i] - 1, &q, &n), VV_EDAMAGED); /* more than the limit */
		free(p);
	}
	CHECK_EQ(vv_store_remove(s, "trip/object"), 0);
}

/* More pieces than one system call takes, in several writes, with empty ones among them. */
static void many_pieces(struct vv_store *s)
{
	enum { PIECES = 3000, TIMES = 3 };
	static uint8_t bytes[PIECES * 7];
	struct iovec iov[PIECES];
	struct vv_put *put = NULL;
	struct vv_get *g = NULL;
	uint64_t state = 1;
	size_t total = 0;

	gen_bytes(&state, bytes, sizeof(bytes));
	for (int i = 0; i < PIECES; i++) {
		iov[i] = (struct iovec){ bytes + total, (size_t)i % 7 };
		total += (size_t)i % 7;
	}
	CHECK_EQ(vv_store_put_open(s, "pieces", TIMES * total, &put), 0);
	for (int i = 0; i < TIMES; i++)
		CHECK_EQ(vv_store_put_write(put, iov, PIECES), 0);
	CHECK_EQ(put->written, TIMES * total);
	CHECK_EQ(vv_store_put_commit(put), 0);
	CHECK_EQ(vv_store_get_open(s, "pieces", &g), 0);
	CHECK_EQ(g->size, TIMES * total);
	for (uint64_t at = 0; at < g->size; at += 101) {
		uint8_t got[101];
		size_t n = g->size - at < 101 ? (size_t)(g->size - at) : 101;

		CHECK_EQ(vv_store_get_read(g, at, got, n), 0);
		for (size_t i = 0; i < n; i++)
			CHECK(got[i] == bytes[(at + i) % total]);
	}
	vv_store_get_close(g);
	CHECK_EQ(vv_store_remove(s, "pieces"), 0);
}

static void bounds(struct vv_store *s)
{
	struct vv_get *g = NULL;
	char c[8];

	put_text(s, "bounds", "12345");
	CHECK_EQ(vv_store_get_open(s, "bounds", &g), 0);
	CHECK_EQ(vv_store_get_read(g, 5, c, 0), 0);
	CHECK_EQ(vv_store_get_read(g, 4, c, 1), 0);
	CHECK(c[0] == '5');
	CHECK_EQ(vv_store_get_read(g, 4, c, 2), VV_EDAMAGED);
	CHECK_EQ(vv_store_get_read(g, 6, c, 0), VV_EDAMAGED);
	CHECK_EQ(vv_store_get_read(g, UINT64_MAX, c, 2), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "bounds"));
	vv_store_get_close(g);
	vv_store_get_close(NULL);
	CHECK_EQ(vv_store_remove(s, "bounds"), 0);
}

/* A reader goes on with the old object; a second writer's half-written one is nobody's business. */
static void replaced_while_open(struct vv_store *s)
{
	struct iovec iov = { (char[]){ "half" }, 4 };
	struct vv_get *g = NULL;
	struct vv_put *put = NULL;
	char c[3] = "";

	put_text(s, "x/y", "old");
	CHECK_EQ(vv_store_get_open(s, "x/y", &g), 0);
	CHECK_EQ(vv_store_put_open(s, "x/y", 0, &put), 0);
	CHECK_EQ(vv_store_put_write(put, &iov, 1), 0);
	expect_text(s, "x/y", "old");
	put_text(s, "x/y", "brand new");
	CHECK_EQ(vv_store_get_read(g, 0, c, 3), 0);
	CHECK(memcmp(c, "old", 3) == 0);
	expect_text(s, "x/y", "brand new");
	vv_store_put_abort(put);
	expect_text(s, "x/y", "brand new");
	CHECK_EQ(vv_store_remove(s, "x/y"), 0);
	CHECK_EQ(vv_store_get_read(g, 0, c, 3), 0);
	vv_store_get_close(g);
}

static void absent(struct vv_store *s)
{
	struct vv_names names = { 0 };
	struct vv_get *g = NULL;
	uint8_t *p = NULL;
	size_t n;

	CHECK_EQ(vv_store_get_open(s, "no/such", &g), VV_ENOENT);
	CHECK(strstr(vv_err_last(), "no/such"));
	CHECK_EQ(vv_store_get(s, "nothing", 10, &p, &n), VV_ENOENT);
	CHECK_EQ(vv_store_remove(s, "nothing"), 0);
	CHECK_EQ(vv_store_remove(s, "no/such"), 0);
	CHECK_EQ(vv_store_list(s, "nowhere", &names), 0);
	CHECK_EQ(names.n, 0);
	vv_store_remove_dir(s, "nowhere");
	CHECK_EQ(vv_store_sweep(s, "nowhere"), 0);
	CHECK(!g && !p);
}

static void aborted(struct vv_store *s)
{
	struct iovec iov = { (char[]){ "never" }, 5 };
	struct vv_names names = { 0 };
	struct vv_put *put = NULL;

	CHECK_EQ(vv_store_put_open(s, "gone/object", 100, &put), 0);
	CHECK_EQ(vv_store_put_write(put, &iov, 1), 0);
	CHECK_EQ(vv_store_list(s, "gone", &names), 0);
	CHECK_EQ(names.n, 0); /* nothing to be seen before the commit */
	vv_names_fini(&names);
	vv_store_put_abort(put);
	vv_store_put_abort(NULL);
	CHECK_EQ(vv_store_list(s, "gone", &names), 0);
	CHECK_EQ(names.n, 0);
	vv_names_fini(&names);
	vv_store_remove_dir(s, "gone");
}

static void listed(struct vv_store *s)
{
	static const char *const names[] = { "l/b", "l/a", "l/sub/one", "l/c10", "l/c2", "l/sub/two", "l/sub.x", "lx" };
	static const char *const want[] = { "a", "b", "c10", "c2", "sub", "sub.x" };
	struct vv_names v = { 0 };

	for (size_t i = 0; i < 8; i++)
		put_text(s, names[i], names[i]);
	CHECK_EQ(vv_store_list(s, "l", &v), 0);
	CHECK_EQ(v.n, 6);
	for (size_t i = 0; i < v.n; i++) {
		CHECK_STR(v.v[i].name, want[i]);
		CHECK_EQ(v.v[i].is_dir, strcmp(want[i], "sub") == 0);
		CHECK_EQ(v.v[i].size, v.v[i].is_dir ? 0 : strlen(want[i]) + 2);
	}
	vv_names_fini(&v);
	vv_store_remove_dir(s, "l/sub"); /* not empty: stays */
	expect_text(s, "l/sub/one", "l/sub/one");
	for (size_t i = 0; i < 8; i++)
		CHECK_EQ(vv_store_remove(s, names[i]), 0);
	vv_store_remove_dir(s, "l/sub");
	vv_store_remove_dir(s, "l");
	CHECK_EQ(vv_store_list(s, "l", &v), 0);
	CHECK_EQ(v.n, 0);
	vv_names_fini(&v);
}

static void locked(struct vv_store *s, const char *url)
{
	struct vv_store *other = open_store(url, 0);
	struct vv_lock *a = NULL, *b = NULL;

	CHECK_EQ(vv_store_lock(s, "k/lock", &a), 0);
	CHECK_EQ(vv_store_lock(s, "k/lock", &b), VV_EBUSY);
	CHECK_EQ(vv_store_lock(other, "k/lock", &b), VV_EBUSY);
	CHECK(strstr(vv_err_last(), "this process"));
	CHECK_EQ(vv_store_lock(other, "k2/lock", &b), 0);
	vv_store_unlock(b);
	vv_store_unlock(a);
	CHECK_EQ(vv_store_lock(other, "k/lock", &b), 0);
	vv_store_unlock(b);
	vv_store_unlock(NULL);
	vv_store_close(other);
}

/* At least the time it should take; how much more is the machine's business. */
static void paced(const char *url)
{
	enum { BYTES = 200000, RATE = 1000000 };
	struct vv_store *s = open_store(url, RATE);
	static char bytes[BYTES / 4];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct vv_put *put = NULL;
	double start = vv_clock_s();

	CHECK_EQ(vv_store_put_open(s, "slow", 0, &put), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(vv_store_put_write(put, &iov, 1), 0);
	CHECK_EQ(vv_store_put_commit(put), 0);
	CHECK(vv_clock_s() - start >= 0.99 * BYTES / RATE);
	CHECK_EQ(vv_store_remove(s, "slow"), 0);
	vv_store_close(s);
}

static void shared(struct vv_store *s, const char *url)
{
	struct vv_store *other = open_store(url, 0);

	put_text(s, "shared/object", "seen by all");
	expect_text(other, "shared/object", "seen by all");
	vv_store_close(other);
	expect_text(s, "shared/object", "seen by all");
	CHECK_EQ(vv_store_remove(s, "shared/object"), 0);
}

void storesuite_run(const char *url)
{
	struct vv_store *s = open_store(url, 0);

	round_trips(s);
	many_pieces(s);
	bounds(s);
	replaced_while_open(s);
	absent(s);
	aborted(s);
	listed(s);
	locked(s, url);
	shared(s, url);
	paced(url);
	vv_store_close(s);
	vv_store_close(NULL);
}
