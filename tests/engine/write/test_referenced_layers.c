// ctest: TIMEOUT 120 MODES COST 2
/* Somebody removes files under a session that runs: layers that the next epoch would refer to, the lineage, the store. No epoch is called durable that cannot be
 * restored; where the lineage is still there, the session is whole again with the checkpoint after. */
#include "support/coded.h"
#include "support/must.h"
#include "support/place.h"
#include "support/settle.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <inttypes.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>
#include <varve/varve.h>
#include <varve/varve_comm.h>

enum { PAGE = 4096, PAGES = 64, SIZE = PAGES * PAGE, FINE = 64 << 10, RANKS = 3 };

#define OK(call) MUST((call) >= 0)

static char store[PLACE_MAX];

static void layer_path(char out[PLACE_MAX + 64], const char *lineage, unsigned epoch, unsigned rank)
{
	snprintf(out, PLACE_MAX + 64, "%s/%s/00000000/%010u.r%u.layer", store, lineage, epoch, rank);
}

static bool is_there(const char *name)
{
	char path[PLACE_MAX + 128];

	snprintf(path, sizeof(path), "%s/%s", store, name);
	return access(path, F_OK) == 0;
}

static void lose_layer(unsigned epoch, unsigned rank, bool cut)
{
	char path[PLACE_MAX + 64];
	struct stat st;

	layer_path(path, "L", epoch, rank);
	MUST(stat(path, &st) == 0);
	MUST(cut ? truncate(path, st.st_size - 1) == 0 : unlink(path) == 0);
}

/* Every page is another one. */
static void fill(uint8_t *p, size_t n, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)x;
	}
}

struct program {
	varve *v;
	uint8_t *p, *fine;
	uint8_t p_was[SIZE], fine_was[FINE];
	unsigned n;
};

static void begin(struct program *g, const char *options)
{
	OK(varve_open(store, "L", options, &g->v));
	g->p = varve_alloc(g->v, "p", SIZE);
	g->fine = varve_alloc(g->v, "fine", FINE);
	MUST(g->p && g->fine);
	OK(varve_refine(g->v, "fine", NULL, 128));
}

/* Writes a little and takes a checkpoint. */
static int step(struct program *g)
{
	g->n++;
	fill(g->p + g->n % PAGES * PAGE, PAGE, g->n);
	g->fine[g->n * 977 % FINE]++;
	memcpy(g->p_was, g->p, SIZE);
	memcpy(g->fine_was, g->fine, FINE);
	return settle_checkpoint(g->v);
}

static void same(struct program *g)
{
	MUST(memcmp(g->p, g->p_was, SIZE) == 0 && memcmp(g->fine, g->fine_was, FINE) == 0);
}

/* The newest epoch holds the state of the last step: as this session has it, and a new one. */
static void is_restored(struct program *g, const char *options)
{
	memset(g->p, 1, SIZE);
	memset(g->fine, 1, FINE);
	MUST(varve_restart(g->v, VARVE_LATEST) == 1);
	same(g);
	OK(step(g));
	OK(varve_close(g->v));
	begin(g, options);
	MUST(varve_restart(g->v, VARVE_LATEST) == 1);
	same(g);
}

static void start(struct program *g, const char *options)
{
	place_remove(store);
	*g = (struct program){ 0 };
	begin(g, options);
	fill(g->p, SIZE, 1000);
	fill(g->fine, FINE, 1001);
	for (int i = 0; i < 4; i++)
		OK(step(g));
}

static void layer_gone(const char *options, unsigned epoch, bool cut, bool restarted)
{
	char name[64];
	struct program g;

	must_begin("%s: layer %u is %s, %s", options, epoch, cut ? "cut" : "removed", restarted ? "restarted" : "going on");
	start(&g, options);
	if (restarted) {
		OK(varve_close(g.v));
		begin(&g, options);
		MUST(varve_restart(g.v, VARVE_LATEST) == 1);
	}
	lose_layer(epoch, 0, cut);
	MUST(step(&g) == VARVE_EDAMAGED);
	snprintf(name, sizeof(name), "'L/00000000/%010u.r0.layer'", epoch);
	MUST(strstr(varve_last_error(), name) && strstr(varve_last_error(), cut ? "cut short" : "removed"));
	MUST(!is_there("L/00000000/0000000005.commit"));
	OK(step(&g));
	OK(step(&g));
	is_restored(&g, options);
	OK(varve_close(g.v));
}

/* What nobody refers to may go. */
static void layer_not_needed(const char *options)
{
	struct program g;

	must_begin("%s: a layer that nothing needs", options);
	start(&g, options);
	fill(g.p, SIZE, 2000);
	memset(g.fine, 0, FINE);
	for (int i = 0; i < 300; i++) /* a keyframe comes in between */
		OK(step(&g));
	fill(g.p, SIZE, 3000);
	for (int i = 0; i < 300; i++)
		OK(step(&g));
	lose_layer(1, 0, false);
	lose_layer(2, 0, false);
	OK(step(&g));
	is_restored(&g, options);
	OK(varve_close(g.v));
}

