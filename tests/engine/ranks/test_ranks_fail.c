// ctest: TIMEOUT 120 COST 2
/* Many ranks when things go wrong: one that cannot store, that skips a call, that makes another one, that has other options, other
 * sizes, no regions; and another number of ranks. Nobody hangs, all get the same verdict, the last epoch that counts restores. */
#include "engine/ranks/group.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <varve/varve_comm.h>

enum { PAGE = 4096, PAGES = 16, RANKS = 4 };

#define OK(call) MUST((call) >= 0)

struct run {
	const char *mode;
	bool any_thread;
	char store[PLACE_MAX];
	bool split;
	uint32_t odd; /* the rank that is different */
	atomic_uint gave_up; /* of those that waited for it in vain */
	int code[RANKS];
	char message[RANKS][512];
};

static int open_rank(const struct run *r, const struct varve_comm *comm, const char *more, varve **v)
{
	struct varve_comm mine = *comm;
	char store[PLACE_MAX + 16], options[128];

	mine.any_thread = r->any_thread;
	snprintf(store, sizeof(store), r->split ? "%s/r%u" : "%s", r->store, comm->rank);
	snprintf(options, sizeof(options), "mode=%s timeout=20 %s", r->mode, more);
	return varve_open_comm(&mine, store, "job", options, v);
}

static void fill(uint8_t *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((seed * 31 + i * 7 + (i >> 12) * (seed + 1)) >> 2);
}

/* Every rank tells an error in the name of the one that had it, and in no other. */
static bool is_nested(const char *message)
{
	const char *first = strstr(message, "rank "), *colon = first ? strchr(first, ':') : NULL;

	return colon && strncmp(colon, ": rank ", 7) == 0 && strspn(first + 5, "0123456789") == (size_t)(colon - first - 5);
}

static void note(struct run *r, uint32_t rank, int rc)
{
	MUST(rc >= 0 || !is_nested(varve_last_error()));
	r->code[rank] = rc;
	snprintf(r->message[rank], sizeof(r->message[rank]), "%s", varve_last_error());
}

/* Stores and waits: the verdict. */
static int settle(varve *v)
{
	int rc = varve_checkpoint(v);

	return rc < 0 ? rc : varve_wait(v, varve_epoch(v));
}

static void same_verdict(const struct run *r, int code, const char *words)
{
	for (uint32_t k = 0; k < RANKS; k++) {
		if (r->code[k] != code || !strstr(r->message[k], words))
			fprintf(stderr, "rank %u: %d %s\n", k, r->code[k], r->message[k]);
		MUST(r->code[k] == code);
		MUST(strstr(r->message[k], words));
	}
}

/* ---- one rank cannot store -------------------------------------------------------------------------------------------------- */

static void block_folder(const struct run *r, uint32_t rank, bool on)
{
	char dir[PLACE_MAX + 64], aside[PLACE_MAX + 64];

	snprintf(dir, sizeof(dir), "%s/r%u/job/00000000", r->store, rank);
	snprintf(aside, sizeof(aside), "%s/r%u/job/aside", r->store, rank);
	if (on) {
		MUST(rename(dir, aside) == 0);
		place_write(dir, "x", 1);
	} else {
		MUST(remove(dir) == 0);
		MUST(rename(aside, dir) == 0);
	}
}

static void cannot_store(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	uint8_t *p, want[PAGES * PAGE];
	struct varve_stats before, after;
	varve *v = NULL;

	OK(open_rank(r, comm, "", &v));
	p = varve_alloc(v, "p", PAGES * PAGE);
	fill(p, PAGES * PAGE, comm->rank % 2);
	OK(settle(v));
	fill(p, PAGES * PAGE, comm->rank % 3 + 10);
	memcpy(want, p, sizeof(want));
	OK(settle(v));
	OK(varve_stats(v, &before));
	if (comm->rank == r->odd)
		block_folder(r, r->odd, true);
	fill(p, PAGES * PAGE, comm->rank % 2 + 20);
	note(r, comm->rank, settle(v));
	OK(varve_stats(v, &after)); /* of the last epoch that counts */
	MUST(after.epoch == before.epoch && after.bytes_stored == before.bytes_stored);
	if (comm->rank == r->odd)
		block_folder(r, r->odd, false);
	memset(p, 1, PAGES * PAGE);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(memcmp(p, want, sizeof(want)) == 0);
	fill(p, PAGES * PAGE, comm->rank % 2 + 20); /* what failed is stored now */
	memcpy(want, p, sizeof(want));
	OK(settle(v));
	memset(p, 1, PAGES * PAGE);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(memcmp(p, want, sizeof(want)) == 0);
	OK(varve_close(v));
}

