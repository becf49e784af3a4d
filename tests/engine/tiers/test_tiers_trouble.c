// ctest: TIMEOUT 120 COST 3 MODES
/* Tiers that are misnamed, unreachable, slow, or have another lineage; what a session refuses, what it goes on with, and what a restart
 * says. */
#include "support/must.h"
#include "support/place.h"
#include <inttypes.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { BYTES = 1 << 20 };

static char near_by[PLACE_MAX], far[PLACE_MAX], middle[PLACE_MAX], options[4096];

/* ---- the option ---------------------------------------------------------------------------------------------------------------- */

static void refuse(const char *tiers, const char *words)
{
	varve *v = NULL;

	must_begin("tiers=%s", tiers);
	snprintf(options, sizeof(options), "log=error,tiers='%s'", tiers);
	CHECK_EQ(varve_open(near_by, "job", options, &v), VARVE_EINVAL);
	MUST(v == NULL);
	MUST(strstr(varve_last_error(), words));
	MUST(access(far, F_OK) < 0); /* nothing was made */
}

static void test_option(void)
{
	char text[2 * PLACE_MAX];

	refuse("/a every=0", "every = '0' is not a whole number from 1");
	refuse("/a every=ten", "'/a': every");
	refuse("/a; /b keep=-1", "'/b': keep");
	refuse("/a bandwidth=fast", "bandwidth");
	refuse("/a often=3", "unknown setting 'often' (every, mtbf, keep, bandwidth, last)");
	refuse("/a last=maybe", "last");
	refuse("/a every", "'every' is not of the form name=value");
	refuse("/a /b", "'/b' is not of the form name=value");
	refuse("/a every=2 mtbf=1h", "every and mtbf: one of them");
	refuse("/a; /b; dir:/a", "named twice");
	refuse("/1;/2;/3;/4;/5;/6;/7;/8;/9;/10;/11;/12;/13;/14;/15;/16;/17", "more than 16");
	refuse("dir:", "tiers: ");
	refuse("ram:a/b", "tiers: store 'ram:a/b': behind ram:");
	refuse("http://host/a", "tiers: store 'http://host/a': unknown kind");
	snprintf(text, sizeof(text), "%s every=2", near_by);
	refuse(text, "is the store of the session itself");
}

/* ---- sessions ------------------------------------------------------------------------------------------------------------------ */

struct session {
	varve *v;
	uint8_t *p;
};

static int enter(struct session *s, const char *words)
{
	int rc;

	snprintf(options, sizeof(options), "log=error,%s", words);
	*s = (struct session){ 0 };
	rc = varve_open(near_by, "job", options, &s->v);
	s->p = rc == 0 ? varve_alloc(s->v, "p", BYTES) : NULL;
	MUST(rc || s->p);
	return rc;
}

/* All bytes of an epoch depend on its number, and do not compress. */
static void fill(uint8_t *p, uint64_t epoch)
{
	uint64_t word = epoch * 7919 + 1;

	for (size_t i = 0; i < BYTES; i += 8, word = word * 6364136223846793005u + 1442695040888963407u)
		memcpy(p + i, &word, 8);
}

static void write_epochs(struct session *s, int n)
{
	while (n-- > 0) {
		fill(s->p, varve_epoch(s->v) + 1);
		MUST(varve_checkpoint(s->v) == 0);
		MUST(varve_wait(s->v, varve_epoch(s->v)) >= 0);
	}
}

static void leave(struct session *s)
{
	MUST(varve_close(s->v) == 0);
}

static void expect(struct session *s, uint64_t asked, uint64_t want)
{
	static uint8_t right[BYTES];

	memset(s->p, 0xee, BYTES);
	MUST(varve_restart(s->v, asked) == 1);
	CHECK_EQ(varve_epoch(s->v), want);
	fill(right, want);
	MUST(memcmp(s->p, right, BYTES) == 0);
}

static bool has(const char *store, int epoch)
{
	char path[PLACE_MAX + 64];

	snprintf(path, sizeof(path), "%s/job/00000000/%010d.commit", store, epoch);
	return access(path, F_OK) == 0;
}

static void clear(void)
{
	place_remove(near_by);
	place_remove(middle);
	place_remove(far);
}

/* ---- a tier that cannot be reached ---------------------------------------------------------------------------------------------- */

/* A file is where its folder should be. */
static void block(const char *path)
{
	place_write(path, "x", 1);
}

