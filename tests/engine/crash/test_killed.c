// ctest: TIMEOUT 300 MODES COST 3
/* kill -9: before every call that changes the store, and at any time at all. What is left keeps the promises; and a
 * program that is killed again and again, and started again, ends with the result of one that was not. */
#include "store/dir/dir.h"
#include "support/coded.h"
#include "support/faultfs.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "support/promise.h"
#include "support/settle.h"
#include "vv_test.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct script_log *shared_log(void)
{
	struct script_log *log = mmap(NULL, sizeof(*log), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(log != MAP_FAILED);
	return log;
}

/* True if it was killed; a child that ends in another way must have succeeded. */
static bool was_killed(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return false;
}

/* ---- at every call ------------------------------------------------------------------------------------------------ */

static bool kill_at(struct promise *p, struct script_log *log, unsigned steps, long n)
{
	pid_t pid;
	bool killed;

	place_remove(p->store);
	memset(log, 0, sizeof(*log));
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		vv_dir_set_fs(faultfs());
		faultfs_arm(FAULT_KILL, n);
		_exit(varve_close(script_run(p->script, p->store, p->options, 1, steps, log, NULL, NULL)) ? 1 : 0);
	}
	killed = was_killed(pid);
	snprintf(p->when, sizeof(p->when), "[%s] killed before call %ld", p->options, n);
	place_make_dir(p->store);
	promise_check(p);
	return killed;
}

static void sweep(const char *options, unsigned steps, bool delta)
{
	struct script_log *log = shared_log();
	struct script script;
	char store[PLACE_MAX];
	struct promise p = { .script = &script, .store = place_path(store, "store"), .options = options, .log = log,
			     .newer = true };
	long n = 1;

	script_init(&script, false, delta);
	while (kill_at(&p, log, steps, n))
		n += settle_stride(2);
	printf("%s: before call %ld\n", options, n);
	script_fini(&script);
	munmap(log, sizeof(*log));
}

/* ---- at any time --------------------------------------------------------------------------------------------------- */

enum { CELLS = 16 << 10, LAST_STEP = 60, ROUNDS = 30 };

struct world { /* what the program computes: every step needs the one before */
	uint64_t step;
	uint64_t cell[CELLS];
};

static void advance(struct world *w)
{
	uint64_t state = w->step++;

	for (int i = 0; i < CELLS / 8; i++) {
		uint64_t at = gen_below(&state, CELLS);

		w->cell[at] = w->cell[at] * 3 + w->cell[(at + 1) % CELLS] + w->step;
	}
}

/* It goes on while its epochs are stored, as programs do. */
static int program(const char *store, struct world *w)
{
	varve *v = NULL;
	int rc = varve_open(store, "world", "keep=3 threads=2 block=16KiB log=error", &v);

	if (rc == 0)
		rc = varve_protect(v, "step", &w->step, sizeof(w->step));
	if (rc == 0)
		rc = varve_protect(v, "cell", w->cell, sizeof(w->cell));
	if (rc == 0)
		rc = varve_restart(v, VARVE_LATEST);
	while (rc >= 0 && w->step < LAST_STEP) {
		advance(w);
		rc = varve_checkpoint(v);
	}
	if (rc < 0)
		fprintf(stderr, "the program failed at step %llu: %s\n", (unsigned long long)w->step, varve_last_error());
	return varve_close(v) < 0 || rc < 0 ? -1 : 0;
}

static void nap(uint64_t us)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)us * 1000 }, NULL);
}

static void restarted(void)
{
	struct world *want = calloc(1, sizeof(*want)), *w = calloc(1, sizeof(*w));
	char store[PLACE_MAX];
	uint64_t state = 4711;
	int kills = 0;

	CHECK(want && w);
	place_path(store, "restarted");
	while (want->step < LAST_STEP)
		advance(want);
	for (int round = 0; round < ROUNDS; round++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(program(store, w) ? 1 : 0);
		nap(gen_below(&state, 12000));
		kill(pid, SIGKILL);
		kills += was_killed(pid);
	}
	CHECK_EQ(program(store, w), 0);
	CHECK(memcmp(w, want, sizeof(*w)) == 0);
	printf("%d of %d rounds were killed\n", kills, ROUNDS);
	free(want);
	free(w);
}

int main(void)
{
	vv_dir_set_fs(lazyfs());
	sweep(SCRIPT_SMALL CODED, 7, false);
	sweep(SCRIPT_DELTA "codec=none", 4, true);
	vv_dir_set_fs(NULL);
	restarted();
	return 0;
}
