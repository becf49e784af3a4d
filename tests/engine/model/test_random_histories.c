// ctest: TIMEOUT 300 MODES COST 3
/* Random histories against a model that keeps every epoch whole: regions come, go, grow and shrink, content changes,
 * moves and returns, sessions end and begin, epochs are dropped and compacted away, digests are forgotten. After every few steps every live
 * epoch must restore exactly and verify clean.
 *
 *	test_model STORE SEED STEPS   leaves the store and, beside each live epoch's regions, STORE.model/EPOCH.REGION */
#include "base/err.h"
#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "engine/epoch/background.h"
#include "engine/upkeep/gc.h"
#include "engine/context.h"
#include "engine/upkeep/verify.h"
#include "engine/write/index_cache.h"
#include "engine/write/index_limit.h"
#include "support/place.h"
#include "vv_config.h"
#include "vv_test.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <varve/varve.h>

enum { REGIONS = 5, MOST = 60000, EPOCHS = 400 };

struct content {
	uint8_t *p;
	size_t len;
	bool there;
};

struct model {
	const char *store;
	uint64_t seed;
	varve *v;
	struct content now[REGIONS];
	struct content saved[EPOCHS][REGIONS];
	bool live[EPOCHS];
	uint64_t newest;
	char options[200];
};

static uint64_t rng(struct model *m)
{
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 7;
	return m->seed ^= m->seed << 17;
}

static size_t upto(struct model *m, size_t n)
{
	return (size_t)(rng(m) % (n + 1));
}

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		abort();
	}
}

static const char *name_of(int i)
{
	static const char *const names[REGIONS] = { "a", "b/with slash", "c", "d:colon", "e@at" };

	return names[i];
}

static void noise(struct model *m, uint8_t *p, size_t n)
{
	size_t kinds = upto(m, 3);

	for (size_t i = 0; i < n; i++)
		p[i] = kinds == 0 ? (uint8_t)rng(m) : kinds == 1 ? (uint8_t)(i / 7) : kinds == 2 ? (uint8_t)m->seed : 0;
}

static void protect(struct model *m, int i)
{
	struct content *c = &m->now[i];
	size_t shape[2] = { c->len / 16, 4 };

	if (c->len && c->len % 16 == 0)
		ok(varve_protect_array(m->v, name_of(i), c->p, VARVE_F32, 2, shape));
	else
		ok(varve_protect(m->v, name_of(i), c->p, c->len));
}

static void resize(struct model *m, int i, size_t len)
{
	struct content *c = &m->now[i];
	uint8_t *p = malloc(len + 1), *old;

	memset(p, 0, len + 1);
	if (c->p)
		memcpy(p, c->p, len < c->len ? len : c->len);
	if (len > c->len)
		noise(m, p + c->len, len - c->len);
	old = c->p;
	*c = (struct content){ p, len, true };
	protect(m, i);
	free(old); /* not before: it may be being stored */
}

static void change(struct model *m, int i)
{
	struct content *c = &m->now[i];
	size_t at, n;

	if (!c->there) {
		resize(m, i, upto(m, MOST));
		return;
	}
	at = upto(m, c->len);
	n = upto(m, c->len - at);
	switch (upto(m, 7)) {
	case 0:
		ok(varve_unprotect(m->v, name_of(i)));
		free(c->p);
		*c = (struct content){ 0 };
		break;
	case 1:
		resize(m, i, upto(m, MOST));
		break;
	case 2: /* moved by a distance that is no multiple of anything */
		memmove(c->p + at, c->p, n);
		break;
	case 3:
		memset(c->p + at, 0, n);
		break;
	case 4:
		if (c->len)
			c->p[upto(m, c->len - 1)]++;
		break;
	default:
		noise(m, c->p + at, n < 5000 ? n : 5000);
	}
}

static void copy_out(const struct content *from, struct content *to)
{
	*to = (struct content){ malloc(from->len + 1), from->len, from->there };
	if (from->there && from->len)
		memcpy(to->p, from->p, from->len);
}

/* Sometimes it is waited for; else what comes next happens while it is stored. */
static void checkpoint(struct model *m)
{
	ok(varve_checkpoint(m->v));
	m->newest = varve_epoch(m->v);
	if (upto(m, 1))
		ok(varve_wait(m->v, m->newest));
	if (strstr(m->options, "history") && upto(m, 2) == 0) { /* sooner than it would by itself */
		vv_background_wait(m->v);
		ok(vv_index_limit_shrink(m->v, upto(m, m->v->index_cache->index.n)));
	}
	CHECK(m->newest < EPOCHS);
	m->live[m->newest] = true;
	for (int i = 0; i < REGIONS; i++)
		copy_out(&m->now[i], &m->saved[m->newest][i]);
}

static void check_epoch(struct model *m, uint64_t e)
{
	for (int i = 0; i < REGIONS; i++) {
		const struct content *c = &m->saved[e][i];
		uint8_t *p = malloc(c->len + 1);

		if (!c->there) {
			CHECK_EQ(varve_restart_region(m->v, e, name_of(i), p, 0), VARVE_ENOENT);
		} else {
			memset(p, 0x5a, c->len + 1);
			ok(varve_restart_region(m->v, e, name_of(i), p, c->len));
			CHECK(c->len == 0 || memcmp(p, c->p, c->len) == 0);
			CHECK_EQ(p[c->len], 0x5a);
		}
		free(p);
	}
}

