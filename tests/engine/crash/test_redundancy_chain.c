// ctest: TIMEOUT 120 COST 4
/* The stores of two ranks are lost, and the job that brings them back is killed halfway. The next job gives the two ranks each other's
 * new store. A delta is read together with its parents, so the layers of a rank all go to one store: the newest epoch is restored.
 * The same if a store returns that was away for some epochs, and another rank has the place of the one that replaced it. */
#include "base/test_point.h"
#include "engine/lineage/layer_file.h"
#include "support/hosts.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

/* A full table of so many runs is longer than four more layers: all epochs but the first are deltas. */
enum { RANKS = 4, FIRST = 2, SECOND = 3, EPOCHS = 5, OLDER = 3, RUNS = 6000, CONTENTS = 50 };

struct job {
	struct hosts *r;
	int want, end; /* the epoch that a restart finds, and the last one that is written */
	int made;      /* epochs that are rebuilt before the job is killed; 0: it is not killed */
	bool full;     /* after epoch OLDER the first of the two ranks stores its whole state */
};

static atomic_int countdown;

static void strike(const char *name)
{
	int left = strcmp(name, "parity made") == 0 ? atomic_fetch_sub(&countdown, 1) : 2;

	if (left == 1)
		kill(getpid(), SIGKILL);
	while (left < 1)
		pause();
}

/* Neighbours differ. Each epoch changes a page. A whole state has few runs. */
static uint32_t content(const struct job *j, uint32_t rank, int epoch, int i)
{
	if (j->full && rank == FIRST && epoch > OLDER)
		return 9000 + (uint32_t)epoch;
	return i < epoch ? 1000 * (rank + 1) + (uint32_t)i : 1 + (uint32_t)(i * 7 % CONTENTS);
}

static void set(const struct job *j, uint8_t *p, uint32_t rank, int epoch)
{
	for (int i = 0; i < RUNS; i++)
		pages_fill(content(j, rank, epoch, i), p + (size_t)i * PAGE, PAGE);
}

static void check(const struct job *j, const uint8_t *p, uint32_t rank, int epoch)
{
	uint8_t want[PAGE];

	for (int i = 0; i < RUNS; i++) {
		pages_fill(content(j, rank, epoch, i), want, PAGE);
		CHECK(memcmp(want, p + (size_t)i * PAGE, PAGE) == 0);
	}
}

static void live(const struct varve_comm *comm, void *arg)
{
	const struct job *j = arg;
	varve *v = hosts_open(j->r, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)RUNS * PAGE);

	CHECK_EQ(varve_restart(v, VARVE_LATEST), j->want != 0);
	CHECK_EQ(varve_epoch(v), (uint64_t)j->want);
	if (j->want)
		check(j, p, comm->rank, j->want);
	for (int e = j->want + 1; e <= j->end; e++) {
		set(j, p, comm->rank, e);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
	}
	OK(varve_close(v));
}

/* In a child, which may be killed. */
static void run_job(struct job *j)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		atomic_store(&countdown, RANKS * j->made + 1);
		vv_test_point_hook = j->made ? strike : NULL;
		threadcomm_run(RANKS, live, j);
		_exit(0);
	}
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	MUST(WIFSIGNALED(status) ? j->made && WTERMSIG(status) == SIGKILL : !j->made && WEXITSTATUS(status) == 0);
}

static void check_deltas(const struct hosts *r, uint32_t place, uint32_t rank, uint64_t last)
{
	struct vv_store_options opt = { 0 };
	char path[PLACE_MAX + 16];
	struct vv_store *store = NULL;
	struct vv_lineage lin;

	snprintf(path, sizeof(path), "%s/p%u", r->store, place);
	OK(vv_store_open(path, &opt, &store));
	OK(vv_catalog_open(store, "job", false, &lin));
	for (uint64_t e = 1; e <= last; e++) {
		struct vv_layer_file *f = NULL;

		OK(vv_layer_file_open(&lin, vv_run_layer(e, rank), VV_LAYER_FILE_HEAD, &f));
		CHECK_EQ(f->head.parent, e - 1);
		vv_layer_file_close(f);
	}
	vv_store_close(store);
}

static void place_of(const struct hosts *r, const char *name, char out[PLACE_MAX + 16])
{
	snprintf(out, PLACE_MAX + 16, "%s/%s", r->store, name);
}

static void move(const struct hosts *r, const char *from, const char *to)
{
	char a[PLACE_MAX + 16], b[PLACE_MAX + 16];

	place_of(r, from, a);
	place_of(r, to, b);
	MUST(rename(a, b) == 0);
}

