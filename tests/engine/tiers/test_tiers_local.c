// ctest: TIMEOUT 240 COST 20 MODES
/* Tiers of ranks that have stores of their own: random histories. Sessions end well or are killed at a point of a copy on any rank; stores
 * of nodes are lost between them. A restart finds the newest epoch that the remaining stores or the tier have whole, and the tier never
 * has an epoch that is not whole. Ranks refer to content that others stored in older epochs. */
#include "base/pool.h"
#include "base/test_point.h"
#include "engine/lineage/catalog.h"
#include "engine/upkeep/verify.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PAGE = 4096, PAGES = 24, RANKS = 4, ROUNDS = 10, HISTORIES = 5, EPOCHS = 1000, NODES_MOST = RANKS };

static struct job {
	char options[3 * PLACE_MAX];
	uint32_t ranks_per_node;
	int epochs;
	uint64_t want; /* at least this epoch is restored */
	const char *point;
	int passes;
	bool restart_only;
	uint64_t first; /* state */
} job;

/* Shared with the children. */
static struct acknowledged {
	_Atomic uint64_t committed; /* the newest epoch that all ranks were told of */
	_Atomic int passes;
	_Atomic uint64_t state[EPOCHS]; /* of each epoch; 0: not known yet */
} *noted;
static char node[NODES_MOST][PLACE_MAX], far[PLACE_MAX];
static uint64_t seed;

