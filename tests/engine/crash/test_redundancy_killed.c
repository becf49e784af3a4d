// ctest: TIMEOUT 300 COST 8
/* Ranks with stores of their own and redundancy are killed at every phase of a checkpoint, of making parity and of bringing lost objects
 * back. Then stores are lost, as many as the scheme bears: the next job goes on, byte for byte, from the newest epoch that was protected or
 * from a later one. One loss more of an epoch: it is refused by name, and the one before it is restored. "all" as argument: every set of
 * stores, not some of them. */
#include "base/test_point.h"
#include "engine/context.h"
#include "support/hosts.h"
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct shared { /* with the children */
	atomic_uint protected, committed; /* the newest step */
	atomic_uint restarted;
	char message[1024];
};

struct job {
	struct hosts *r;
	struct shared *out;
	unsigned write;  /* steps */
	uint64_t refuse; /* an epoch that cannot be restored; 0: none */
};

struct scheme {
	uint32_t ranks;
	unsigned m;
	const char *options;
	bool any_thread;
};

static const char *point;
static atomic_int countdown;
static bool all_sets;

/* A thread that comes here while the process is being killed goes no further. */
static void strike(const char *name)
{
	int left = strcmp(name, point) == 0 ? atomic_fetch_sub(&countdown, 1) : 2;

	if (left == 1)
		kill(getpid(), SIGKILL);
	while (left < 1)
		pause();
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void shell(const char *format, ...)
{
	char text[4 * PLACE_MAX];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	MUST(system(text) == 0);
}

static void expect_refusal(const struct job *j, varve *v)
{
	CHECK_EQ(varve_restart(v, j->refuse), VARVE_EDAMAGED);
	if (v->ctx.rank == 0)
		snprintf(j->out->message, sizeof(j->out->message), "%s", varve_last_error());
}

/* An epoch has the step in its first bytes: numbers of epochs that failed are not used again. */
static void live(const struct varve_comm *comm, void *arg)
{
	const struct job *j = arg;
	varve *v = hosts_open(j->r, comm);
	uint32_t *step = varve_alloc(v, "step", sizeof(*step));
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);
	int rc;

	if (j->refuse)
		expect_refusal(j, v);
	memset(p, 0xee, (size_t)PAGES * PAGE);
	rc = varve_restart(v, VARVE_LATEST);
	MUST(rc >= 0);
	if (rc == 1)
		hosts_check(j->r, (int)*step, comm->rank, p);
	if (comm->rank == 0)
		atomic_store(&j->out->restarted, *step);
	for (unsigned i = 0; i < j->write; i++) {
		++*step;
		hosts_set(j->r, (int)*step, comm->rank, p);
		OK(varve_checkpoint(v));
		OK(varve_wait_for(v, varve_epoch(v), 60));
		if (comm->rank == 0)
			atomic_store(&j->out->committed, *step);
		OK(varve_wait(v, varve_epoch(v)));
		CHECK_EQ(varve_protected_epoch(v), varve_epoch(v));
		if (comm->rank == 0)
			atomic_store(&j->out->protected, *step);
	}
	OK(varve_close(v));
}

