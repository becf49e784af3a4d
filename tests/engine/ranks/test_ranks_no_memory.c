// ctest: TIMEOUT 120 COST 15
/* Many ranks, one of which runs out of memory, at each allocation in turn: while they open, restart past a damaged epoch, or find that they
 * make different calls. All ranks have the same error, and nobody waits for a rank that has left. */
#include "base/err.h"
#include "base/mem.h"
#include "engine/context.h"
#include "engine/ranks/hosts.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve_comm.h>

enum { RANKS = 3, LEN = 20000 };

struct trial {
	char store[PLACE_MAX];
	char options[128];
	void (*act)(varve *v, struct trial *t, uint32_t rank);
	pthread_barrier_t met;
	long n; /* of the allocation that fails; 0: none */
	int code[RANKS];
	char message[RANKS][512];
};

static varve *open_rank(struct trial *t, const struct varve_comm *comm)
{
	struct varve_comm mine = *comm;
	char store[PLACE_MAX + 16];
	varve *v = NULL;

	snprintf(store, sizeof(store), "%s/r%u", t->store, comm->rank);
	MUST(varve_open_comm(&mine, store, "job", t->options, &v) >= 0);
	MUST(varve_alloc(v, "p", LEN));
	return v;
}

static void note(struct trial *t, uint32_t rank, int rc)
{
	t->code[rank] = rc;
	snprintf(t->message[rank], sizeof(t->message[rank]), "%s", rc < 0 ? varve_last_error() : "");
}

static void restart(varve *v, struct trial *t, uint32_t rank)
{
	note(t, rank, varve_restart(v, VARVE_LATEST));
}

static void differ(varve *v, struct trial *t, uint32_t rank)
{
	note(t, rank, varve_restart(v, rank == 1 ? 1 : 2));
}

static void find_hosts(varve *v, struct trial *t, uint32_t rank)
{
	note(t, rank, vv_hosts_find(v->ctx.group, v->ctx.store, "job"));
}

static void store_next(varve *v, struct trial *t, uint32_t rank)
{
	int rc = varve_checkpoint(v);

	note(t, rank, rc < 0 ? rc : varve_wait(v, varve_epoch(v)));
}

/* Allocations count from when all ranks have come. */
static void live(const struct varve_comm *comm, void *arg)
{
	struct trial *t = arg;
	varve *v = open_rank(t, comm);

	if (pthread_barrier_wait(&t->met) == PTHREAD_BARRIER_SERIAL_THREAD)
		vv_mem_fail_at(t->n);
	pthread_barrier_wait(&t->met);
	t->act(v, t, comm->rank);
	if (pthread_barrier_wait(&t->met) == PTHREAD_BARRIER_SERIAL_THREAD && t->n) {
		t->n = vv_mem_asked() < t->n ? 0 : t->n;
		vv_mem_fail_at(0);
	}
	pthread_barrier_wait(&t->met);
	MUST(varve_close(v) >= 0);
}

static void write_two(const struct varve_comm *comm, void *arg)
{
	varve *v = open_rank(arg, comm);

	for (int e = 0; e < 2; e++) {
		MUST(varve_checkpoint(v) >= 0);
		MUST(varve_wait(v, varve_epoch(v)) >= 0);
	}
	MUST(varve_close(v) >= 0);
}

/* One layer more of epoch 2, and its parity, than parity can replace. */
static void damage(const struct trial *t)
{
	char text[4 * PLACE_MAX];

	snprintf(text, sizeof(text), "cd %s && rm r1/job/00000000/*2.r1* r2/job/00000000/*2.r2*", t->store);
	MUST(system(text) == 0);
}

static void same(const struct trial *t, int want)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		if (t->code[r] == t->code[0] && (t->code[0] == want || t->code[0] == VARVE_ENOMEM))
			continue;
		for (uint32_t k = 0; k < RANKS; k++)
			fprintf(stderr, "rank %u: %d %s\n", k, t->code[k], t->message[k]);
		MUST(!"all ranks have the same result");
	}
}

static void sweep(const char *what, const char *more, void (*act)(varve *, struct trial *, uint32_t), int want, long first, long stride)
{
	struct trial t = { .act = act, .n = 1 };
	long n = first;

	snprintf(t.options, sizeof(t.options), "mode=sync timeout=20 log=error %s", more);
	place_path(t.store, "store");
	for (; t.n; n += stride) {
		must_begin("%s, allocation %ld", what, n);
		place_remove(t.store);
		place_make_dir(t.store);
		MUST(pthread_barrier_init(&t.met, NULL, RANKS) == 0);
		threadcomm_run(RANKS, write_two, &t);
		damage(&t);
		t.n = n;
		threadcomm_run(RANKS, live, &t);
		same(&t, want);
		pthread_barrier_destroy(&t.met);
	}
	printf("%s: %ld allocations\n", what, n);
	place_remove(t.store);
}

int main(int argc, char **argv)
{
	static const char parity[] = "redundancy=xor:3 failure-domain=store keep=1";
	long first = argc > 1 ? atol(argv[1]) : 1, stride = argc > 2 ? atol(argv[2]) : 29;

	sweep("different calls", "", differ, VARVE_EPEER, 1, 1);
	sweep("the search for hosts", "", find_hosts, 0, 1, 1);
	sweep("a restart", "", restart, 1, 1, 1);
	sweep("a restart with parity", parity, restart, 1, first, stride);
	sweep("a checkpoint", parity, store_next, 0, first, stride);
	return 0;
}
