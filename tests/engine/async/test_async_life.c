// ctest: TIMEOUT 120 COST 3
/* What a program may do while an epoch is being stored: close, give regions back, move them, fork, ask; callbacks; sessions side
 * by side; signals that ask for a checkpoint. The flush is held at a gate, so that it is under way for sure. */
#include "store/dir/dir.h"
#include "support/gatefs.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/writers.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096, LEN = 64 * PAGE };

static const char *const trackers[] = { "auto", "wpasync", "sigbus", "mprotect", "digest", NULL };
/* Nothing is copied ahead, and fences are small: every page of the epoch stands at a fence until it is stored. */
#define BARE "buffer=0 granule=4096 block=4096 codec=none log=error "

struct run {
	varve *v;
	char store[PLACE_MAX], options[300];
	uint8_t *p, copy[LEN], read[LEN];
	uint64_t seed;
};

static uint8_t *new_pages(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

static bool begin(struct run *u, const char *tracker, const char *more)
{
	int rc;

	snprintf(u->options, sizeof(u->options), "tracker=%s %s", tracker, more);
	u->seed = 7;
	place_path(u->store, "store");
	gatefs_pass();
	rc = varve_open(u->store, "run", u->options, &u->v);
	if (rc == VARVE_ENOTSUP)
		return false;
	MUST(rc == 0);
	u->p = new_pages(LEN);
	MUST(varve_protect(u->v, "p", u->p, LEN) == 0);
	gen_bytes(&u->seed, u->p, LEN);
	MUST(varve_checkpoint(u->v) == 0 && varve_wait(u->v, 1) == 0);
	return true;
}

static void end(struct run *u)
{
	gatefs_pass();
	if (u->p)
		munmap(u->p, LEN);
	place_remove(u->store);
}

/* Epoch 2 of all pages is being stored, and will not get far. */
static void begin_flush(struct run *u)
{
	gen_bytes(&u->seed, u->p, LEN);
	memcpy(u->copy, u->p, LEN);
	gatefs_hold(GATE_WRITE);
	MUST(varve_checkpoint(u->v) == 0);
	gatefs_await();
	MUST(varve_test(u->v, 2) == 0);
}

static void *open_gate(void *arg)
{
	(void)arg;
	must_nap(30);
	gatefs_pass();
	return NULL;
}

/* The gate opens a little later: the call that follows must wait for it. */
static void open_gate_soon(void)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, open_gate, NULL) == 0);
	pthread_detach(thread);
}

static void check(struct run *u, uint64_t epoch)
{
	memset(u->read, 0xee, LEN);
	MUST(varve_restart_region(u->v, epoch, "p", u->read, LEN) == 0);
	MUST(memcmp(u->read, u->copy, LEN) == 0);
}

static void check_anew(struct run *u, uint64_t epoch)
{
	MUST(varve_open(u->store, "run", u->options, &u->v) == 0);
	check(u, epoch);
	MUST(varve_close(u->v) == 0);
}

/* ---- calls that wait ----------------------------------------------------------------------------------------------------- */

static void close_flushing(const char *tracker)
{
	struct run u = { 0 };

	must_begin("%s: close while flushing", tracker);
	if (!begin(&u, tracker, BARE))
		return;
	begin_flush(&u);
	open_gate_soon();
	MUST(varve_close(u.v) == 0);
	writers_fill(u.p, 9, LEN); /* no fence is left */
	check_anew(&u, 2);
	end(&u);
}