static void test_unreachable(void)
{
	char tiers[4 * PLACE_MAX];
	struct session s;

	must_begin("unreachable");
	clear();
	snprintf(tiers, sizeof(tiers), "tiers='%s; %s every=2'", middle, far);
	block(far);
	/* it may have the lineage */
	CHECK(enter(&s, tiers) < 0);
	MUST(strstr(varve_last_error(), far) && strstr(varve_last_error(), "cannot be reached"));
	MUST(!has(near_by, 1));
	place_remove(far);
	CHECK_EQ(enter(&s, tiers), 0);
	write_epochs(&s, 3);
	leave(&s);
	MUST(has(middle, 3));
	/* a session goes on without it, but not from an epoch that may not be the newest */
	place_remove(far);
	block(far);
	CHECK_EQ(enter(&s, tiers), 0);
	CHECK_EQ(varve_restart(s.v, VARVE_LATEST), VARVE_EIO);
	MUST(strstr(varve_last_error(), "may have a newer epoch"));
	expect(&s, 3, 3);
	write_epochs(&s, 2);
	expect(&s, VARVE_LATEST, 5); /* which this session has written */
	leave(&s);
	MUST(has(middle, 5));
	/* once it answers, it gets what is due */
	place_remove(far);
	CHECK_EQ(enter(&s, tiers), 0);
	expect(&s, VARVE_LATEST, 5);
	leave(&s);
	MUST(has(far, 4));
}

/* The nearest store is lost, the tier that has the newest epoch is unreachable: an error, and nothing older. */
static void test_lost_and_unreachable(void)
{
	char tiers[4 * PLACE_MAX], aside[PLACE_MAX + 8];
	struct session s;

	must_begin("lost and unreachable");
	clear();
	snprintf(tiers, sizeof(tiers), "tiers='%s every=4 last=no; %s'", middle, far);
	snprintf(aside, sizeof(aside), "%s.aside", far);
	CHECK_EQ(enter(&s, tiers), 0);
	write_epochs(&s, 6);
	leave(&s);
	MUST(has(middle, 4) && !has(middle, 6) && has(far, 6));
	place_remove(near_by);
	CHECK(rename(far, aside) == 0);
	block(far);
	CHECK(enter(&s, tiers) < 0);
	MUST(strstr(varve_last_error(), far));
	MUST(unlink(far) == 0 && rename(aside, far) == 0);
	CHECK_EQ(enter(&s, tiers), 0);
	expect(&s, VARVE_LATEST, 6);
	MUST(has(near_by, 6));
	write_epochs(&s, 1);
	CHECK_EQ(varve_epoch(s.v), 7);
	expect(&s, 4, 4); /* by its number, from the tier that has it */
	leave(&s);
	/* the nearest is stale: another run has gone on elsewhere */
	CHECK(rename(near_by, aside) == 0);
	CHECK_EQ(enter(&s, tiers), 0);
	expect(&s, VARVE_LATEST, 7);
	write_epochs(&s, 2);
	leave(&s);
	place_remove(near_by);
	CHECK(rename(aside, near_by) == 0);
	CHECK_EQ(enter(&s, tiers), 0);
	expect(&s, VARVE_LATEST, 9);
	write_epochs(&s, 1);
	CHECK_EQ(varve_epoch(s.v), 10);
	leave(&s);
	MUST(has(far, 10));
}

/* ---- others -------------------------------------------------------------------------------------------------------------------- */

static void test_other_lineage(void)
{
	char tiers[2 * PLACE_MAX];
	struct session s;

	must_begin("another lineage");
	clear();
	snprintf(tiers, sizeof(tiers), "tiers='%s'", far);
	CHECK_EQ(enter(&s, "keep=0"), 0);
	write_epochs(&s, 1);
	leave(&s);
	CHECK(rename(near_by, far) == 0);
	CHECK_EQ(enter(&s, "keep=0"), 0);
	write_epochs(&s, 1);
	leave(&s);
	CHECK_EQ(enter(&s, tiers), VARVE_EMISMATCH);
	MUST(strstr(varve_last_error(), far) && strstr(varve_last_error(), near_by));
}

