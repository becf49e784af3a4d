// ctest: TIMEOUT 120 COST 6
/* Regions that are deduped in grains, through the public calls: every method, size and mode restores what was there; what is stored is no
 * more than what is new; after a restart too; failures, gc, other ranks and regions that change their ways do no harm. */
#include "base/mem.h"
#include "support/dice.h"
#include "support/grain_job.h"
#include "vv_config.h"
#include "vv_test.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) MUST((call) >= 0)

enum { REGIONS = 4, EPOCHS = 10, MOST = 300000 };

/* ---- histories ----------------------------------------------------------------------------------------------------------------- */

struct state {
	size_t len[REGIONS];
	uint8_t *p[REGIONS];
};

static const char *const names[REGIONS] = { "big", "small", "tiny", "pages" };

static void edit(struct state *s, size_t r)
{
	dice_edit(s->p[r], s->len[r]);
}

static void copy_state(const struct state *from, struct state *to)
{
	for (int r = 0; r < REGIONS; r++) {
		to->len[r] = from->len[r];
		to->p[r] = malloc(from->len[r]);
		memcpy(to->p[r], from->p[r], from->len[r]);
	}
}

static void free_state(struct state *s)
{
	for (int r = 0; r < REGIONS; r++)
		free(s->p[r]);
}

static void protect(varve *v, struct state *s)
{
	for (int r = 0; r < REGIONS; r++)
		OK(varve_protect(v, names[r], s->p[r], s->len[r]));
	OK(varve_refine(v, "pages", NULL, 0));
}

static void sum_up(varve *v)
{
	struct varve_stats st;

	OK(varve_stats(v, &st));
	MUST(st.bytes_memory == st.bytes_unchanged + st.bytes_zero + st.bytes_dup_time + st.bytes_dup_space +
					st.bytes_dup_ranks + st.bytes_new);
}

static void check(const struct state *is, const struct state *was)
{
	for (int r = 0; r < REGIONS; r++) {
		MUST(is->len[r] == was->len[r]);
		MUST(memcmp(is->p[r], was->p[r], is->len[r]) == 0);
	}
}

static void grow_or_shrink(varve *v, struct state *s)
{
	int r = (int)upto(REGIONS - 1);
	size_t len = 1 + upto(s->len[r] * 2);
	uint8_t *old = s->p[r], *p = malloc(len);

	noise(p, len);
	memcpy(p, old, len < s->len[r] ? len : s->len[r]);
	s->p[r] = p;
	s->len[r] = len;
	OK(varve_protect(v, names[r], p, len));
	free(old);
}

/* In a session of its own, at the sizes they had. */
static void restore(const char *store, const char *options, uint64_t epoch, const struct state *was)
{
	struct state s = { 0 };
	varve *v = NULL;

	OK(varve_open(store, "job", options, &v));
	for (int r = 0; r < REGIONS; r++) {
		s.len[r] = was->len[r];
		s.p[r] = malloc(was->len[r]);
		memset(s.p[r], 0x5a, was->len[r]);
	}
	protect(v, &s);
	MUST(varve_restart(v, epoch) == 1);
	check(&s, was);
	OK(varve_close(v));
	free_state(&s);
}

static void history(const char *options)
{
	static struct state saved[EPOCHS + 1];
	struct state s = { .len = { MOST, 5000, 17, 70000 } };
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("%s", options);
	place_path(store, "history");
	OK(varve_open(store, "job", options, &v));
	for (int r = 0; r < REGIONS; r++) {
		s.p[r] = calloc(1, s.len[r]);
		noise(s.p[r], s.len[r] / 2);
	}
	protect(v, &s);
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		if (e % 4 == 3)
			grow_or_shrink(v, &s);
		for (size_t k = upto(8); k > 0; k--)
			edit(&s, upto(REGIONS - 1));
		OK(varve_checkpoint(v));
		MUST(varve_epoch(v) == e);
		copy_state(&s, &saved[e]);
		edit(&s, upto(REGIONS - 1)); /* while it is stored */
		if (e % 2)
			sum_up(v);
		if (e == 6) { /* back, and on from there */
			struct state *to = &saved[5];

			for (int r = 0; r < REGIONS; r++) {
				free(s.p[r]);
				s.len[r] = to->len[r];
				s.p[r] = malloc(s.len[r]);
			}
			protect(v, &s);
			MUST(varve_restart(v, 5) == 1);
			check(&s, to);
		}
	}
	OK(varve_close(v));
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		restore(store, options, e, &saved[e]);
		free_state(&saved[e]);
	}
	free_state(&s);
	place_remove(store);
}