/* To an older epoch: the regions take the sizes they had. */
static void go_back(struct model *m, uint64_t e)
{
	for (int i = 0; i < REGIONS; i++) {
		const struct content *c = &m->saved[e][i];

		if (m->now[i].there)
			ok(varve_unprotect(m->v, name_of(i)));
		free(m->now[i].p);
		m->now[i] = (struct content){ calloc(c->len + 1, 1), c->len, c->there };
		if (c->there)
			protect(m, i);
	}
	CHECK_EQ(varve_restart(m->v, e), 1);
	for (int i = 0; i < REGIONS; i++)
		if (m->now[i].there && m->now[i].len)
			CHECK(memcmp(m->now[i].p, m->saved[e][i].p, m->now[i].len) == 0);
}

static void reopen(struct model *m)
{
	ok(varve_close(m->v));
	ok(varve_open(m->store, "model", m->options, &m->v));
	for (int i = 0; i < REGIONS; i++)
		if (m->now[i].there)
			protect(m, i);
}

static void tell(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "verify: %s\n", problem);
}

/* With the session closed, as a tool would: gc if asked to, then everything must verify. */
static void tend(struct model *m, bool gc, bool drop)
{
	struct vv_store_options opt = { 0 };
	struct vv_verify_report report;
	struct vv_gc_report freed, again;
	struct vv_lineage lin;
	struct vv_store *s = NULL;
	struct vv_pool *pool = NULL;

	ok(vv_store_open(m->store, &opt, &s));
	ok(vv_pool_new(1, &pool));
	ok(vv_catalog_open(s, "model", false, &lin));
	for (uint64_t e = 1; drop && e < m->newest; e++)
		if (m->live[e] && upto(m, 2)) {
			ok(vv_catalog_drop_epoch(&lin, e, NULL));
			m->live[e] = false;
		}
	if (gc) {
		ok(vv_gc_run(&lin, 0, VV_GC_THOROUGH, NULL, &freed));
		ok(vv_gc_run(&lin, 0, VV_GC_DRY_RUN, NULL, &again));
		CHECK(again.bytes_before <= freed.bytes_before);
		CHECK((double)again.bytes_before <= 1.3 * (double)again.bytes_needed + 65536);
	}
	ok(vv_verify_run(&lin, pool, 0, false, tell, NULL, NULL, &report));
	CHECK_EQ(report.problems, 0);
	vv_pool_free(pool);
	vv_store_close(s);
}

static void check_all(struct model *m)
{
	for (uint64_t e = 1; e <= m->newest; e++) {
		if (m->live[e])
			check_epoch(m, e);
		else
			CHECK(varve_test(m->v, e) == VARVE_ENOENT);
	}
}

static void run(struct model *m, int steps)
{
	ok(varve_open(m->store, "model", m->options, &m->v));
	for (int s = 0; s < steps; s++) {
		int n = (int)upto(m, 3);
		uint64_t e;

		for (int k = 0; k < n; k++)
			change(m, (int)upto(m, REGIONS - 1));
		checkpoint(m);
		if (s % 7 == 6) {
			e = 1 + upto(m, m->newest - 1);
			if (m->live[e])
				go_back(m, e);
		}
		if (s % 11 == 10) {
			ok(varve_close(m->v));
			m->v = NULL;
			tend(m, s % 2, s % 3);
			reopen(m);
			check_all(m);
		}
	}
	check_all(m);
	ok(varve_close(m->v));
	tend(m, false, false);
}

static void dump(struct model *m)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.model", m->store);
	mkdir(path, 0777);
	for (uint64_t e = 1; e <= m->newest; e++)
		for (int i = 0; m->live[e] && i < REGIONS; i++) {
			FILE *f;

			if (!m->saved[e][i].there)
				continue;
			snprintf(path, sizeof(path), "%s.model/%" PRIu64 ".%c", m->store, e, name_of(i)[0]);
			f = fopen(path, "wb");
			CHECK(f && fwrite(m->saved[e][i].p, 1, m->saved[e][i].len, f) == m->saved[e][i].len);
			CHECK(fclose(f) == 0);
		}
}

static void fini(struct model *m)
{
	for (int i = 0; i < REGIONS; i++) {
		free(m->now[i].p);
		for (int e = 0; e < EPOCHS; e++)
			free(m->saved[e][i].p);
	}
	free(m);
}

static void history(const char *store, uint64_t seed, int steps, const char *options, bool keep)
{
	struct model *m = calloc(1, sizeof(*m));

	m->store = store;
	m->seed = seed * 0x9e3779b97f4a7c15ull + 1;
	snprintf(m->options, sizeof(m->options), "%s", options);
	run(m, steps);
	if (keep)
		dump(m);
	fini(m);
}

int main(int argc, char **argv)
{
	static const char *const options[] = {
		"chunk=512 block=4096 threads=3 codec=none", "chunk=64 block=64KiB threads=1",
		"chunk=4096 threads=2 digest=sha256", "chunk=256 history=1KiB threads=2", "grain=64 block=4096 threads=2", "grain=512 method=tree", "grain=32 method=list history=1KiB",
		"grain=256 verify=bytes digest=sha256",
#if VV_HAVE_ZSTD
		"chunk=1000 block=8192 codec=zstd:3 threads=2",
#endif
#if VV_HAVE_LZ4
		"chunk=4096 block=32KiB codec=lz4",
#endif
	};
	char store[PLACE_MAX], name[64];

	if (argc == 4) {
		history(argv[1], strtoull(argv[2], NULL, 10), atoi(argv[3]), options[strtoul(argv[2], NULL, 10) % (sizeof(options) / sizeof(options[0]))],
			true);
		return 0;
	}
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		for (uint64_t seed = 1; seed <= 2; seed++) {
			snprintf(name, sizeof(name), "%zu-%" PRIu64, i, seed);
			history(place_path(store, name), seed + 10 * i, 60, options[i], false);
		}
	return 0;
}