/* gc removes and replaces layers: that is no loss. */
static void reclaimed(const char *options)
{
	struct program g;

	must_begin("%s: gc", options);
	start(&g, options);
	for (int i = 0; i < 200; i++) {
		if (i % 20 == 0)
			fill(g.p, SIZE / (i == 100 ? 1 : 2), (uint64_t)i + 5000);
		if (i == 100)
			fill(g.fine, FINE, 9000);
		OK(step(&g));
		settle_idle(g.v);
	}
	MUST(!is_there("L/00000000/0000000001.r0.layer"));
	is_restored(&g, options);
	OK(varve_close(g.v));
}

/* ---- the lineage, or the store ------------------------------------------------------------------------------------------------- */

static void refuses(struct program *g, int code)
{
	for (int i = 0; i < 3; i++) {
		MUST(step(g) == code);
		MUST(strstr(varve_last_error(), "/L/lock'"));
	}
}

static void lineage_gone(const char *options, bool all)
{
	char path[PLACE_MAX + 64];
	struct program g;

	must_begin("%s: the %s is removed", options, all ? "store" : "lineage");
	start(&g, options);
	snprintf(path, sizeof(path), "%s/L", store);
	place_remove(all ? store : path);
	if (all)
		place_make_dir(store);
	refuses(&g, VARVE_ENOENT);
	MUST(!is_there("L"));
	OK(varve_close(g.v));
}

/* A purge takes the lock, which is among the oldest files: it is there again, and keeps others out. */
static void lock_gone(const char *options)
{
	char path[PLACE_MAX + 64];
	varve *other = NULL;
	struct program g;

	must_begin("%s: the lock is removed", options);
	start(&g, options);
	snprintf(path, sizeof(path), "%s/L/lock", store);
	for (int i = 0; i < 2; i++) {
		MUST(unlink(path) == 0);
		OK(step(&g));
		MUST(is_there("L/lock"));
		MUST(varve_open(store, "L", options, &other) < 0 || (varve_checkpoint(other) == VARVE_EBUSY && varve_close(other) <= 0));
	}
	is_restored(&g, options);
	OK(varve_close(g.v));
}

/* Another session begins where the store was: this one leaves it alone, and goes on when its own is back. */
static void moved_away(const char *options)
{
	char aside[PLACE_MAX];
	struct program g, other = { 0 };

	must_begin("%s: the store is moved away", options);
	place_path(aside, "aside");
	place_remove(aside);
	start(&g, options);
	MUST(rename(store, aside) == 0);
	refuses(&g, VARVE_ENOENT);
	begin(&other, options);
	for (int i = 0; i < 9; i++)
		OK(step(&other));
	refuses(&g, VARVE_EBUSY);
	is_restored(&other, options);
	OK(varve_close(other.v));
	place_remove(store);
	MUST(rename(aside, store) == 0);
	OK(step(&g));
	is_restored(&g, options);
	OK(varve_close(g.v));
}

/* ---- many ranks ------------------------------------------------------------------------------------------------------------------- */

static uint8_t same_pages[8 * PAGE];

static int together(varve *v, uint8_t *p, uint32_t rank, uint64_t seed)
{
	int rc;

	fill(p + seed % 8 * PAGE + 16 * PAGE, PAGE, seed); /* the same on all ranks */
	fill(p + (24 + seed % 8) * PAGE, PAGE, seed * 100 + rank);
	rc = varve_checkpoint(v);
	return rc ? rc : varve_wait(v, varve_epoch(v));
}

static void rank(const struct varve_comm *comm, void *arg)
{
	uint8_t *p, was[SIZE];
	varve *v = NULL;

	OK(varve_open_comm(comm, store, "L", arg, &v));
	p = varve_alloc(v, "p", SIZE);
	fill(p, SIZE, comm->rank);
	memcpy(p, same_pages, sizeof(same_pages));
	for (uint64_t i = 1; i <= 3; i++)
		OK(together(v, p, comm->rank, i));
	if (comm->rank == 1)
		lose_layer(1, 1, false);
	MUST(together(v, p, comm->rank, 4) == VARVE_EDAMAGED);
	MUST(strstr(varve_last_error(), ".r1.layer'"));
	OK(together(v, p, comm->rank, 5));
	OK(together(v, p, comm->rank, 6));
	memcpy(was, p, SIZE);
	memset(p, 1, SIZE);
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(memcmp(p, was, SIZE) == 0);
	OK(varve_close(v));
}

int main(void)
{
	place_path(store, "store");
	for (int k = 0; k < 8; k++)
		layer_gone("keep=0", k & 4 ? 4 : 1, k & 1, k & 2);
	layer_gone("keep=0 tracker=digest " CODED, 1, false, false);
	layer_not_needed("keep=0");
	reclaimed("keep=3 gc=auto");
	lineage_gone("keep=0", false);
	lineage_gone("keep=0", true);
	lock_gone("keep=0");
	moved_away("keep=0");
	fill(same_pages, sizeof(same_pages), 77);
	for (int k = 0; k < 2; k++) {
		char options[64];

		snprintf(options, sizeof(options), "keep=0 timeout=60 collective=%s", k ? "none" : "exact");
		must_begin("ranks, %s", options);
		place_remove(store);
		threadcomm_run(RANKS, rank, options);
	}
	return 0;
}