static void histories(void)
{
	static const char *const method[] = { "full", "basic", "list", "tree", "run" };
	static const char *const more[] = { "mode=sync", "mode=async", "mode=async threads=3 keep=0 history=1KiB", "mode=sync digest=sha256 verify=bytes" };
	char options[200];

	for (size_t m = 0; m < 5; m++)
		for (unsigned grain = 32; grain <= 4096; grain *= 4 + 4 * (grain == 32))
			for (size_t k = 0; k < 4; k++) {
				snprintf(options, sizeof(options), "method=%s grain=%u %s", method[m], grain, more[k]);
				history(options);
			}
}

/* ---- only what is new -------------------------------------------------------------------------------------------------------------- */

static uint64_t new_bytes(varve *v)
{
	struct varve_stats st;

	OK(varve_checkpoint(v));
	OK(varve_stats(v, &st));
	return st.bytes_new;
}

static void only_new(void)
{
	enum { LEN = 4 << 20, GRAIN = 128 };
	uint8_t *a = malloc(LEN), *p = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("only what is new");
	place_path(store, "new");
	noise(a, LEN);
	memcpy(p, a, LEN);
	OK(varve_open(store, "job", "grain=128", &v));
	OK(varve_protect(v, "p", p, LEN));
	MUST(new_bytes(v) == LEN);
	MUST(new_bytes(v) == 0);
	p[77777]++;
	MUST(new_bytes(v) == GRAIN);
	noise(p, LEN);
	MUST(new_bytes(v) == LEN);
	memcpy(p, a, LEN); /* A, B, A */
	MUST(new_bytes(v) == 0);
	memmove(p + GRAIN, p, LEN - GRAIN); /* everything by one grain */
	MUST(new_bytes(v) == 0);
	OK(varve_close(v));

	memset(p, 1, LEN); /* a new session does not begin from nothing */
	OK(varve_open(store, "job", "grain=128", &v));
	OK(varve_protect(v, "p", p, LEN));
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(memcmp(p + GRAIN, a, LEN - GRAIN) == 0 && memcmp(p, a, GRAIN) == 0);
	MUST(new_bytes(v) == 0);
	p[5]++;
	p[LEN - 1]++;
	MUST(new_bytes(v) == 2 * GRAIN);
	memmove(p + LEN / 2, p, LEN / 2);
	MUST(new_bytes(v) == 0);
	OK(varve_close(v));
	place_remove(store);
	free(a);
	free(p);
}

/* A state, `others` that have nothing in common with it, and that state moved by a grain: how much of it is stored again. */
static uint64_t stored_again(const char *options, int others)
{
	enum { LEN = 5000 * 128 };
	static uint8_t a[LEN], p[LEN];
	char store[PLACE_MAX];
	varve *v = NULL;
	uint64_t n;

	must_begin("remembered: %s, %d states", options, others);
	place_path(store, "remembered");
	OK(varve_open(store, "job", options, &v));
	OK(varve_protect(v, "p", p, LEN));
	noise(a, LEN);
	memcpy(p, a, LEN);
	MUST(new_bytes(v) == LEN);
	for (int k = 0; k < others; k++) {
		noise(p, LEN);
		MUST(new_bytes(v) == LEN);
	}
	p[77]++;
	MUST(new_bytes(v) == 128);
	MUST(new_bytes(v) == 0);
	noise(p, 128);
	memcpy(p + 128, a, LEN - 128);
	n = new_bytes(v);
	OK(varve_close(v));
	place_remove(store);
	return n;
}

