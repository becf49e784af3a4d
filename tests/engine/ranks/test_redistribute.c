// ctest: TIMEOUT 300 COST 20
/* Restarts on another number of ranks, against a brute-force model: all pairs of 1 to 8 ranks, arrays of one to four dimensions divided in
 * random ways, ghost cells, lists, stores of their own; epochs of different numbers of ranks in one lineage. */
#include "engine/context.h"
#include "engine/lineage/catalog.h"
#include "engine/ranks/group.h"
#include "engine/upkeep/verify.h"
#include "support/parts.h"
#include "vv_config.h"
#include <sys/stat.h>
#include <unistd.h>

struct job {
	char store[PLACE_MAX];
	const char *options;
	const struct parts_state *state;
	const struct parts_cut *cut, *from; /* from: of the epoch that the restart finds; NULL: none */
	uint32_t places;                    /* stores; 0: one of all ranks */
	uint64_t epoch, version;            /* of the restart */
	int first, last;                    /* versions to be written, an epoch each */
	bool even;                          /* the list is cut by varve_list_share */
	bool apart;                         /* the ranks take each other for ranks of other hosts while they restart */
};

static varve *open_job(const struct job *j, const struct varve_comm *comm)
{
	char store[PLACE_MAX + 16];
	varve *v = NULL;

	snprintf(store, sizeof(store), "%s", j->store);
	if (j->places) {
		MUST(mkdir(j->store, 0700) == 0 || access(j->store, F_OK) == 0);
		snprintf(store, sizeof(store), "%s/p%u", j->store, comm->rank % j->places);
	}
	OK(varve_open_comm(comm, store, "job", j->options, &v));
	return v;
}

static void live(const struct varve_comm *comm, void *arg)
{
	const struct job *j = arg;
	struct parts_memory m = { 0 };
	struct parts_cut own = *j->cut;
	const struct parts_cut *c = j->cut;
	varve *v = open_job(j, comm);
	uint64_t share = 0, total = 0;

	if (j->from && j->even) {
		MUST(varve_list_share(v, j->epoch, "particles", &share, &total) == 1);
		MUST(total == j->state->list);
		if (j->from->ranks == c->ranks)
			MUST(share == j->from->items[comm->rank]);
		for (uint32_t k = 0; k < c->ranks; k++)
			own.items[k] = j->from->ranks == c->ranks ? j->from->items[k] : total / c->ranks + (k < total % c->ranks);
		MUST(share == own.items[comm->rank]);
		c = j->from == j->cut ? c : &own;
	}
	parts_declare(v, j->state, c, comm->rank, &m);
	parts_poison(j->state, c, comm->rank, &m);
	if (j->from) {
		uint32_t *host = v->ctx.group->host, mine[PARTS_RANKS];

		memcpy(mine, host, c->ranks * sizeof(*host));
		for (uint32_t k = 0; j->apart && k < c->ranks; k++)
			host[k] = k;
		OK(varve_restart(v, j->epoch));
		memcpy(host, mine, c->ranks * sizeof(*host));
		parts_check(j->state, c, j->from, comm->rank, j->version, &m);
		MUST(j->epoch == VARVE_LATEST || varve_epoch(v) == j->epoch);
	}
	for (int e = j->first; e && e <= j->last; e++) {
		parts_fill(j->state, c, comm->rank, (uint64_t)e, &m);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
	}
	OK(varve_close(v));
	parts_free(&m);
}

static void print_problem(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

static void verify(const char *path, uint64_t epochs)
{
	struct vv_verify_report report = { 0 };
	struct vv_store_options opt = { 0 };
	struct vv_store *store = NULL;
	struct vv_lineage lin;
	struct vv_pool *pool = NULL;

	OK(vv_pool_new(1, &pool));
	OK(vv_store_open(path, &opt, &store));
	OK(vv_catalog_open(store, "job", false, &lin));
	OK(vv_verify_run(&lin, pool, 0, false, print_problem, NULL, NULL, &report));
	MUST(report.problems == 0);
	MUST(!epochs || report.epochs == epochs);
	vv_store_close(store);
	vv_pool_free(pool);
}

static const char *const options[] = {
	"mode=sync", "mode=async collective=none", VV_HAVE_ZSTD ? "mode=sync aggregate=node codec=zstd" : "mode=sync aggregate=node", "mode=async aggregate=3", "mode=sync collective=topk keep=2",
	"mode=sync digest=sha256", "mode=async copies=2",
};

enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };

/* n ranks write epochs 1 and 2; m ranks continue, and write 3 and 4; n ranks continue, and write 5; then back to each. */
static void trial(uint32_t n, uint32_t m, uint64_t seed, uint32_t places)
{
	struct parts_random r = { seed * 7919 };
	struct parts_state s = parts_invent(&r);
	struct parts_cut a, b, c;
	struct job j = { .options = options[seed % N_OPTIONS], .state = &s, .cut = &a, .first = 1, .last = 2, .epoch = VARVE_LATEST, .places = places,
			 .apart = seed / 2 % 2 };
	bool all = !strstr(j.options, "keep");

	parts_divide(&r, &s, n, &a);
	parts_divide(&r, &s, m, &b);
	parts_divide(&r, &s, n, &c);
	must_begin("%u ranks, then %u; seed %llu, %s, %u stores, %d dimensions", n, m, (unsigned long long)seed, j.options, places, s.ndim);
	place_path(j.store, "elastic");
	threadcomm_run(n, live, &j);
	j.from = &a, j.cut = &b, j.first = 3, j.last = 4, j.version = 2;
	threadcomm_run(m, live, &j);
	j.even = true, j.from = &b, j.cut = &c, j.first = 0, j.version = 4;
	threadcomm_run(n, live, &j);
	j.even = false, j.first = j.last = 5;
	threadcomm_run(n, live, &j);
	j.first = 0, j.cut = &b, j.from = &c, j.version = 5;
	threadcomm_run(m, live, &j);
	if (all) { /* old epochs, on the numbers of ranks that wrote them */
		j.cut = j.from = &a, j.epoch = 2, j.version = 2;
		threadcomm_run(n, live, &j);
		j.even = true, j.epoch = 1, j.version = 1;
		threadcomm_run(n, live, &j);
		j.even = false, j.cut = j.from = &b, j.epoch = 3, j.version = 3;
		threadcomm_run(m, live, &j);
	}
	if (!places)
		verify(j.store, all ? 5 : 2);
	place_remove(j.store);
}

int main(void)
{
	uint64_t seed = 1;

	for (uint32_t n = 1; n <= PARTS_RANKS; n++)
		for (uint32_t m = 1; m <= PARTS_RANKS; m++)
			for (int k = 0; k < 1; k++, seed++)
				trial(n, m, seed, 0);
	for (uint32_t n = 2; n <= PARTS_RANKS; n++)
		for (uint32_t m = 2 + n % 2; m <= PARTS_RANKS; m += 2, seed++)
			trial(n, m, seed, n > 3 && m > 3 && seed % 2 ? 3 : 2);
	return 0;
}