/* The first epoch counts. The odd rank cannot store the next one, for which all memory has changed. */
static uint8_t *begin_failure(const struct run *r, const struct varve_comm *comm, varve **v)
{
	uint8_t *p;

	OK(open_rank(r, comm, "", v));
	p = varve_alloc(*v, "p", PAGES * PAGE);
	fill(p, PAGES * PAGE, comm->rank);
	OK(settle(*v));
	if (comm->rank == r->odd)
		block_folder(r, r->odd, true);
	fill(p, PAGES * PAGE, comm->rank + 10);
	return p;
}

/* Nobody waits for the epoch that fails: the next call tells, on every rank. */
static void told_later(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v;
	uint8_t *p = begin_failure(r, comm, &v);

	if (strcmp(r->mode, "sync") == 0) {
		MUST(varve_checkpoint(v) < 0);
	} else {
		OK(varve_checkpoint(v));
		MUST(varve_checkpoint(v) < 0);
	}
	MUST(strstr(varve_last_error(), comm->rank == r->odd ? "cannot create" : "rank 2: "));
	fill(p, PAGES * PAGE, comm->rank + 20);
	if (strcmp(r->mode, "sync") != 0) {
		OK(varve_checkpoint(v));
		note(r, comm->rank, varve_close(v));
	} else {
		note(r, comm->rank, varve_checkpoint(v));
		OK(varve_close(v));
	}
	if (comm->rank == r->odd)
		block_folder(r, r->odd, false);
}

/* Some ranks ask for the epoch by themselves: the next call tells it on every rank all the same, once. */
static void told_to_some(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v;
	uint8_t *p = begin_failure(r, comm, &v);

	OK(varve_checkpoint(v));
	if (comm->rank % 2)
		MUST(varve_wait_for(v, varve_epoch(v), 60) < 0);
	note(r, comm->rank, varve_checkpoint(v));
	MUST(r->code[comm->rank] < 0);
	MUST(strstr(varve_last_error(), comm->rank == r->odd ? "cannot create" : "rank 2: "));
	if (comm->rank == r->odd)
		block_folder(r, r->odd, false);
	fill(p, PAGES * PAGE, comm->rank + 20);
	OK(settle(v));
	OK(varve_close(v));
}

/* ---- one rank does something else ------------------------------------------------------------------------------------------- */

static void other_call(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = NULL;

	OK(open_rank(r, comm, "", &v));
	OK(varve_alloc(v, "p", PAGE) ? 0 : -1);
	OK(settle(v));
	note(r, comm->rank, comm->rank == r->odd ? varve_restart(v, VARVE_LATEST) : varve_checkpoint(v));
	OK(settle(v)); /* after that all is as before */
	note(r, comm->rank, r->code[comm->rank] ? r->code[comm->rank] : 0);
	OK(varve_close(v));
}

static void other_epoch(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = NULL;

	OK(open_rank(r, comm, "", &v));
	OK(varve_alloc(v, "p", PAGE) ? 0 : -1);
	OK(settle(v));
	OK(settle(v));
	note(r, comm->rank, varve_restart(v, comm->rank == r->odd ? 1 : 2));
	OK(varve_close(v));
}

static void waits_for_other(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = NULL;

	OK(open_rank(r, comm, "", &v));
	OK(varve_alloc(v, "p", PAGE) ? 0 : -1);
	OK(settle(v));
	OK(varve_checkpoint(v));
	note(r, comm->rank, varve_wait(v, comm->rank == r->odd ? 1 : 2));
	OK(varve_wait(v, 2)); /* after that all is as before */
	OK(varve_wait(v, 1));
	OK(settle(v));
	OK(varve_close(v));
}

static void waits_alone(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = NULL;

	OK(open_rank(r, comm, "", &v));
	OK(varve_alloc(v, "p", PAGE) ? 0 : -1);
	OK(varve_checkpoint(v));
	note(r, comm->rank, comm->rank == r->odd ? varve_wait(v, 1) : varve_checkpoint(v));
	OK(settle(v));
	OK(varve_close(v));
}

