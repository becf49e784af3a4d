// ctest: TIMEOUT 200 COST 20
/* A job on another number of ranks is killed while it reads its parts, and at every phase of the first checkpoint after that. The next
 * job, on whatever number of ranks, finds the last epoch that was committed, whole; so does one that drops old epochs and collects
 * garbage. */
#include "base/test_point.h"
#include "support/parts.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

struct job {
	char store[PLACE_MAX];
	const char *options;
	const struct parts_state *state;
	const struct parts_cut *cut, *from[2]; /* the divisions of epochs below and from 3 on */
	int write; /* epochs */
};

static const char *point;
static atomic_int countdown;

static void strike(const char *name)
{
	if (strcmp(name, point) == 0 && atomic_fetch_sub(&countdown, 1) == 1)
		kill(getpid(), SIGKILL);
}

static void live(const struct varve_comm *comm, void *arg)
{
	const struct job *j = arg;
	struct parts_memory m = { 0 };
	varve *v = NULL;
	int rc;

	OK(varve_open_comm(comm, j->store, "job", j->options, &v));
	parts_declare(v, j->state, j->cut, comm->rank, &m);
	parts_poison(j->state, j->cut, comm->rank, &m);
	rc = varve_restart(v, VARVE_LATEST);
	MUST(rc >= 0);
	if (rc == 1)
		parts_check(j->state, j->cut, j->from[varve_epoch(v) > 2], comm->rank, varve_epoch(v), &m);
	for (int i = 0; i < j->write; i++) {
		uint64_t next = varve_epoch(v) + 1;

		/* Numbers are never reused, so a version is set when its number is known. */
		parts_fill(j->state, j->cut, comm->rank, next, &m);
		OK(varve_checkpoint(v));
		if (varve_epoch(v) != next) {
			OK(varve_wait(v, varve_epoch(v)));
			parts_fill(j->state, j->cut, comm->rank, varve_epoch(v) + 1, &m);
			next = varve_epoch(v) + 1;
			OK(varve_checkpoint(v));
			MUST(varve_epoch(v) == next);
		}
		OK(varve_wait(v, varve_epoch(v)));
	}
	OK(varve_close(v));
	parts_free(&m);
}

/* Was the child killed? */
static bool killed(struct job *j, const char *where, int nth)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		point = where;
		atomic_store(&countdown, nth);
		vv_test_point_hook = strike;
		threadcomm_run(j->cut->ranks, live, j);
		_exit(0);
	}
	MUST(waitpid(child, &status, 0) == child);
	MUST(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

int main(void)
{
	static const char *const points[] = { "composed", "filled", "asked", "placed", "stored", "reported", "sealed", "ruled", "concluded" };
	static const char *const options[] = { "mode=sync", "mode=async aggregate=node", "mode=sync keep=1 gc=auto" };
	struct parts_random r = { 4242 };
	int hits = 0;

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++)
			for (int nth = 1; nth <= 3; nth += 2) {
				struct parts_state s = parts_invent(&r);
				uint32_t n = 1 + (uint32_t)parts_rng(&r, 5), m = n < 3 ? n + 2 : n - 2;
				struct parts_cut a, b;
				struct job j = { .options = options[o], .state = &s, .write = 2 };

				must_begin("%u ranks, then %u are killed at %s (%d), %s", n, m, points[i], nth, options[o]);
				parts_divide(&r, &s, n, &a);
				parts_divide(&r, &s, m, &b);
				place_path(j.store, "killed");
				j.cut = j.from[0] = &a, j.from[1] = &b;
				MUST(!killed(&j, "", 1)); /* in a child: this process stays without threads */
				j.cut = &b;
				j.write = 1;
				hits += killed(&j, points[i], nth);
				j.write = 0;
				MUST(!killed(&j, "", 1));
				j.cut = &a;
				MUST(!killed(&j, "", 1));
				j.cut = &b; /* and on from there */
				j.write = 1;
				MUST(!killed(&j, "", 1));
				place_remove(j.store);
			}
	printf("%d jobs were killed\n", hits);
	MUST(hits > 30);
	return 0;
}
