// ctest: TIMEOUT 240 COST 20 MODES
/* Tiers: random histories over three stores against a model. Sessions end well or are killed at a point of a copy; stores are lost or
 * damaged between them. A restart finds the newest epoch that any store has intact, byte for byte. */
#include "base/pool.h"
#include "base/test_point.h"
#include "engine/lineage/catalog.h"
#include "engine/upkeep/verify.h"
#include "support/must.h"
#include "support/place.h"
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PAGE = 4096, PAGES = 24, EPOCHS = 400, STORES = 3, ROUNDS = 14 };

/* Shared with the children. */
static uint8_t *model; /* [EPOCHS][PAGES * PAGE] */
static struct noted {
	bool is[EPOCHS];
	uint64_t last;
	bool storing;    /* number 0 is the state of an epoch that is not noted yet */
	uint64_t before; /* newest epoch of the nearest store before that */
} *noted;
static char url[STORES][PLACE_MAX];
static uint64_t seed;

static uint64_t roll(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

static uint8_t *state(uint64_t epoch)
{
	return model + epoch * PAGES * PAGE;
}

static bool is_state(uint64_t epoch, const uint8_t *p)
{
	return noted->is[epoch] && memcmp(p, state(epoch), PAGES * PAGE) == 0;
}

static void note(uint64_t epoch, const uint8_t *p)
{
	memcpy(state(epoch), p, PAGES * PAGE);
	noted->is[epoch] = true;
	noted->last = epoch;
	noted->storing = false;
}

/* ---- the stores, by code that knows nothing of tiers --------------------------------------------------------------------------- */

static void ignore(void *arg, const char *problem)
{
	(void)arg;
	(void)problem;
}

static bool is_intact(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_verify_report report = { 0 };
	struct vv_pool *pool = NULL;
	int rc;

	MUST(vv_pool_new(0, &pool) == 0);
	rc = vv_verify_run(lin, pool, epoch, false, ignore, NULL, NULL, &report);
	vv_affected_epochs_fini(&report.affected);
	vv_pool_free(pool);
	return rc == 0 && report.problems == 0;
}

/* The newest epoch of a store, or the newest intact one; 0: none. */
static uint64_t newest_in(const char *store, bool intact, size_t *count)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_listing l = { 0 };
	struct vv_lineage lin;
	uint64_t newest = 0;

	if (vv_store_open(store, &opt, &s) == 0 && vv_catalog_open(s, "job", false, &lin) == 0) {
		MUST(vv_catalog_list(&lin, 0, &l) == 0);
		for (size_t i = 0; i < l.n_epochs; i++)
			if (!intact || is_intact(&lin, l.epoch[i]))
				newest = l.epoch[i];
	}
	if (count)
		*count = l.n_epochs;
	vv_catalog_listing_fini(&l);
	vv_store_close(s);
	return newest;
}

static uint64_t newest_of_all(bool intact)
{
	uint64_t newest = 0;

	for (int i = 0; i < STORES; i++) {
		uint64_t here = newest_in(url[i], intact, NULL);

		newest = here > newest ? here : newest;
	}
	return newest;
}

/* ---- a session ----------------------------------------------------------------------------------------------------------------- */

struct life {
	char options[1200];
	int epochs;
	const char *point; /* it is killed there; NULL: it ends well */
	int passes;        /* of the point before that */
	bool damaged;      /* a store */
};

static const char *killing;
static int left;

static void kill_there(const char *name)
{
	if (killing && strcmp(name, killing) == 0 && left-- <= 0)
		raise(SIGKILL);
}

static void invent(uint8_t *p)
{
	for (uint64_t n = roll(6); n-- > 0;) {
		uint8_t *page = p + roll(PAGES) * PAGE;
		uint64_t word = roll(1u << 30) * 7919 + 1;

		for (size_t i = 0; i < PAGE; i += 8, word = word * 6364136223846793005u + 1)
			memcpy(page + i, &word, 8);
	}
}

static void live(const struct life *l, uint64_t want)
{
	varve *v = NULL;
	uint8_t *p;
	int rc;

	killing = l->point;
	left = l->passes;
	vv_test_point_hook = kill_there;
	MUST(varve_open(url[0], "job", l->options, &v) == 0);
	p = varve_alloc(v, "p", PAGES * PAGE);
	memset(p, 0xee, PAGES * PAGE);
	rc = varve_restart(v, VARVE_LATEST);
	/* verify reads more than a restart; all may be damaged */
	MUST(rc == (want ? 1 : 0) || (l->damaged && (rc == 1 || rc == VARVE_EDAMAGED)));
	if (rc == 1) {
		MUST(l->damaged ? varve_epoch(v) >= want : varve_epoch(v) == want);
		MUST(is_state(varve_epoch(v), p));
		note(varve_epoch(v), p);
	} else {
		memset(p, 0, PAGES * PAGE);
		noted->last = 0;
	}
	for (int i = 0; i < l->epochs; i++) {
		invent(p);
		memcpy(state(0), p, PAGES * PAGE);
		noted->before = newest_in(url[0], false, NULL);
		noted->storing = true;
		MUST(varve_checkpoint(v) == 0);
		kill_there("committed");
		MUST(varve_epoch(v) < EPOCHS);
		note(varve_epoch(v), p);
	}
	MUST(varve_wait(v, varve_epoch(v)) >= 0);
	MUST(varve_close(v) == 0);
}