static void unprotect_flushing(const char *tracker)
{
	struct run u = { 0 };

	must_begin("%s: unprotect while flushing", tracker);
	if (!begin(&u, tracker, BARE))
		return;
	begin_flush(&u);
	open_gate_soon();
	MUST(varve_unprotect(u.v, "p") == 0);
	munmap(u.p, LEN);
	u.p = NULL;
	MUST(varve_test(u.v, 2) == 1);
	check(&u, 2);
	MUST(varve_checkpoint(u.v) == 0);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

static void move_flushing(const char *tracker)
{
	struct run u = { 0 };
	uint8_t *q;

	must_begin("%s: protect at another place while flushing", tracker);
	if (!begin(&u, tracker, BARE))
		return;
	begin_flush(&u);
	open_gate_soon();
	q = new_pages(LEN);
	MUST(varve_protect(u.v, "p", q, LEN) == 0);
	writers_fill(u.p, 1, LEN);
	munmap(u.p, LEN);
	u.p = q;
	check(&u, 2);
	memcpy(q, u.copy, LEN);
	q[7]++;
	memcpy(u.copy, q, LEN);
	MUST(varve_checkpoint(u.v) == 0);
	writers_fill(q, 2, LEN);
	check(&u, 3);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

static void free_flushing(const char *tracker)
{
	struct run u = { 0 };
	uint8_t *a;

	must_begin("%s: varve_free, varve_restart, varve_stats, varve_region while flushing", tracker);
	if (!begin(&u, tracker, BARE))
		return;
	a = varve_alloc(u.v, "a", 20 * PAGE);
	MUST(a);
	gen_bytes(&u.seed, a, 20 * PAGE);
	begin_flush(&u);
	open_gate_soon();
	MUST(varve_free(u.v, a) == 0);
	check(&u, 2);
	for (int k = 0; k < 3; k++) {
		struct varve_region_info info;
		struct varve_stats s;

		gen_bytes(&u.seed, u.p, LEN);
		memcpy(u.copy, u.p, LEN);
		gatefs_hold(GATE_WRITE);
		MUST(varve_checkpoint(u.v) == 0);
		gatefs_await();
		open_gate_soon();
		if (k == 0)
			MUST(varve_stats(u.v, &s) == 0 && s.epoch == 3 && s.bytes_new == LEN);
		if (k == 1)
			MUST(varve_region(u.v, 4, "p", &info) == 0 && info.bytes == LEN);
		if (k == 2)
			MUST(varve_restart(u.v, VARVE_LATEST) == 1 && memcmp(u.p, u.copy, LEN) == 0);
		check(&u, 3 + (uint64_t)k);
	}
	u.p[9]++;
	MUST(varve_checkpoint(u.v) == 0);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

/* Threads that write a region while it is taken out: they wait at the fence, and go on. */
static void unprotect_written(const char *tracker)
{
	struct run u = { 0 };
	struct area area;
	struct writers *w;

	must_begin("%s: unprotect a region that is being written", tracker);
	if (!begin(&u, tracker, BARE))
		return;
	area = (struct area){ u.p, LEN };
	w = writers_new(4, 5, &area, 1);
	for (unsigned i = 0; i < 20; i++) {
		writers_pause(w);
		memcpy(u.copy, u.p, LEN);
		gatefs_hold(GATE_WRITE);
		MUST(varve_checkpoint(u.v) == 0);
		writers_go(w);
		must_nap(2);
		gatefs_pass();
		MUST(varve_unprotect(u.v, "p") == 0);
		check(&u, 2 + i);
		MUST(varve_protect(u.v, "p", u.p, LEN) == 0);
	}
	writers_free(w);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

/* Very many threads stand at the fence when the flush ends, so that some get their turn only after the region is gone. */
static void *write_page(void *arg)
{
	writers_fill(arg, 0xab, 1);
	return NULL;
}

static void unprotect_waited(const char *tracker)
{
	enum { THREADS = 60 };
	struct run u = { 0 };
	pthread_t thread[THREADS];

	must_begin("%s: unprotect a region that many threads wait for", tracker);
	if (!begin(&u, tracker, BARE))
		return;
	for (unsigned i = 0; i < 8; i++) {
		gen_bytes(&u.seed, u.p, LEN);
		memcpy(u.copy, u.p, LEN);
		gatefs_hold(GATE_WRITE);
		MUST(varve_checkpoint(u.v) == 0);
		gatefs_await();
		for (size_t k = 0; k < THREADS; k++)
			MUST(pthread_create(&thread[k], NULL, write_page, u.p + (k + 2) * PAGE) == 0);
		must_nap(10);
		gatefs_fail(GATE_WRITE, ENOSPC);
		MUST(varve_unprotect(u.v, "p") == 0);
		MUST(varve_checkpoint(u.v) == VARVE_ENOSPC);
		gatefs_pass();
		for (size_t k = 0; k < THREADS; k++)
			pthread_join(thread[k], NULL);
		MUST(varve_protect(u.v, "p", u.p, LEN) == 0);
	}
	MUST(varve_close(u.v) == 0);
	end(&u);
}

/* A thread that is cancelled while it waits gives the session back first. */
static void *wait_for_two(void *v)
{
	MUST(varve_wait(v, 2) == 0);
	return v;
}

static void cancelled(void)
{
	struct run u = { 0 };
	void *result = NULL;
	pthread_t thread;

	must_begin("a thread is cancelled in varve_wait");
	MUST(begin(&u, "auto", BARE));
	begin_flush(&u);
	MUST(pthread_create(&thread, NULL, wait_for_two, u.v) == 0);
	must_nap(30);
	MUST(pthread_cancel(thread) == 0);
	must_nap(30);
	gatefs_pass();
	MUST(pthread_join(thread, &result) == 0);
	MUST(varve_test(u.v, 2) == 1);
	check(&u, 2);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

/* ---- fork ---------------------------------------------------------------------------------------------------------------- */

static void child(struct run *u)
{
	alarm(20);
	writers_fill(u->p, 0x77, LEN);
	for (size_t i = 0; i < LEN; i++)
		if (u->p[i] != 0x77)
			_exit(3);
	if (varve_checkpoint(u->v) != VARVE_EINVAL)
		_exit(4);
	varve_close(u->v);
	writers_fill(u->p, 0x78, LEN);
	_exit(0);
}

static void fork_flushing(const char *tracker, const char *more)
{
	struct run u = { 0 };
	int status = 0;
	pid_t pid;

	must_begin("%s: fork while flushing, %s", tracker, more);
	if (!begin(&u, tracker, more))
		return;
	begin_flush(&u);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0)
		child(&u);
	MUST(waitpid(pid, &status, 0) == pid);
	if (status)
		fprintf(stderr, "the child ended with %x\n", (unsigned)status);
	MUST(status == 0);
	open_gate_soon();
	writers_fill(u.p, 1, LEN); /* the parent's fences stand */
	MUST(varve_wait(u.v, 2) == 0);
	check(&u, 2);
	gen_bytes(&u.seed, u.p, 3 * PAGE);
	memcpy(u.copy, u.p, LEN);
	MUST(varve_checkpoint(u.v) == 0);
	check(&u, 3);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

/* ---- callbacks, sessions, signals -------------------------------------------------------------------------------------------- */

struct heard {
	varve *v;
	uint64_t epoch[64];
	atomic_uint n;
	int refused;
};

static void hear(void *arg, uint64_t epoch, int rc)
{
	struct heard *h = arg;
	struct varve_stats s;

	h->refused += varve_checkpoint(h->v) == VARVE_EINVAL;
	h->refused += varve_wait(h->v, epoch) == VARVE_EINVAL;
	h->refused += varve_stats(h->v, &s) == VARVE_EINVAL;
	h->refused += varve_close(h->v) == VARVE_EINVAL;
	h->refused += varve_due(h->v) == VARVE_EINVAL;
	h->refused += strstr(varve_last_error(), "callback") != NULL;
	if (rc == 0)
		h->epoch[h->n++ % 64] = epoch;
}

static void callbacks(const char *mode)
{
	struct run u = { 0 };
	struct heard h = { 0 };

	must_begin("callbacks, %s", mode);
	MUST(begin(&u, "auto", mode));
	h.v = u.v;
	MUST(varve_on_done(u.v, hear, &h) == 0);
	for (int i = 0; i < 20; i++) {
		u.p[i * PAGE]++;
		MUST(varve_checkpoint(u.v) == 0);
	}
	MUST(varve_on_done(u.v, NULL, NULL) == 0);
	MUST(varve_checkpoint(u.v) == 0);
	MUST(varve_close(u.v) == 0);
	MUST(h.n == 20);
	for (unsigned i = 0; i < 20; i++)
		MUST(h.epoch[i] == 2 + i);
	if (h.refused != 6 * 20)
		fprintf(stderr, "%d of %d calls refused\n", h.refused, 6 * 20);
	MUST(h.refused == 6 * 20);
	end(&u);
}

static void two_sessions(const char *tracker)
{
	struct run a = { 0 }, b = { 0 };
	struct area area[2];
	struct writers *w;

	must_begin("%s: two sessions at once", tracker);
	if (!begin(&a, tracker, BARE "bandwidth=20MiB"))
		return;
	MUST(varve_open("mem:other", "b", "buffer=64KiB bandwidth=20MiB", &b.v) == 0);
	b.p = new_pages(LEN);
	MUST(varve_protect(b.v, "p", b.p, LEN) == 0);
	area[0] = (struct area){ a.p, LEN };
	area[1] = (struct area){ b.p, LEN };
	w = writers_new(3, 3, area, 2);
	for (uint64_t i = 0; i < 6; i++) {
		writers_pause(w);
		memcpy(a.copy, a.p, LEN);
		memcpy(b.copy, b.p, LEN);
		MUST(varve_checkpoint(a.v) == 0 && varve_checkpoint(b.v) == 0);
		writers_go(w);
		check(&b, 1 + i);
		check(&a, 2 + i);
	}
	MUST(varve_close(b.v) == 0); /* the other one's fences stay in force */
	check(&a, 7);
	writers_pause(w);
	memcpy(a.copy, a.p, LEN);
	MUST(varve_checkpoint(a.v) == 0);
	writers_go(w);
	check(&a, 8);
	writers_free(w);
	MUST(varve_close(a.v) == 0);
	munmap(b.p, LEN);
	end(&a);
}

static void asked(void)
{
	struct run u = { 0 };
	int status;
	pid_t pid;

	must_begin("a child asks for a checkpoint");
	MUST(begin(&u, "auto", "interval=1000"));
	MUST(varve_due(u.v) == 0);
	pid = fork();
	if (pid == 0)
		_exit(kill(getppid(), SIGUSR1) != 0);
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	while (varve_due(u.v) == 0)
		must_nap(1);
	begin_flush(&u);
	MUST(varve_due(u.v) == 0); /* served, though not stored yet */
	kill(getpid(), SIGUSR1);
	MUST(varve_due(u.v) == 1);
	open_gate_soon();
	MUST(varve_checkpoint(u.v) == 0 && varve_due(u.v) == 0);
	MUST(varve_close(u.v) == 0);
	end(&u);
}

int main(void)
{
	vv_dir_set_fs(gatefs());
	for (const char *const *t = trackers; *t; t++) {
		close_flushing(*t);
		unprotect_flushing(*t);
		move_flushing(*t);
		free_flushing(*t);
		fork_flushing(*t, BARE);
		fork_flushing(*t, "buffer=100% codec=none log=error");
		two_sessions(*t);
		unprotect_written(*t);
		unprotect_waited(*t);
	}
	cancelled();
	callbacks("");
	asked();
	callbacks("mode=sync");
	return 0;
}