/* A size for the history is obeyed, however small or large; a share is one of 64 MiB at least, for four states or so. */
static void remembered(void)
{
	enum { ALL = 5000 * 128, GRAIN = 128 };

	MUST(stored_again("grain=128", 1) == GRAIN);
	MUST(stored_again("grain=128", 3) == GRAIN);
	MUST(stored_again("grain=128", 12) == ALL);
	MUST(stored_again("grain=128 history=1G", 12) == GRAIN);
	MUST(stored_again("grain=128 history=1G method=tree", 30) == GRAIN);
	MUST(stored_again("grain=128 history=0", 1) == ALL);
	MUST(stored_again("grain=128 history=0 method=tree", 1) == ALL);
	MUST(stored_again("grain=128 history=1M", 0) == GRAIN);
	MUST(stored_again("grain=128 history=1M", 5) == ALL);
}

/* Other grains know nothing of what is stored; a restart lets them learn it. */
static uint64_t refined(unsigned from, unsigned to, const char *method, bool restart)
{
	enum { LEN = 1 << 20 };
	static uint8_t p[LEN], q[LEN];
	char store[PLACE_MAX];
	varve *v = NULL;
	uint64_t n;

	must_begin("refined: %u, %u, %s", from, to, method);
	place_path(store, "refined");
	noise(p, LEN);
	OK(varve_open(store, "job", NULL, &v));
	OK(varve_protect(v, "p", p, LEN));
	OK(varve_refine(v, "p", NULL, from));
	MUST(new_bytes(v) == LEN);
	for (int k = 0; k < 50; k++)
		p[upto(LEN - 1)]++;
	MUST(new_bytes(v) > 0);
	OK(varve_refine(v, "p", method, to));
	if (restart)
		MUST(varve_restart(v, VARVE_LATEST) == 1);
	n = new_bytes(v);
	OK(varve_restart_region(v, varve_epoch(v), "p", q, LEN));
	MUST(memcmp(p, q, LEN) == 0);
	OK(varve_close(v));
	place_remove(store);
	return n;
}

static void refinements(void)
{
	enum { HALF = 1 << 19 };

	MUST(refined(128, 64, "run", true) == 0);
	MUST(refined(128, 128, "tree", true) == 0);
	MUST(refined(0, 128, "run", true) == 0);
	MUST(refined(0, 128, "run", false) == 0);
	MUST(refined(128, 64, "run", false) < HALF); /* pages in which nothing was changed are found */
	MUST(refined(128, 128, "tree", false) < HALF);
	MUST(refined(128, 0, "run", true) < HALF);
	MUST(refined(128, 0, "run", false) < HALF);
}

/* An array of ones is a page of ones, and not a run for each grain of it. */
static void constant(void)
{
	enum { LEN = 32 << 20, ONES = 31 << 20 };
	uint8_t *p = malloc(LEN), *q = malloc(LEN);
	struct varve_stats st;
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("constant");
	place_path(store, "constant");
	noise(p, LEN);
	for (size_t i = 0; i < ONES; i += 8)
		*(double *)(p + i) = i < ONES / 3 ? 1.0 : i < 2 * ONES / 3 ? (double)(i / 8 % 64) : (double)(i / 8 % 3);
	OK(varve_open(store, "job", "grain=64 codec=none", &v));
	OK(varve_protect(v, "p", p, LEN - 7));
	for (int e = 0; e < 3; e++) {
		OK(varve_checkpoint(v));
		OK(varve_stats(v, &st));
		MUST(st.bytes_layer < (e ? 100000u : LEN - ONES + 300000u));
		MUST(st.bytes_memory == st.bytes_unchanged + st.bytes_zero + st.bytes_dup_time + st.bytes_dup_space + st.bytes_new);
		OK(varve_restart_region(v, varve_epoch(v), "p", q, LEN - 7));
		MUST(memcmp(p, q, LEN - 7) == 0);
		p[1000000 * (e + 1)]++;
		memset(p + 5000000 * (e + 1), 0x11, 300000);
	}
	OK(varve_close(v));
	place_remove(store);
	free(p);
	free(q);
}