/* What one cannot read nobody gets, and all say whose it is. */
static void damaged(const struct varve_comm *comm, void *arg)
{
	char path[PLACE_MAX + 80];
	struct run *r = arg;
	varve *v = NULL;
	uint8_t *p;

	OK(open_rank(r, comm, "", &v));
	p = varve_alloc(v, "p", PAGES * PAGE);
	for (uint64_t e = 1; e <= 2; e++) {
		fill(p, PAGES * PAGE, comm->rank + 10 * e);
		OK(settle(v));
	}
	if (comm->rank == r->odd) {
		snprintf(path, sizeof(path), r->split ? "%s/r%u/job/00000000/0000000002.r%u.layer" : "%s%.0u/job/00000000/0000000002.r%u.layer",
			 r->store, r->split ? r->odd : 0, r->odd);
		MUST(truncate(path, 100) == 0);
	}
	note(r, comm->rank, varve_restart(v, 2));
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(varve_epoch(v) == 1);
	OK(varve_close(v));
}

/* One takes it to be time, without having asked. */
static void other_due(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = NULL;

	OK(open_rank(r, comm, "interval=1h", &v));
	OK(varve_alloc(v, "p", PAGE) ? 0 : -1);
	note(r, comm->rank, comm->rank == r->odd ? varve_checkpoint(v) : varve_due(v));
	MUST(varve_due(v) == 0); /* after that all is as before */
	OK(varve_close(v));
}

static void other_lineage(const struct varve_comm *comm, void *arg)
{
	struct varve_comm mine = *comm;
	struct run *r = arg;
	varve *v = NULL;

	mine.any_thread = r->any_thread;
	note(r, comm->rank, varve_open_comm(&mine, r->store, comm->rank == r->odd ? "other" : "job", "timeout=20", &v));
	MUST(!v);
}

static void other_options(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = NULL;

	note(r, comm->rank, open_rank(r, comm, comm->rank == r->odd ? "chunk=1024" : "", &v));
	MUST(!v);
}