static void exchange(const struct hosts *r)
{
	move(r, "p2", "other");
	move(r, "p3", "p2");
	move(r, "other", "p3");
}

static void lose(const struct hosts *r, const char *name)
{
	char path[PLACE_MAX + 16];

	place_of(r, name, path);
	place_remove(path);
}

static void killed_after(int made)
{
	struct job j = { .r = hosts_new(RANKS, 400 + (uint64_t)made, "mode=sync redundancy=rs:2+2 failure-domain=store log=error"), .end = EPOCHS };

	run_job(&j);
	check_deltas(j.r, FIRST, FIRST, EPOCHS);
	lose(j.r, "p2");
	lose(j.r, "p3");
	j.want = EPOCHS;
	j.made = made;
	run_job(&j);
	exchange(j.r);
	j.made = 0;
	run_job(&j);
	check_deltas(j.r, SECOND, FIRST, EPOCHS);
	check_deltas(j.r, FIRST, SECOND, EPOCHS);
	hosts_end(j.r);
}

/* The store of the first rank goes away. A spare store replaces it for some epochs. */
static void replace(struct job *j)
{
	run_job(j);
	move(j->r, "p2", "away");
	j->want = OLDER;
	j->end = EPOCHS;
	run_job(j);
	check_deltas(j->r, SECOND, SECOND, EPOCHS);
}

/* The first store returns, the second one is lost, and the second rank gets the spare store. */
static void restore(struct job *j)
{
	lose(j->r, "p3");
	move(j->r, "p2", "p3");
	move(j->r, "away", "p2");
	j->want = EPOCHS;
	run_job(j);
}

/* The spare store has all layers of the first rank, and the store that returns has those of the second one. */
static void returns(void)
{
	struct job j = { .r = hosts_new(RANKS, 500, "mode=sync redundancy=rs:2+2 failure-domain=store log=error"), .end = OLDER };

	replace(&j);
	check_deltas(j.r, FIRST, FIRST, EPOCHS);
	restore(&j);
	check_deltas(j.r, FIRST, SECOND, EPOCHS);
	hosts_end(j.r);
}

/* The layers of a rank in its store, and their parity */
static void lose_epochs(const struct hosts *r, uint32_t rank, int first, int last)
{
	char path[PLACE_MAX + 64];

	for (int e = first; e <= last; e++) {
		hosts_lose(r, rank, e, (int)rank);
		snprintf(path, sizeof(path), "%s/p%u/job/00000000/%010d.r%u-of-%d.parity", r->store, rank, e, rank, RANKS);
		CHECK_EQ(unlink(path), 0);
	}
}

/* The spare store has only the newer layers of the first rank, which need no others. The second rank has its older ones in the same
 * store: the newer ones follow. */
static void returns_alone(void)
{
	struct job j = { .r = hosts_new(RANKS, 501, "mode=sync redundancy=rs:2+2 failure-domain=store log=error"), .end = OLDER, .full = true };

	replace(&j);
	lose_epochs(j.r, FIRST, 1, OLDER);
	restore(&j);
	check_deltas(j.r, SECOND, SECOND, EPOCHS);
	lose_epochs(j.r, SECOND, EPOCHS, EPOCHS); /* the epochs before it miss nothing now */
	run_job(&j);
	check_deltas(j.r, SECOND, SECOND, EPOCHS);
	hosts_end(j.r);
}

/* The store of the first rank has other layers under the names of the second one. Newer layers do not follow those. */
static void other_job(void)
{
	struct job j = { .r = hosts_new(RANKS, 502, "mode=sync redundancy=rs:2+2 failure-domain=store log=error"), .end = EPOCHS };
	char from[PLACE_MAX + 64], to[PLACE_MAX + 64];

	run_job(&j);
	for (int e = 1; e <= OLDER; e++) {
		hosts_object(j.r, FIRST, e, FIRST, from);
		hosts_object(j.r, FIRST, e, SECOND, to);
		MUST(link(from, to) == 0);
	}
	lose_epochs(j.r, 0, 1, OLDER);
	lose_epochs(j.r, SECOND, OLDER + 1, EPOCHS);
	j.want = EPOCHS;
	run_job(&j);
	check_deltas(j.r, SECOND, SECOND, EPOCHS);
	hosts_end(j.r);
}

int main(void)
{
	returns();
	returns_alone();
	other_job();
	for (int made = 1; made < EPOCHS; made++)
		killed_after(made);
	return 0;
}