/* Old epochs go and are collected; what later ones need of them stays. */
static void kept(void)
{
	enum { LEN = 200000 };
	uint8_t *p = malloc(LEN), *was = malloc(LEN), *q = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("keep=2");
	place_path(store, "kept");
	noise(p, LEN);
	OK(varve_open(store, "job", "grain=64 keep=2", &v));
	OK(varve_protect(v, "p", p, LEN));
	for (int e = 1; e <= 60; e++) {
		size_t at = upto(LEN - 20000);

		if (e % 3)
			noise(p + at, 20000);
		else
			memmove(p + at / 64 * 64, p + upto(2000) * 64, 10000);
		OK(varve_checkpoint(v));
		memcpy(was, p, LEN);
		if (e % 5 == 0) {
			OK(varve_restart_region(v, varve_epoch(v), "p", q, LEN));
			MUST(memcmp(q, was, LEN) == 0);
		}
	}
	OK(varve_close(v));
	place_remove(store);
	free(p);
	free(was);
	free(q);
}

/* gc leaves parts of pages, whose digests go: every byte is read all the same. */
static void collected(uint64_t start)
{
	enum { LEN = 1500000 };
	uint8_t *p = malloc(LEN), *q = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("collected, %d", (int)start);
	place_path(store, "collected");
	seed = start * 77777 + 1;
	noise(p, LEN);
	OK(varve_open(store, "job", "grain=128 keep=2", &v));
	OK(varve_protect(v, "p", p, LEN));
	for (int e = 1; e <= 12; e++) {
		for (size_t k = upto(3); k > 0; k--) {
			size_t len = 1 + upto(upto(2) ? 3000 : 400000), from = upto(LEN - len), to = upto(LEN - len);

			if (upto(2) == 0)
				noise(p + to, len);
			else if (upto(1))
				memset(p + to, (int)upto(2), len);
			else
				memmove(p + to / 128 * 128, p + from / 128 * 128, len / 128 * 128);
		}
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
		memset(q, 0xcc, LEN);
		OK(varve_restart_region(v, varve_epoch(v), "p", q, LEN));
		MUST(memcmp(p, q, LEN) == 0);
	}
	OK(varve_close(v));
	place_remove(store);
	free(p);
	free(q);
}

/* ---- when things go wrong ------------------------------------------------------------------------------------------------------------ */

/* A store that takes no more: the epoch does not count, and the next one has all of it. */
static void failed(const char *options)
{
	enum { LEN = 1 << 20 };
	uint8_t *p = malloc(LEN), *q = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;
	int rc;

	must_begin("failed: %s", options);
	place_path(store, "failed");
	noise(p, LEN);
	signal(SIGXFSZ, SIG_IGN);
	OK(varve_open(store, "job", options, &v));
	OK(varve_protect(v, "p", p, LEN - 3));
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	for (int k = 0; k < 3; k++) {
		noise(p + k * 1000, LEN / 2);
		must_limit_files(100000);
		rc = varve_checkpoint(v);
		rc = rc ? rc : varve_wait(v, varve_epoch(v));
		must_limit_files(RLIM_INFINITY);
		MUST(rc < 0);
		p[LEN - 5]++;
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
		OK(varve_restart_region(v, varve_epoch(v), "p", q, LEN - 3));
		MUST(memcmp(p, q, LEN - 3) == 0);
	}
	OK(varve_close(v));
	place_remove(store);
	free(p);
	free(q);
}