/* One folder by two paths. */
static void test_same_store(void)
{
	char tiers[4 * PLACE_MAX], other[PLACE_MAX + 8];
	struct session s;

	must_begin("the same store by another path");
	clear();
	CHECK_EQ(enter(&s, "keep=0"), 0);
	write_epochs(&s, 1);
	leave(&s);
	snprintf(tiers, sizeof(tiers), "tiers='%s/ keep=1'", near_by);
	CHECK_EQ(enter(&s, tiers), VARVE_EINVAL);
	MUST(strstr(varve_last_error(), "is the store of the session itself"));
	snprintf(other, sizeof(other), "%s.link", near_by);
	CHECK_EQ(symlink(near_by, other), 0);
	snprintf(tiers, sizeof(tiers), "tiers='%s'", other);
	CHECK_EQ(enter(&s, tiers), VARVE_EINVAL);
	MUST(strstr(varve_last_error(), "is the store of the session itself") && strstr(varve_last_error(), other));
	MUST(unlink(other) == 0 && mkdir(far, 0700) == 0 && symlink(far, other) == 0);
	snprintf(tiers, sizeof(tiers), "tiers='%s; %s'", far, other);
	CHECK_EQ(enter(&s, tiers), VARVE_EINVAL);
	MUST(strstr(varve_last_error(), "are one store"));
	CHECK_EQ(unlink(other), 0);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Its copy would take minutes: varve_close waits as long as it may, and the next session completes it. The epoch stays until then. */
static void test_slow(void)
{
	char tiers[2 * PLACE_MAX];
	struct session s;
	double begun;

	must_begin("slow");
	clear();
	snprintf(tiers, sizeof(tiers), "keep=1,timeout=500ms,tiers='%s every=2 bandwidth=32K'", far);
	CHECK_EQ(enter(&s, tiers), 0);
	write_epochs(&s, 5);
	begun = now();
	leave(&s);
	CHECK(now() - begun < 50);
	MUST(!has(far, 2) && !has(far, 4));
	MUST(has(near_by, 4) && has(near_by, 5) && !has(near_by, 3));
	snprintf(tiers, sizeof(tiers), "keep=1,tiers='%s every=2'", far);
	CHECK_EQ(enter(&s, tiers), 0);
	leave(&s);
	MUST(has(far, 4));
	CHECK_EQ(enter(&s, tiers), 0);
	write_epochs(&s, 1);
	leave(&s);
	MUST(has(far, 6) && !has(near_by, 4));
}

/* The last epoch of a session is due when the session closes, whatever its number. */
static void test_last(void)
{
	char tiers[4 * PLACE_MAX];
	struct session s;

	must_begin("the last epoch");
	clear();
	snprintf(tiers, sizeof(tiers), "keep=1,tiers='%s every=10 keep=2; %s mtbf=1000d'", middle, far);
	CHECK_EQ(enter(&s, tiers), 0);
	write_epochs(&s, 3);
	MUST(!has(middle, 3) && !has(far, 3));
	leave(&s);
	MUST(has(middle, 3) && has(far, 3) && !has(middle, 2));
	/* a session without a checkpoint has none */
	place_remove(middle);
	CHECK_EQ(enter(&s, tiers), 0);
	leave(&s);
	MUST(!has(middle, 3));
	/* it may take the place of one that is due by its number */
	CHECK_EQ(enter(&s, tiers), 0);
	write_epochs(&s, 9);
	leave(&s);
	MUST(has(middle, 12) && !has(middle, 11) && has(far, 12));
	place_remove(near_by);
	CHECK_EQ(enter(&s, tiers), 0);
	expect(&s, VARVE_LATEST, 12);
	leave(&s);
	/* not where it is not wanted */
	snprintf(tiers, sizeof(tiers), "tiers='%s every=10 last=no; %s last=yes'", middle, far);
	CHECK_EQ(enter(&s, tiers), 0);
	write_epochs(&s, 1);
	leave(&s);
	MUST(!has(middle, 13) && has(far, 13));
}

/* By Daly's interval: the first epoch at once, and no other while a copy costs little against a day. */
static void test_mtbf(void)
{
	char tiers[2 * PLACE_MAX];
	struct session s;

	must_begin("mtbf");
	clear();
	snprintf(tiers, sizeof(tiers), "tiers='%s mtbf=1000d last=no'", far);
	CHECK_EQ(enter(&s, tiers), 0);
	write_epochs(&s, 1);
	while (!has(far, 1))
		must_nap(10);
	must_nap(50);
	write_epochs(&s, 3);
	leave(&s);
	MUST(has(far, 1) && !has(far, 2) && !has(far, 3) && !has(far, 4));
}

/* A child of fork that closes the session leaves the copies to its parent. */
static void test_fork(void)
{
	char tiers[2 * PLACE_MAX];
	struct session s;
	int status = 0;
	pid_t pid;

	must_begin("fork");
	clear();
	snprintf(tiers, sizeof(tiers), "tiers='%s bandwidth=1M'", far);
	CHECK_EQ(enter(&s, tiers), 0);
	write_epochs(&s, 1);
	pid = fork();
	if (pid == 0) {
		varve_close(s.v);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	leave(&s);
	MUST(has(far, 1));
}

int main(void)
{
	place_path(near_by, "near");
	place_path(middle, "middle");
	place_path(far, "far");
	test_option();
	test_unreachable();
	test_lost_and_unreachable();
	test_other_lineage();
	test_same_store();
	test_slow();
	test_last();
	test_mtbf();
	test_fork();
	return 0;
}