/* In a child, so that this process stays without threads. Was it killed? */
static bool run_job(struct job *j, const char *where, int nth)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		point = where;
		atomic_store(&countdown, nth);
		vv_test_point_hook = strike;
		threadcomm_run(j->r->ranks, live, j);
		_exit(0);
	}
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	MUST(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static void lose(const struct hosts *r, unsigned places)
{
	for (uint32_t p = 0; p < r->ranks; p++)
		if (places >> p & 1)
			shell("rm -rf %s/p%u", r->store, p);
}

static void save(const struct hosts *r)
{
	shell("rm -rf %s.saved && cp -a %s %s.saved", r->store, r->store, r->store);
}

static void put_back(const struct hosts *r)
{
	shell("rm -rf %s && cp -a %s.saved %s", r->store, r->store, r->store);
}

static unsigned lost_stores(unsigned places)
{
	return (unsigned)__builtin_popcount(places);
}

/* Some sets of at most m stores, or all. */
static bool is_tried(const struct scheme *s, unsigned places, uint64_t *dice)
{
	return lost_stores(places) <= s->m && (all_sets || pages_mix(++*dice) % (1u << s->ranks) < 4);
}

/* The next job finds what was protected, or more, and its own epoch bears the same losses. */
static void go_on(struct job *j, unsigned places, unsigned least, bool more)
{
	lose(j->r, places);
	j->write = more;
	MUST(!run_job(j, "", 1));
	CHECK(j->out->restarted >= least);
	if (!more)
		return;
	least = j->out->restarted + 1;
	lose(j->r, places);
	j->write = 0;
	MUST(!run_job(j, "", 1));
	CHECK_EQ(j->out->restarted, least);
}

static struct job begin(const struct scheme *s, struct shared *out, uint64_t seed)
{
	struct job j = { .r = hosts_new(s->ranks, seed, s->options), .out = out, .write = 2 };

	j.r->any_thread = s->any_thread;
	*out = (struct shared){ 0 };
	MUST(!run_job(&j, "", 1));
	CHECK_EQ(out->protected, 2);
	return j;
}

static void end(struct job *j)
{
	shell("rm -rf %s.saved", j->r->store);
	hosts_end(j->r);
}

/* Killed in a checkpoint, or while parity is made. */
static int in_a_checkpoint(const struct scheme *s, struct shared *out, const char *where, int nth, uint64_t *dice)
{
	struct job j = begin(s, out, ++*dice);
	unsigned least;
	int hits;

	hits = run_job(&j, where, nth);
	least = out->protected;
	save(j.r);
	for (unsigned places = 0; places < 1u << s->ranks; places++) {
		if (places && !is_tried(s, places, dice))
			continue;
		must_begin("%s, killed at %s (%d) of a checkpoint, lost %x", s->options, where, nth, places);
		go_on(&j, places, places ? least : out->committed, places % 3 == 0);
		put_back(j.r);
	}
	end(&j);
	return hits;
}

/* Killed while lost objects are brought back. Then more stores are lost, as long as these and the first ones are m at most. */
static int in_a_rebuild(const struct scheme *s, struct shared *out, const char *where, int nth, uint64_t *dice)
{
	struct job j = begin(s, out, ++*dice);
	int hits = 0;

	save(j.r);
	for (unsigned first = 1; first < 1u << s->ranks; first++) {
		unsigned then = pages_mix(++*dice) % (1u << s->ranks);

		if (!is_tried(s, first, dice))
			continue;
		must_begin("%s, killed at %s (%d) of a rebuild, lost %x, %x", s->options, where, nth, first, then);
		lose(j.r, first);
		j.write = 0;
		hits += run_job(&j, where, nth);
		go_on(&j, lost_stores(first | then) <= s->m ? then : first & then, 2, false);
		shell("diff -r -x lock -x 'index.*' -x '*.commit' -x lineage %s %s.saved", j.r->store, j.r->store);
		put_back(j.r);
	}
	end(&j);
	return hits;
}

/* The first checkpoint was not committed, and left layers without parity. Later epochs do not need these. */
static void in_the_first(const struct scheme *s, struct shared *out, const char *where, int nth, uint64_t *dice)
{
	struct job j = { .r = hosts_new(s->ranks, ++*dice, s->options), .out = out, .write = 1 };

	j.r->any_thread = s->any_thread;
	*out = (struct shared){ 0 };
	MUST(run_job(&j, where, nth));
	*out = (struct shared){ 0 };
	MUST(!run_job(&j, "", 1));
	CHECK_EQ(out->protected, out->restarted + 1);
	j.write = 0;
	save(j.r);
	for (uint32_t p = 0; p < s->ranks; p++) {
		must_begin("%s, killed at %s (%d) of the first checkpoint, lost %u", s->options, where, nth, p);
		go_on(&j, 1u << p, out->protected, false);
		put_back(j.r);
	}
	end(&j);
}

/* The newest epoch was committed, and the job died before its parity was there. */
static void one_too_many(const struct scheme *s, struct shared *out, uint64_t *dice)
{
	struct job j = begin(s, out, ++*dice);
	unsigned places = 1;

	must_begin("%s, one loss too many", s->options);
	MUST(run_job(&j, "parity made", 1));
	lose(j.r, places);
	j.refuse = 3;
	j.write = 0;
	MUST(!run_job(&j, "", 1));
	CHECK_EQ(out->restarted, 2);
	MUST(strstr(out->message, "epoch 3"));
	j.refuse = 0;
	go_on(&j, 2, 2, true); /* another store: epochs 1 and 2 have their parity again */
	end(&j);
}

int main(int argc, char **argv)
{
	static const struct scheme scheme[] = {
		{ 2, 1, "mode=async redundancy=partner failure-domain=store log=error", true },
		{ 4, 1, "mode=sync redundancy=xor:4 failure-domain=store log=error", false },
		{ 5, 2, "mode=async redundancy=rs:3+2 failure-domain=store log=error", true },
		{ 8, 2, "mode=async redundancy=rs:6+2 failure-domain=store log=error", true },
		{ 7, 1, "mode=async redundancy=xor:3 failure-domain=store log=error keep=2", false },
		{ 4, 1, "mode=sync redundancy=xor:4 failure-domain=store log=error keep=1", true },
	};
	static const char *const checkpoint[] = { "placed", "stored", "reported", "ruled", "concluded", "parity made", "layers rebuilt", "parity stored" };
	static const char *const rebuild[] = { "parity made", "layers rebuilt", "parity stored" };
	struct shared *out = mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t dice = 7000;
	int in_checkpoints = 0, in_rebuilds = 0;

	MUST(out != MAP_FAILED);
	all_sets = argc > 1 && strcmp(argv[1], "all") == 0;
	for (size_t i = 0; i < sizeof(scheme) / sizeof(scheme[0]); i++) {
		const struct scheme *s = &scheme[i];

		for (size_t w = 0; w < sizeof(checkpoint) / sizeof(checkpoint[0]); w++)
			if (all_sets || (w + i) % 2 == 0 || s->ranks == 2)
				in_checkpoints += in_a_checkpoint(s, out, checkpoint[w], w % 2 ? 1 : (int)s->ranks, &dice);
		for (size_t w = 0; w < sizeof(rebuild) / sizeof(rebuild[0]); w++)
			if (all_sets || (w + i) % 2 == 0 || s->ranks == 2)
				in_rebuilds += in_a_rebuild(s, out, rebuild[w], 1 + (int)(w + i) % 3, &dice);
		in_the_first(s, out, "stored", (int)s->ranks, &dice);
		in_the_first(s, out, "reported", 1, &dice);
		one_too_many(s, out, &dice);
	}
	printf("%d jobs were killed in a checkpoint, %d in a rebuild\n", in_checkpoints, in_rebuilds);
	MUST(in_checkpoints >= 15 && in_rebuilds >= 5);
	return 0;
}