static void bad_options(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = NULL;

	note(r, comm->rank, open_rank(r, comm, comm->rank == r->odd ? "chunk=banana" : "", &v));
	MUST(!v);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* It never comes; the others say so in time, and from then on at once. */
static void skips(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = NULL;
	double start;

	OK(open_rank(r, comm, "timeout=3", &v)); /* all come in less, to what they all come to */
	OK(varve_alloc(v, "p", PAGE) ? 0 : -1);
	OK(settle(v));
	start = now();
	if (comm->rank == r->odd) {
		while (atomic_load(&r->gave_up) < RANKS - 1)
			must_nap(10);
		note(r, comm->rank, varve_checkpoint(v));
	} else {
		note(r, comm->rank, varve_checkpoint(v));
		atomic_fetch_add(&r->gave_up, 1);
		MUST(now() - start < 30);
	}
	start = now();
	MUST(varve_checkpoint(v) == VARVE_EPEER);
	MUST(varve_close(v) == VARVE_EPEER);
	MUST(comm->rank == r->odd || now() - start < 3);
}

/* ---- ranks that differ ------------------------------------------------------------------------------------------------------ */

static void unequal(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	size_t n = comm->rank * 3 * PAGE + (comm->rank ? comm->rank * 17 : 0);
	uint8_t *p = malloc(n + 1), *want = malloc(n + 1);
	varve *v = NULL;

	OK(open_rank(r, comm, "", &v));
	if (comm->rank)
		OK(varve_protect(v, "p", p, n));
	if (comm->rank == 3)
		OK(varve_protect(v, "empty", p, 0));
	for (uint64_t e = 0; e < 4; e++) {
		fill(p, n, e / 2);
		OK(settle(v));
	}
	memcpy(want, p, n);
	memset(p, 1, n);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(memcmp(p, want, n) == 0);
	OK(varve_close(v));
	free(p);
	free(want);
}

static void fewer(const struct varve_comm *comm, void *arg)
{
	struct run *r = arg;
	varve *v = NULL;
	uint8_t *p;

	OK(open_rank(r, comm, "", &v));
	p = varve_alloc(v, "p", PAGE);
	MUST(varve_restart(v, VARVE_LATEST) == VARVE_EMISMATCH);
	MUST(strstr(varve_last_error(), "4 rank(s)") && strstr(varve_last_error(), "has 2"));
	p[0] = (uint8_t)(1 + comm->rank);
	OK(settle(v)); /* a new series in the same lineage */
	p[0] = 0;
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(p[0] == 1 + comm->rank);
	OK(varve_close(v));
}

static void alone(const struct run *r)
{
	varve *v = NULL;
	uint8_t p[64];

	OK(varve_open(r->store, "job", NULL, &v));
	OK(varve_protect(v, "p", p, sizeof(p)));
	MUST(varve_restart(v, VARVE_LATEST) == VARVE_EMISMATCH);
	OK(varve_close(v));
}

static void all(const char *mode, bool any_thread, bool split)
{
	struct run *r = calloc(1, sizeof(*r));

	r->mode = mode;
	r->any_thread = any_thread;
	r->split = split;
#define CASE(fn, who)                                                                  \
	must_begin("%s %d %d " #fn, mode, any_thread, split);                          \
	r->odd = who;                                                                  \
	place_remove(place_path(r->store, "s"));                                       \
	threadcomm_run(RANKS, fn, r)
	if (split) {
		CASE(cannot_store, 2);
		same_verdict(r, r->code[0], "");
		MUST(r->code[0] < 0 && strstr(r->message[0], "rank 2: ") && strstr(r->message[2], "r2/job"));
		CASE(cannot_store, 0);
		MUST(r->code[0] < 0 && r->code[3] == r->code[0] && strstr(r->message[3], "rank 0: "));
	}
	if (split) {
		CASE(told_later, 2);
		MUST(r->code[0] < 0 && r->code[0] == r->code[2] && r->code[3] == r->code[2]);
	}
	if (split && strcmp(mode, "async") == 0) {
		CASE(told_to_some, 2);
		MUST(r->code[0] == r->code[1] && r->code[1] == r->code[2] && r->code[2] == r->code[3]);
	}
	CASE(other_due, 3);
	same_verdict(r, VARVE_EPEER, "rank 3 called varve_checkpoint");
	CASE(other_lineage, 1);
	same_verdict(r, VARVE_EPEER, "lineages");
	CASE(other_call, 1);
	same_verdict(r, VARVE_EPEER, "");
	CASE(other_epoch, 3);
	same_verdict(r, VARVE_EPEER, "rank 3 for 1");
	CASE(waits_for_other, 2);
	same_verdict(r, VARVE_EPEER, "rank 2 for 1");
	CASE(waits_alone, 1);
	same_verdict(r, VARVE_EPEER, "rank 1 called varve_wait");
	CASE(damaged, 2);
	same_verdict(r, VARVE_EDAMAGED, "");
	MUST(strstr(r->message[0], "rank 2: ") && strstr(r->message[3], "rank 2: ") && !strstr(r->message[2], "rank 2: "));
	CASE(other_options, 2);
	same_verdict(r, VARVE_EPEER, "rank 2 have different options");
	CASE(bad_options, 1);
	same_verdict(r, VARVE_EINVAL, "banana");
	CASE(skips, 2);
	r->odd = 0; /* who gives up first says why, and breaks the group for the rest */
	for (uint32_t k = 0; k < RANKS; k++)
		r->odd += strstr(r->message[k], "timeout") && strstr(r->message[k], "for rank 2");
	MUST(r->odd);
	same_verdict(r, VARVE_EPEER, "");
	CASE(unequal, 0);
	if (!split) {
		threadcomm_run(2, fewer, r);
		CASE(unequal, 0);
		alone(r);
	}
	free(r);
}

/* However often it is passed on, it is told in the name of the rank that had it. */
static void test_quote(void)
{
	static const char *const said[] = { "no space", "rank 2: no space", "rank 0: rank 2: no space", "rank 2 of 4 waited: long", "" };
	static const char *const by_1[] = { "rank 1: no space", "rank 2: no space", "rank 2: no space", "rank 1: rank 2 of 4 waited: long",
					    "rank 1: " };
	static const char *const at_2[] = { "rank 1: no space", "no space", "no space", "rank 1: rank 2 of 4 waited: long", "rank 1: " };

	for (uint32_t me = 0; me < 4; me += 2)
		for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
			struct vv_group g = { .rank = me, .size = 4 };
			struct vv_err_state e = { .code = i == 4 ? 7 : VV_ENOSPC };

			memset(e.message, 'x', sizeof(e.message));
			memcpy(e.message, said[i], strlen(said[i]) + 1);
			MUST(vv_group_adopt_error(&g, 1, &e) == (i == 4 ? VV_EPEER : VV_ENOSPC));
			MUST(strcmp(varve_last_error(), (me == 2 ? at_2 : by_1)[i]) == 0);
		}
}

int main(void)
{
	must_begin("words that are passed on");
	test_quote();
	all("sync", false, false);
	all("async", false, false);
	all("async", true, false);
	all("async", true, true);
	all("async", false, true);
	all("sync", false, true);
	return 0;
}