/* A session that was killed may have committed an epoch that it did not note. */
static void note_unnoted(void)
{
	uint64_t epoch = newest_in(url[0], false, NULL);

	if (noted->storing && epoch > noted->before && epoch > noted->last)
		note(epoch, state(0));
	noted->storing = false;
}

/* In a process of its own, which may be killed. */
static void run(const struct life *l, uint64_t want)
{
	int status = 0;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		live(l, want);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	MUST(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : l->point && WTERMSIG(status) == SIGKILL);
	note_unnoted();
}

/* ---- what happens between sessions --------------------------------------------------------------------------------------------- */

/* A byte of the payload of the newest epoch's layer. */
static void damage(int i)
{
	uint64_t epoch = newest_in(url[i], false, NULL);
	char path[PLACE_MAX + 64];
	uint8_t *bytes;
	size_t n;

	snprintf(path, sizeof(path), "%s/job/%08" PRIu64 "/%010" PRIu64 ".r0.layer", url[i], epoch / 100, epoch);
	if (!epoch || access(path, F_OK) < 0)
		return;
	bytes = place_read(path, &n);
	bytes[64 + roll(n - 128)] ^= 0x40;
	place_write(path, bytes, n);
	free(bytes);
}

static const char *const points[] = { "tier-begun", "copied", "tier-copied", "tier-gc", "tier-kept", "committed" };

/* After a good end each tier has the newest epoch that was due. After a copy it has no more than it keeps: a session that is killed between
 * copy and removal leaves the removal to the next copy. */
static void check_tiers(const uint64_t every[STORES], const uint64_t keep[STORES], const uint64_t before[STORES], const bool damaged[STORES])
{
	uint64_t newest = newest_in(url[0], false, NULL);

	for (int i = 1; i < STORES; i++) {
		size_t count = 0;
		uint64_t here = newest_in(url[i], false, &count);

		if (damaged[0] || damaged[i])
			continue;
		MUST(here / every[i] == newest / every[i]);
		MUST(newest_in(url[i], true, NULL) == here);
		MUST(!keep[i] || here == before[i] || count <= keep[i]);
	}
}

static void history(uint64_t number)
{
	uint64_t every[STORES] = { 0 }, keep[STORES] = { 0 }, before[STORES] = { 0 };
	bool damaged[STORES] = { false };
	struct life l;

	seed = number;
	must_begin("history %" PRIu64, number);
	memset(model, 0, (size_t)EPOCHS * PAGES * PAGE);
	memset(noted, 0, sizeof(*noted));
	for (int i = 0; i < STORES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "h%" PRIu64 "-%d", number, i);
		place_path(url[i], name);
		every[i] = 1 + roll(4);
		keep[i] = roll(4);
	}
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t lost = round ? roll(9) : 8;
		char *o = l.options;

		if (lost < 3) {
			place_remove(url[lost]);
			damaged[lost] = false;
		} else if (lost < 6) {
			damage((int)lost - 3);
			damaged[lost - 3] = true;
		}
		o += sprintf(o, "log=error,keep=%d,tiers=\"", (int)roll(3));
		for (int i = 1; i < STORES; i++)
			o += sprintf(o, "%s every=%" PRIu64 " keep=%" PRIu64 "; ", url[i], every[i], keep[i]);
		sprintf(o, "\"");
		l.epochs = 1 + (int)roll(7);
		l.point = roll(2) ? points[roll(6)] : NULL;
		l.passes = (int)roll(4);
		l.damaged = damaged[0] || damaged[1] || damaged[2];
		must_begin("history %" PRIu64 ", round %d, lost %d, killed at %s, %s", number, round, (int)lost, l.point ? l.point : "-", l.options);
		for (int i = 0; i < STORES; i++)
			before[i] = newest_in(url[i], false, NULL);
		run(&l, newest_of_all(true));
		if (!l.point && lost >= 6)
			check_tiers(every, keep, before, damaged);
		seed += (uint64_t)round;
	}
	for (int i = 0; i < STORES; i++)
		place_remove(url[i]);
}

static void *share(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

int main(void)
{
	model = share((size_t)EPOCHS * PAGES * PAGE);
	noted = share(sizeof(*noted));
	for (uint64_t i = 1; i <= 50; i++)
		history(i);
	return 0;
}