/* More than may be held: it is stored meanwhile; and if that fails, nothing of it counts. */
static void much(void)
{
	enum { LEN = 150 << 20, LIMIT = 70 << 20 };
	uint8_t *p = malloc(LEN), *q = malloc(LEN);
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("more than the stage holds");
	place_path(store, "much");
	for (size_t i = 0; i < LEN; i += 8)
		*(uint64_t *)(p + i) = rng();
	OK(varve_open(store, "job", "grain=512 stage=1MiB codec=none", &v));
	OK(varve_protect(v, "p", p, LEN));
	must_limit_files(LIMIT);
	MUST(varve_checkpoint(v) < 0);
	MUST(varve_checkpoint(v) < 0);
	must_limit_files(RLIM_INFINITY);
	OK(varve_checkpoint(v));
	OK(varve_wait(v, varve_epoch(v)));
	OK(varve_restart_region(v, varve_epoch(v), "p", q, LEN));
	MUST(memcmp(p, q, LEN) == 0);
	p[LEN / 2]++;
	MUST(new_bytes(v) == 512);
	OK(varve_restart_region(v, varve_epoch(v), "p", q, LEN));
	MUST(memcmp(p, q, LEN) == 0);
	OK(varve_close(v));
	place_remove(store);
	free(p);
	free(q);
}

/* A program that waits for its new data does not wait for a compressor. */
static void uncompressed(void)
{
#if VV_HAVE_ZSTD
	enum { LEN = 150 << 20, STAGE = 128 << 20 };
	uint8_t *p = malloc(LEN), *q = malloc(LEN);
	struct varve_stats st = { 0 };
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("what the stage does not hold is not compressed");
	place_path(store, "plain");
	for (size_t i = 0; i < LEN; i++)
		p[i] = (uint8_t)(rng() & 3);
	OK(varve_open(store, "job", "grain=512 stage=1MiB codec=zstd", &v));
	OK(varve_protect(v, "p", p, LEN));
	OK(varve_checkpoint(v));
	OK(varve_wait(v, VARVE_LATEST));
	OK(varve_stats(v, &st));
	MUST(st.bytes_layer > STAGE && st.bytes_layer < STAGE + (LEN - STAGE) / 2);
	OK(varve_restart_region(v, varve_epoch(v), "p", q, LEN));
	MUST(memcmp(p, q, LEN) == 0);
	OK(varve_close(v));
	place_remove(store);
	free(p);
	free(q);
#endif
}

/* By default a quarter of the memory at hand: the call does not wait for the store, which here cannot take them. */
static void share(void)
{
	enum { LEN = 300 << 20, LIMIT = 70 << 20 };
	uint8_t *p;
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("the stage is a share of the memory");
	if (vv_mem_available() < (uint64_t)8 * LEN) {
		return; /* less than 2.4 GiB */
	}
	p = malloc(LEN);
	place_path(store, "share");
	for (size_t i = 0; i < LEN; i += 8)
		*(uint64_t *)(p + i) = rng();
	OK(varve_open(store, "job", "grain=512 codec=none", &v));
	OK(varve_protect(v, "p", p, LEN));
	must_limit_files(LIMIT);
	OK(varve_checkpoint(v));
	memset(p, 1, 4096);
	MUST(varve_wait(v, VARVE_LATEST) < 0);
	must_limit_files(RLIM_INFINITY);
	OK(varve_checkpoint(v));
	OK(varve_close(v));
	MUST(varve_open(store, "job", "stage=101%", &v) == VARVE_EINVAL && strstr(varve_last_error(), "a share up to 100%"));
	place_remove(store);
	free(p);
}