static uint64_t roll(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

/* A third stays, a third is what the next rank stored an epoch before, a third is new, some of it on all ranks. */
static void fill(uint8_t *p, uint32_t rank, uint64_t state)
{
	for (uint64_t page = 0; page < PAGES; page++) {
		uint64_t word = page * 1000003;

		if (page % 3 == 1)
			word += (state + rank) * 7919 + 1;
		else if (page % 3 == 2)
			word += state * 104729 + (page % 2 ? rank * 31 : 0);
		for (size_t i = 0; i < PAGE; i += 8, word = word * 6364136223846793005u + 1)
			memcpy(p + page * PAGE + i, &word, 8);
	}
	memcpy(p, &state, sizeof(state));
}

/* What was restored is the state of the epoch, on this rank as on the others. */
static bool is_right(const uint8_t *p, uint32_t rank, uint64_t epoch)
{
	uint8_t *right = malloc(PAGES * PAGE);
	uint64_t state, unknown = 0;
	bool same;

	memcpy(&state, p, sizeof(state));
	fill(right, rank, state);
	same = memcmp(p, right, PAGES * PAGE) == 0;
	free(right);
	MUST(epoch < EPOCHS);
	return same && (atomic_compare_exchange_strong(&noted->state[epoch], &unknown, state) || unknown == state);
}

static void kill_there(const char *name)
{
	if (job.point && strcmp(name, job.point) == 0 && atomic_fetch_sub(&noted->passes, 1) <= 0)
		raise(SIGKILL);
}

static void live(const struct varve_comm *comm, void *arg)
{
	const char *store = arg ? arg : node[comm->rank / job.ranks_per_node];
	varve *v = NULL;
	uint8_t *p;
	int rc;

	MUST(varve_open_comm(comm, store, "job", arg ? "log=info" : job.options, &v) == 0);
	p = varve_alloc(v, "p", PAGES * PAGE);
	rc = varve_restart(v, VARVE_LATEST);
	MUST(rc == 1 || (rc == 0 && !job.want) || (rc == VARVE_EDAMAGED && !job.want));
	MUST(rc != 1 || (varve_epoch(v) >= job.want && is_right(p, comm->rank, varve_epoch(v))));
	for (int i = 0; i < job.epochs; i++) {
		uint64_t state = job.first + (uint64_t)i;

		fill(p, comm->rank, state);
		MUST(varve_checkpoint(v) == 0);
		MUST(varve_wait(v, varve_epoch(v)) >= 0 && varve_epoch(v) < EPOCHS);
		atomic_store(&noted->state[varve_epoch(v)], state);
		if (comm->rank == 0)
			atomic_store(&noted->committed, varve_epoch(v));
	}
	MUST(varve_close(v) == 0);
}

static bool run(void)
{
	int status = 0;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		vv_test_point_hook = kill_there;
		threadcomm_run(RANKS, live, job.restart_only ? far : NULL);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	MUST(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : job.point && WTERMSIG(status) == SIGKILL);
	return WIFEXITED(status);
}

/* ---- the tier, by code that knows nothing of tiers ------------------------------------------------------------------------------- */

static void complain(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

static bool is_intact(const struct vv_lineage *lin, uint64_t epoch)
{
	struct vv_verify_report report = { 0 };
	struct vv_pool *pool = NULL;
	int rc;

	MUST(vv_pool_new(0, &pool) == 0);
	rc = vv_verify_run(lin, pool, epoch, true, complain, NULL, NULL, &report);
	vv_affected_epochs_fini(&report.affected);
	vv_pool_free(pool);
	return rc == 0 && report.problems == 0;
}

/* The newest epoch there; 0: none. All must be intact. */
static uint64_t newest_in_tier(size_t *count)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_listing l = { 0 };
	struct vv_lineage lin;
	uint64_t newest = 0;

	if (vv_store_open(far, &opt, &s) == 0 && vv_catalog_open(s, "job", false, &lin) == 0) {
		MUST(vv_catalog_list(&lin, 0, &l) == 0);
		for (size_t i = 0; i < l.n_epochs; i++)
			MUST(is_intact(&lin, newest = l.epoch[i]));
	}
	*count = l.n_epochs;
	vv_catalog_listing_fini(&l);
	vv_store_close(s);
	return newest;
}

/* ---- histories ------------------------------------------------------------------------------------------------------------------- */

static const char *const points[] = { "tier-begun", "parts-older", "parts-whole", "tier-copied", "tier-gc", "tier-kept", "concluded", "ruled", "parity stored" };

/* What a restart must find if these nodes are lost. A killed session may have left an epoch that only some nodes know. */
static uint64_t expect(int lost, bool partner, bool killed, uint64_t in_tier)
{
	bool all_there = lost == 0, rebuilt = partner && lost == 1 && job.ranks_per_node == 1 && !killed;

	if (!all_there && !rebuilt) { /* numbers above may come again */
		atomic_store(&noted->committed, in_tier);
		for (uint64_t e = in_tier + 1; e < EPOCHS; e++)
			atomic_store(&noted->state[e], 0);
	}
	return atomic_load(&noted->committed) > in_tier ? atomic_load(&noted->committed) : in_tier;
}

static void history(uint64_t number)
{
	uint64_t every, keep, in_tier = 0;
	bool partner, last, killed = false;
	size_t count = 0;

	seed = number;
	*noted = (struct acknowledged){ 0 };
	every = 1 + roll(3);
	keep = roll(3);
	partner = roll(2);
	last = roll(2);
	job = (struct job){ .ranks_per_node = roll(3) ? 1 : 2 };
	place_path(far, "far");
	for (int i = 0; i < NODES_MOST; i++) {
		char name[32];

		snprintf(name, sizeof(name), "node%d", i);
		place_path(node[i], name);
		place_remove(node[i]);
		place_make_dir(node[i]);
	}
	place_remove(far);
	for (int round = 0; round < ROUNDS; round++) {
		int lost = round && roll(2) ? 1 + (int)roll(RANKS) : 0;

		for (int i = 0, first = (int)roll(RANKS); i < lost; i++) {
			place_remove(node[(first + i) % RANKS]);
			place_make_dir(node[(first + i) % RANKS]);
		}
		snprintf(job.options, sizeof(job.options), "log=error,keep=%d,%stiers='%s every=%" PRIu64 " keep=%" PRIu64 " last=%d'", 1 + (int)roll(2),
			 partner ? "redundancy=partner,failure-domain=store," : "", far, every, keep, last);
		job.want = expect(lost, partner, killed, in_tier);
		job.epochs = 1 + (int)roll(6);
		job.first = 1 + (uint64_t)round * 100;
		job.point = roll(2) ? points[roll(sizeof(points) / sizeof(points[0]))] : NULL;
		atomic_store(&noted->passes, (int)roll(6));
		must_begin("history %" PRIu64 ", round %d, %d lost, want %" PRIu64 ", killed at %s, %s", number, round, lost, job.want, job.point ? job.point : "-",
			   job.options);
		killed = !run();
		in_tier = newest_in_tier(&count);
		MUST(killed || in_tier / every == atomic_load(&noted->committed) / every);
		MUST(killed || !last || in_tier == atomic_load(&noted->committed));
		MUST(killed || !keep || count <= keep);
	}
	/* the tier alone is a store like any other */
	job.restart_only = true;
	job.point = NULL;
	job.epochs = 0;
	job.want = in_tier;
	must_begin("history %" PRIu64 ", the tier as a store", number);
	run();
}

/* ---- single cases ------------------------------------------------------------------------------------------------------------------ */

static void clear(void)
{
	char name[32];

	place_path(far, "far");
	place_remove(far);
	for (int i = 0; i < NODES_MOST; i++) {
		snprintf(name, sizeof(name), "node%d", i);
		place_path(node[i], name);
		place_remove(node[i]);
		place_make_dir(node[i]);
	}
	*noted = (struct acknowledged){ 0 };
	job = (struct job){ .ranks_per_node = 1 };
}

static pthread_mutex_t damaging = PTHREAD_MUTEX_INITIALIZER;
static bool damaged;

/* No thread copies before the layer is damaged. */
static void damage_a_layer(const char *name)
{
	char path[PLACE_MAX + 64];
	uint8_t *bytes;
	size_t n;

	if (strcmp(name, "tier-begun") != 0)
		return;
	pthread_mutex_lock(&damaging);
	if (!damaged) {
		snprintf(path, sizeof(path), "%s/job/00000000/0000000002.r1.layer", node[1]);
		bytes = place_read(path, &n);
		for (size_t i = 64; i + 64 < n; i += 64)
			bytes[i] ^= 1;
		place_write(path, bytes, n);
		free(bytes);
	}
	damaged = true;
	pthread_mutex_unlock(&damaging);
}

/* One rank cannot copy its layer: nobody waits for it, neither at the end nor with the next epochs. */
static void test_failure(void)
{
	size_t count;

	for (int epochs = 2; epochs <= 8; epochs += 6) {
		clear();
		damaged = false;
		snprintf(job.options, sizeof(job.options), "log=error,tiers='%s every=2'", far);
		job.epochs = epochs;
		job.first = 1;
		must_begin("a rank cannot copy, %d epochs", epochs);
		vv_test_point_hook = damage_a_layer;
		threadcomm_run(RANKS, live, NULL);
		vv_test_point_hook = NULL;
		MUST(damaged);
		MUST(newest_in_tier(&count) == (epochs == 2 ? 0 : 8));
	}
}

static void open_private(const struct varve_comm *comm, void *arg)
{
	varve *v = NULL;

	(void)arg;
	MUST(unshare(CLONE_FS) == 0 && chdir(node[comm->rank]) == 0);
	MUST(varve_open_comm(comm, node[comm->rank], "job", "log=error,tiers='private every=1'", &v) == VARVE_EINVAL);
	MUST(comm->rank || strstr(varve_last_error(), "not all ranks reach one store"));
}

int main(int argc, char **argv)
{
	noted = mmap(NULL, sizeof(*noted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(noted != MAP_FAILED);
	for (uint64_t i = 1; i <= HISTORIES; i++)
		history(argc > 1 ? strtoull(argv[1], NULL, 0) + i : i * 1001);
	test_failure();
	clear();
	must_begin("a tier for each rank");
	threadcomm_run(RANKS, open_private, NULL);
	return 0;
}
