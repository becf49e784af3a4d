// ctest: TIMEOUT 300 PROCESSORS 2 COST 16
/* Sessions of several ranks over a network that damages one message, each in turn: a checkpoint or a restart then fails, at once and not by waiting, or it succeeds
 * and is exact (a number that is not the smallest may be changed without a difference). Nothing wrong is ever stored, and the next session finds what counted before. */
#include "codec/codec.h"
#include "support/damage.h"
#include "support/hosts.h"

enum { LAST = 2 };

struct trial {
	struct damage d;
	struct hosts *r;
	int stored[RANKS_MAX]; /* the last epoch that is known to count */
	int failed;
};

/* A rank that fails says so as one that was told: nobody has waited in vain. */
static bool is_well(struct trial *t, int rc)
{
	if (rc >= 0)
		return true;
	t->failed++;
	MUST(!t->d.first);
	MUST(rc == VARVE_EPEER || rc == VARVE_EDAMAGED);
	MUST(!strstr(varve_last_error(), "waited"));
	return false;
}

static varve *open_damaged(struct trial *t, const struct varve_comm *comm)
{
	struct varve_comm mine = damage_plug(&t->d, comm);
	char store[PLACE_MAX + 16];
	varve *v = NULL;

	hosts_place(t->r, comm->rank, store);
	is_well(t, varve_open_comm(&mine, store, "job", t->r->options, &v));
	return v;
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------------------------ */

static void lay_down(const struct varve_comm *comm, void *arg)
{
	struct trial *t = arg;
	varve *v = open_damaged(t, comm);
	uint8_t *p = v ? varve_alloc(v, "p", (size_t)PAGES * PAGE) : NULL;
	int rc = 0;

	for (int e = 1; p && rc == 0 && e <= LAST; e++) {
		hosts_set(t->r, e, comm->rank, p);
		rc = varve_checkpoint(v);
		if (rc == 0)
			rc = varve_wait(v, (uint64_t)e);
		if (is_well(t, rc))
			t->stored[comm->rank] = e;
	}
	if (v)
		is_well(t, varve_close(v));
}

/* What counted for one rank counts, and is what it was; it may be that an epoch more does. */
static void look_back(const struct varve_comm *comm, void *arg)
{
	struct trial *t = arg;
	varve *v = hosts_open(t->r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);
	int rc = varve_restart(v, VARVE_LATEST), e = (int)varve_epoch(v);

	MUST(rc >= 0 && e <= LAST);
	for (uint32_t k = 0; k < comm->size; k++)
		MUST(e >= t->stored[k]);
	if (e)
		hosts_check(t->r, e, comm->rank, p);
	OK(varve_close(v));
}

static void test_checkpoints(uint32_t ranks, uint32_t per_place, const char *options, bool any_thread)
{
	static struct trial t;
	int failed = 0;

	t.r = hosts_new(ranks, 7, options);
	t.r->per_place = per_place;
	t.r->any_thread = any_thread;
	damage_begin(&t.d, ranks);
	while (damage_next(&t.d)) {
		must_begin("%u ranks, %u in a place, %s: %s", ranks, per_place, options, t.d.words);
		place_remove(t.r->store);
		place_make_dir(t.r->store);
		memset(t.stored, 0, sizeof(t.stored));
		t.failed = 0;
		threadcomm_run(ranks, lay_down, &t);
		threadcomm_run(ranks, look_back, &t);
		failed += t.failed != 0;
	}
	MUST(failed > 20);
	hosts_end(t.r);
}

/* ---- restarts --------------------------------------------------------------------------------------------------------------------- */

static void go_back(const struct varve_comm *comm, void *arg)
{
	struct trial *t = arg;
	varve *v = open_damaged(t, comm);
	uint8_t *p = v ? varve_alloc(v, "p", (size_t)PAGES * PAGE) : NULL;

	if (p && is_well(t, varve_restart(v, VARVE_LATEST))) {
		MUST(varve_epoch(v) == LAST);
		hosts_check(t->r, LAST, comm->rank, p);
	}
	if (v)
		is_well(t, varve_close(v));
}

/* Each rank runs where another one did: with places of their own most bytes come over the network. */
static void test_restarts(uint32_t ranks, uint32_t per_place, const char *options)
{
	static struct trial t;
	int failed = 0;

	t.r = hosts_new(ranks, 8, options);
	t.r->per_place = per_place;
	hosts_go(t.r, 0, 1, LAST);
	t.r->turn = 1;
	damage_begin(&t.d, ranks);
	while (damage_next(&t.d)) {
		must_begin("restart of %u ranks, %u in a place, %s: %s", ranks, per_place, options, t.d.words);
		t.failed = 0;
		threadcomm_run(ranks, go_back, &t);
		failed += t.failed != 0;
	}
	MUST(failed > 20);
	hosts_end(t.r);
}

int main(void)
{
	test_checkpoints(3, 3, "mode=sync timeout=30s", false);
	test_checkpoints(3, 3, "mode=async timeout=30s", true);
	test_checkpoints(4, 4, "mode=sync collective=topk timeout=30s", false);
	test_checkpoints(3, 1, "mode=sync copies=2 timeout=30s", false);
	if (vv_codec_numbered(VV_CODEC_ZSTD))
		test_checkpoints(4, 4, "mode=sync aggregate=2 codec=zstd:1 timeout=30s", false);
	test_restarts(3, 1, "mode=sync timeout=30s");
	test_restarts(3, 1, "mode=sync copies=2 timeout=30s");
	return 0;
}