static void misuse(void)
{
	static uint8_t p[100000];
	char store[PLACE_MAX];
	varve *v = NULL;

	must_begin("misuse");
	place_path(store, "misuse");
	MUST(varve_open(store, "job", "grain=5000", &v) == VARVE_EINVAL);
	MUST(varve_open(store, "job", "method=best", &v) == VARVE_EINVAL);
	MUST(varve_open(store, "job", "grain=100", &v) == VARVE_EINVAL && strstr(varve_last_error(), "power of two"));
	OK(varve_open(store, "job", NULL, &v));
	MUST(varve_refine(v, "p", NULL, 64) == VARVE_ENOENT);
	OK(varve_protect(v, "p", p, sizeof(p)));
	MUST(varve_refine(v, "p", NULL, 33) == VARVE_EINVAL);
	MUST(varve_refine(v, "p", NULL, 16) == VARVE_EINVAL);
	MUST(varve_refine(v, "p", NULL, 8192) == VARVE_EINVAL);
	MUST(varve_refine(v, "p", NULL, (size_t)1 << 40) == VARVE_EINVAL && strstr(varve_last_error(), "1099511627776"));
	MUST(varve_refine(v, "p", "merkle", 64) == VARVE_EINVAL && strstr(varve_last_error(), "merkle"));
	MUST(varve_refine(v, NULL, NULL, 64) == VARVE_EINVAL);
	for (unsigned k = 0; k < 24; k++) { /* there and back */
		static const char *const method[] = { "run", "tree", NULL, "list" };
		uint8_t q[sizeof(p)];

		OK(varve_refine(v, "p", method[k % 4], k % 3 ? 32u << k % 8 : 0));
		noise(p + upto(90000), 10000);
		OK(varve_checkpoint(v));
		OK(varve_restart_region(v, varve_epoch(v), "p", q, sizeof(q)));
		MUST(memcmp(p, q, sizeof(q)) == 0);
	}
	OK(varve_unprotect(v, "p"));
	OK(varve_checkpoint(v));
	OK(varve_close(v));
	place_remove(store);
}

/* ---- many ranks -------------------------------------------------------------------------------------------------------------------- */

/* All have the same, then each has something of its own, then one has what another had. */
static void work(const struct varve_comm *comm, void *arg)
{
	struct job *j = arg;
	struct varve_comm mine = *comm;
	uint8_t *p = malloc(SHARED), *q = malloc(SHARED);
	struct varve_stats st;
	varve *v = NULL;

	mine.any_thread = j->any_thread;
	OK(varve_open_comm(&mine, j->store, "job", j->options, &v));
	grain_job_fill(p);
	OK(varve_protect(v, "p", p, SHARED));
	for (int e = 0; e < 4; e++) {
		if (e == 1)
			p[1000 * (comm->rank + 1)]++;
		if (e == 3)
			memset(p + 300000 + 1000 * comm->rank, 7, 5000);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
		OK(varve_stats(v, &st));
		MUST(st.bytes_memory == st.bytes_unchanged + st.bytes_zero + st.bytes_dup_time + st.bytes_dup_space +
						st.bytes_dup_ranks + st.bytes_new);
		if (e == 0)
			atomic_fetch_add(&j->stored, st.bytes_new);
		OK(varve_restart_region(v, varve_epoch(v), "p", q, SHARED));
		MUST(memcmp(p, q, SHARED) == 0);
	}
	memcpy(q, p, SHARED);
	noise(p, 1000);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(memcmp(p, q, SHARED) == 0);
	p[9]++;
	OK(varve_checkpoint(v));
	OK(varve_stats(v, &st));
	MUST(st.bytes_new + st.bytes_dup_ranks + st.bytes_dup_time <= 2 * 256);
	OK(varve_close(v));
	free(p);
	free(q);
}

int main(void)
{
	only_new();
	misuse();
	remembered();
	refinements();
	kept();
	constant();
	for (uint64_t s = 1; s <= 40; s++)
		collected(s);
	much();
	uncompressed();
	share();
	failed("grain=128 mode=sync");
	failed("grain=128 mode=async codec=none");
	failed("grain=128 mode=async method=tree");
	grain_job_run(work);
	histories();
	return 0;
}
